"""Files that are the same for each sample: whether the path that a call reads is made of literals, settings and what
the constructor bound, and whether the sample then picks its part of what was read.
"""

from __future__ import annotations

import ast

from perflint.analysis.elsewhere import bound
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.invariants.step_constants import is_set_up_once
from perflint.syntax.walk import walk

_PATHS = frozenset(
    "os.path.join os.path.expanduser os.path.abspath os.path.dirname os.path.basename os.fspath pathlib.Path str "
    "builtins.str format builtins.open open io.open gzip.open".split()
)
_METHODS = frozenset({"joinpath", "with_suffix", "with_name", "format", "as_posix", "open", "resolve"})
_DEPTH = 6


def reads_one_file(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether each run of the code around a call reads the same file by it."""
    return bool(call.args) and is_fixed_path(call.args[0], ctx)


def is_fixed_path(node: ast.expr, ctx: FileFacts, depth: int = _DEPTH) -> bool:
    if depth == 0:
        return False
    match node:
        case ast.Constant():
            return isinstance(node.value, (str, int))
        case ast.JoinedStr():
            return all(is_fixed_path(part, ctx, depth - 1) for part in node.values)
        case ast.FormattedValue():
            return is_fixed_path(node.value, ctx, depth - 1)
        case ast.BinOp():
            return is_fixed_path(node.left, ctx, depth - 1) and is_fixed_path(node.right, ctx, depth - 1)
        case ast.Tuple():
            return all(is_fixed_path(item, ctx, depth - 1) for item in node.elts)
        case ast.Subscript():
            return is_fixed_path(node.value, ctx, depth - 1) and is_fixed_path(node.slice, ctx, depth - 1)
        case ast.Attribute():
            return _is_fixed_attribute(node, ctx, depth)
        case ast.Call():
            return _is_path_of(node, ctx, depth)
        case ast.Name():
            return _is_fixed_name(node, ctx, depth)
    return False


def _is_path_of(call: ast.Call, ctx: FileFacts, depth: int) -> bool:
    """`os.path.join(self.root, "all.npy")`, `open(self.path)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS and ctx.target(call.func) is None:
        given = [call.func.value, *call.args]
    elif (ctx.target(call.func) or "") in _PATHS:
        given = list(call.args)
    else:
        return False
    return bool(given) and all(is_fixed_path(item, ctx, depth - 1) for item in given)


def _is_fixed_attribute(node: ast.Attribute, ctx: FileFacts, depth: int) -> bool:
    """`self.path`, `self.options.path`, `config.PATH` of a module."""
    root = node
    while isinstance(root.value, ast.Attribute):
        root = root.value
    if not isinstance(root.value, ast.Name):
        return False
    return is_set_up_once(root, ctx) if root.value.id == "self" else is_fixed_path(root.value, ctx, depth - 1)


def _is_fixed_name(node: ast.Name, ctx: FileFacts, depth: int) -> bool:
    definitions, ctx = bound(node, ctx)
    if len(definitions) != 1 or definitions[0].path:
        return False
    made = definitions[0]
    if isinstance(made.node, ast.arg) or made.value is None or ctx.loops(made.node):
        return False
    return is_fixed_path(made.value, ctx, depth - 1)


def is_picked_from(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a row of what a call reads is taken by an index that the code computes: `np.load(path)[index]`."""
    outer = ctx.tree.parent(call)
    if isinstance(outer, (ast.Subscript, ast.Attribute)) and outer.value is call:
        return _is_indexed(outer, ctx)
    statement = ctx.tree.statement_of(call)
    function = ctx.tree.function_of(call)
    if function is None or not isinstance(statement, ast.Assign) or statement.value is not call:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return False
    uses = [part for part in ctx.tree.named(target.id, function) if isinstance(part.ctx, ast.Load)]
    return any(_is_indexed(ctx.tree.parent(use), ctx) for use in uses)


def _is_indexed(node: ast.AST | None, ctx: FileFacts) -> bool:
    """Whether `table["x"]`, `table.loc` or the like is followed by an index that is no literal."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Subscript) and any(isinstance(part, ast.Name) for part in walk(node.slice)):
            return True
        node = ctx.tree.parent(node)
    return False
