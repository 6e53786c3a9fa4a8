"""Results with a graph that leave a function: shown as text, handed out, added to an argument, or returned."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_loss_function, is_model_call, name_of_whole
from perflint.analysis.naming.phases import KEEPS_VALUES
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import arguments_of
from perflint.syntax.walk import walk

#: Functions that read what they are given and keep nothing of it.
_READERS = frozenset(
    "abs bool dict enumerate float format hasattr int isinstance len list max min print range repr reversed round "
    "sorted str sum tuple type zip".split()
)
_FILLERS = frozenset({"append", "extend", "insert", "update", "setdefault", "add"})
#: Methods whose results have no graph: indices, integers, truth values.
_WITHOUT_GRAPH = frozenset(
    "argmax argmin argsort eq ne lt le gt ge isnan isinf isfinite bool int long short detach any all nonzero "
    "count_nonzero".split()
)


def shown_as_text(parts: list[ast.AST], made: set[str], ctx: FileFacts) -> ast.expr | None:
    """The first value with a graph that is made into text as it is."""
    for part in parts:
        shown: list[ast.expr] = []
        if isinstance(part, ast.Call) and isinstance(part.func, (ast.Name, ast.Attribute)):
            if name_of_whole(part.func) in ("print", "str", "repr", "format"):
                shown = arguments_of(part)
        elif isinstance(part, ast.FormattedValue) and part.format_spec is None:
            shown = [part.value]
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) and ctx.kind(part.left).tag is Tag.STRING:
            shown = list(part.right.elts) if isinstance(part.right, ast.Tuple) else [part.right]
        found = next((value for value in shown if _carries(value, made, ctx)), None)
        if found is not None:
            return found
    return None


def is_number_without_graph(value: ast.expr | None, ctx: FileFacts) -> bool:
    if value is None:
        return True
    if isinstance(value, ast.Tuple):
        return all(is_number_without_graph(item, ctx) for item in value.elts)
    return ctx.kind(value).tag in (Tag.NUMBER, Tag.NONE, Tag.STRING)


def handed_out(
    function: ast.FunctionDef | ast.AsyncFunctionDef, parts: list[ast.AST], ctx: FileFacts
) -> ast.Call | None:
    """The first call that may keep a tensor made from a forward for longer than the function runs."""
    made, own = made_from_forwards(parts, ctx), _own_containers(function, parts)
    for part in parts:
        if not isinstance(part, ast.Call) or _only_reads(part, made, own, ctx):
            continue
        given = arguments_of(part)
        if any(_carries(value, made, ctx) for value in given):
            return part
    return None


def grows_argument(
    part: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef, made: set[str], ctx: FileFacts
) -> bool:
    """Whether `results += [out]` changes an argument in place, or what another name or object has as well."""
    if not isinstance(part, ast.AugAssign) or not isinstance(part.target, ast.Name):
        return False
    shared = {argument.arg for argument in walk(function.args) if isinstance(argument, ast.arg)}
    for other in walk(function):
        if isinstance(other, ast.Assign) and isinstance(other.value, (ast.Name, ast.Attribute, ast.Subscript)):
            shared.update(target.id for target in other.targets if isinstance(target, ast.Name))
    return part.target.id in shared and _carries(part.value, made, ctx)


def made_from_forwards(parts: list[ast.AST], ctx: FileFacts) -> set[str]:
    """The names that may hold what a forward gave, directly or in a container."""
    made: set[str] = set()
    while True:
        before = len(made)
        for part in parts:
            targets: list[ast.expr] = []
            value: ast.expr | None = None
            if isinstance(part, ast.Assign):
                targets, value = part.targets, part.value
            elif isinstance(part, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
                targets, value = [part.target], part.value
            elif isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)):
                targets, value = [part.target], part.iter
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _FILLERS:
                if any(_carries(item, made, ctx) for item in part.args):
                    made.update(_names(part.func.value))
            if value is not None and _carries(value, made, ctx):
                made.update(name for target in targets for name in _names(target))
        if len(made) == before:
            return made


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)} - {"self"}


def _own_containers(function: ast.FunctionDef | ast.AsyncFunctionDef, parts: list[ast.AST]) -> set[str]:
    """Names bound to nothing but new lists, dictionaries and sets."""
    new: set[str] = set()
    other = {part.arg for part in walk(function.args) if isinstance(part, ast.arg)}
    stored = [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    for part in parts:
        if isinstance(part, ast.Assign) and isinstance(part.value, (ast.List, ast.Dict, ast.Set, ast.ListComp)):
            new.update(target.id for target in part.targets if isinstance(target, ast.Name))
    return {name for name in new - other if stored.count(name) == 1}


def _carries(value: ast.expr, made: set[str], ctx: FileFacts) -> bool:
    """Whether a value may be, or hold, a tensor with a graph made by a forward."""
    if ctx.kind(value).tag in (Tag.NUMBER, Tag.NONE, Tag.STRING):
        return False
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr in ("item", "tolist", "numpy", "size", "dim", "numel"):
            return False
        if value.func.attr in _WITHOUT_GRAPH:
            return False
    if isinstance(value, ast.Compare):
        return False
    if isinstance(value, ast.Name):
        return value.id in made
    if is_model_call(value, ctx):
        return True
    return any(
        _carries(child.value if isinstance(child, ast.keyword) else child, made, ctx)
        for child in ast.iter_child_nodes(value)
        if isinstance(child, (ast.expr, ast.keyword))
    )


def _only_reads(call: ast.Call, made: set[str], own: set[str], ctx: FileFacts) -> bool:
    func = call.func
    target = ctx.target(func) or ""
    if target.startswith("torch."):
        return target != "torch.save"
    if isinstance(func, ast.Name) and func.id in _READERS:
        return True
    if is_model_call(call, ctx) or (is_loss_function(func, ctx) and not KEEPS_VALUES.search(name_of_whole(func))):
        return True
    if (ctx.kind(func).qualified or "").startswith("torch.nn."):
        return True
    if not isinstance(func, ast.Attribute):
        return False
    if isinstance(func.value, ast.Name) and func.value.id in own:
        return True
    return func.attr not in _FILLERS and (ctx.kind(func.value).tag is Tag.TENSOR or _carries(func.value, made, ctx))
