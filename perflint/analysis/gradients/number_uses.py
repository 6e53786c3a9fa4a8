"""What a use of a tensor takes of it: a number, or text that names its graph."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.carried import GRAPH_CARRIERS
from perflint.analysis.naming.phases import LOGS
from perflint.analysis.naming.values import BY_STR
from perflint.ir.calls import callee_name

#: What takes a tensor and gives a value that nothing flows back through.
_READERS = frozenset("item tolist numpy detach detach_ float int format print isnan isinf isfinite len".split())


#: Attributes that ask for the graph, not for the number.
_OF_GRAPH = frozenset({"grad_fn", "requires_grad", "is_leaf", "grad", "retains_grad"})


def reads_number(use: ast.expr, ctx: FileFacts) -> bool:
    child: ast.AST = use
    for outer in ctx.tree.ancestors(use):
        if isinstance(outer, ast.Compare) and any(isinstance(how, (ast.Is, ast.In, ast.NotIn)) for how in outer.ops):
            return False  # whether it is the very tensor
        if isinstance(outer, (ast.FormattedValue, ast.Compare)) or _template(outer, child) is not None:
            return True
        if isinstance(outer, ast.Attribute):
            if outer.attr == "data":
                return True
            if outer.attr in _OF_GRAPH:
                return False
        elif isinstance(outer, ast.Call):
            name = callee_name(outer)
            if name in _READERS or (child is not outer.func and (LOGS.search(name) or _is_of_numbers(outer, ctx))):
                return True
            if child is outer.func and isinstance(outer.func, ast.Attribute) and name not in GRAPH_CARRIERS:
                return False
            if child is not outer.func and name not in GRAPH_CARRIERS:
                return False
        elif not isinstance(outer, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.keyword)):
            return False
        child = outer
    return False


def _is_of_numbers(call: ast.Call, ctx: FileFacts) -> bool:
    """`math.exp(total / count)`: a library that knows no graph."""
    return (ctx.target(call.func) or "").partition(".")[0] in ("math", "numpy")


def _template(node: ast.AST, child: ast.AST) -> str | None:
    """The text of `"mean loss: %f" % value` around the value."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and child is node.right:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return node.left.value
    return None


def becomes_text(use: ast.expr, ctx: FileFacts) -> bool:
    """Whether a tensor made of what is kept is shown by `str`, which names its graph; a format shows the number."""
    child: ast.AST = use
    for outer in ctx.tree.ancestors(use):
        if isinstance(outer, ast.FormattedValue):
            return outer.format_spec is None or outer.conversion != -1
        template = _template(outer, child)
        if template is not None:
            return BY_STR.search(template) is not None
        if isinstance(outer, ast.Call):
            name = callee_name(outer)
            if child is not outer.func and (name in ("print", "str", "repr") or LOGS.search(name)):
                return True
            if name in _READERS:
                return name == "format" and child is not outer.func and not _has_spec(outer)
        elif isinstance(outer, (ast.stmt, ast.Compare)):
            return False
        child = outer
    return False


def _has_spec(call: ast.Call) -> bool:
    """Whether `"{:.3f}".format(total)` says how each value is written."""
    text = call.func.value if isinstance(call.func, ast.Attribute) else None
    written = isinstance(text, ast.Constant) and isinstance(text.value, str)
    if not written:
        return False
    from string import Formatter  # late: hardly any project asks

    return all(spec and not way for _, name, spec, way in Formatter().parse(text.value) if name is not None)  # type: ignore[union-attr]
