"""Which calls are given a value itself, through moves, keys, attributes and names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import argument, is_constant

#: Methods that leave a tensor what it is: the same sample, somewhere else or in another type.
_MOVES = frozenset(
    "to cuda cpu float half double bfloat16 long int type detach clone contiguous requires_grad_ unsqueeze to_device "
    "pin_memory items".split()
)
_DEEP = 5


def takers(value: ast.expr, ctx: FileFacts, depth: int = _DEEP) -> Iterator[ast.Call]:
    """The calls that are given `value` itself: as an argument, through moves, keys, attributes and names."""
    child: ast.AST = value
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Attribute):
            child = outer
        elif isinstance(outer, ast.Subscript) and child is outer.value and isinstance(outer.slice, ast.Constant):
            child = outer
        elif isinstance(outer, ast.Call):
            if child is not outer.func and not _lengthens(outer):
                yield outer
                return
            if child is not outer.func:
                child = outer
                continue
            if not isinstance(child, ast.Attribute) or child.attr not in _MOVES:
                return
            child = outer
        elif isinstance(outer, (ast.Starred, ast.keyword, ast.DictComp)):
            child = outer
        elif isinstance(outer, ast.comprehension):
            if child is not outer.iter or not moves_values(ctx.tree.parent(outer)):
                return
            child = outer
        elif isinstance(outer, (ast.List, ast.Tuple)):
            # One sample's pieces, put together along its own length.
            joined = ctx.tree.parent(outer)
            if not isinstance(joined, ast.Call) or not _lengthens(joined):
                return
            child = outer
        elif isinstance(outer, (ast.Assign, ast.AnnAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            if depth > 0 and child is outer.value and len(targets) == 1 and isinstance(targets[0], ast.Name):
                yield from _takers_of(targets[0], ctx, depth - 1)
            return
        else:
            return


def moves_values(node: ast.AST | None) -> bool:
    """Whether a value is `{k: v.to(device) for k, v in inputs.items()}`: the same inputs, somewhere else."""
    if not isinstance(node, ast.DictComp) or len(node.generators) != 1 or node.generators[0].ifs:
        return False
    target, value = node.generators[0].target, node.value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        value = value.func.value
    return (
        isinstance(target, ast.Tuple)
        and isinstance(target.elts[-1], ast.Name)
        and isinstance(value, ast.Name)
        and value.id == target.elts[-1].id
    )


def _lengthens(call: ast.Call) -> bool:
    """Whether a call is `torch.cat((a, b), dim=1)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("cat", "concat", "concatenate"):
        return False
    dim = argument(call, 1, "dim")
    return is_constant(dim, 1) or (
        isinstance(dim, ast.UnaryOp) and isinstance(dim.op, ast.USub) and is_constant(dim.operand, 1)
    )


def _takers_of(name: ast.Name, ctx: FileFacts, depth: int) -> Iterator[ast.Call]:
    definition = ctx.inference.flow.definition_at(name)
    if definition is None:
        return
    for use in ctx.inference.flow.uses_of(definition):
        yield from takers(use, ctx, depth)
