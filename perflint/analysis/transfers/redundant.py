"""Copies to the device of more than is used: the same data once more, and a whole of which only a part is looked at."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.transfers.moves import constructor, only_converts
from perflint.analysis.values.kind import Place, Tag
from perflint.ir.calls import callee_name, has_unpacking
from perflint.syntax.named import one_target
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

_MOVES = ("to", "cuda")
#: What is asked of a tensor without looking at its numbers.
_FACTS = frozenset({"shape", "dtype", "device", "ndim", "size", "dim", "numel"})


def copied_before(node: ast.Call, ctx: FileFacts) -> ast.Call | None:
    """The call that has copied the same value to the same device before, on every path to `node` and in the same
    iteration.
    """
    return ctx.once(_copied_again, ctx.tree.scope_of(node)).get(id(node))


def _copied_again(region: ast.AST, ctx: FileFacts) -> dict[int, ast.Call]:
    """By the id of each copy of a function that is one of the same before it, that one."""
    moves = [part for part in ctx.walk(region) if isinstance(part, ast.Call) and callee_name(part) in _MOVES]
    found: dict[int, ast.Call] = {}
    # Told by the text first: what kind a value is takes long to find out.
    for alike in _grouped(moves, ctx.text):
        copies = [move for move in alike if is_host_move(move, ctx)]
        for group in _grouped(copies, lambda move: _copied(move, region, ctx)):
            found |= ctx.control_flow(group[0]).dominating(group)
    return found


def _grouped(moves: list[ast.Call], key: Callable[[ast.Call], Hashable]) -> list[list[ast.Call]]:
    """Those that have a key in common with another one, together; a key of None is that of no other."""
    groups: dict[Hashable, list[ast.Call]] = {}
    if len(moves) > 1:
        for move in moves:
            groups.setdefault(key(move), []).append(move)
    return [group for shared, group in groups.items() if shared is not None and len(group) > 1]


def cut_later(node: ast.Call, ctx: FileFacts) -> ast.Subscript | None:
    """`x[:, :n]`, where that is all that is ever used of the copy that is given the name `x`."""
    target = one_target(ctx.tree.parent(node))
    if target is None or not isinstance(node.func, ast.Attribute):
        return None
    if constructor(node.func.value, tensors.COPYING_CONSTRUCTORS, ctx) is not None:
        return None  # a few numbers, which were put together for it
    made = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    if any(ctx.loops(use) != ctx.loops(node) for use in uses):
        return None  # each turn of an inner loop may take another part
    cuts = [ctx.tree.parent(use) for use in uses if not _asks_for_fact(use, ctx)]
    found = cuts[0] if cuts else None
    if not isinstance(found, ast.Subscript) or not is_host_move(node, ctx) or not _takes_a_part(found, ctx):
        return None
    same = all(isinstance(cut, ast.Subscript) and ctx.text(cut) == ctx.text(found) for cut in cuts)
    return found if same and all(cut.value in uses for cut in cuts if isinstance(cut, ast.Subscript)) else None


def is_host_move(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call copies a tensor of the host to an accelerator, waited for or not."""
    if not isinstance(node.func, ast.Attribute) or callee_name(node) not in _MOVES or has_unpacking(node):
        return False
    value = ctx.kind(node.func.value)
    if value.place is not Place.HOST or not value.holds_tensors or only_converts(node, ctx):
        return False
    return ctx.kind(node).on_accelerator


def _copied(move: ast.Call, region: ast.AST, ctx: FileFacts) -> Hashable:
    """What a copy has in common with others of the same data; None where it may be other data each time."""
    assert isinstance(move.func, ast.Attribute)
    value, flow = move.func.value, ctx.inference.flow
    names = _names(value)
    if any(isinstance(part, ast.Call) for part in walk(value)) or any(
        flow.is_mutated(name.id, region) for name in names
    ):
        return None
    made = tuple(frozenset(map(id, flow.definitions(name))) for name in names)
    return tuple(map(id, ctx.loops(move))), made


def _names(node: ast.AST) -> list[ast.Name]:
    return [part for part in walk(node) if isinstance(part, ast.Name)]


def _asks_for_fact(use: ast.Name, ctx: FileFacts) -> bool:
    outer = ctx.tree.parent(use)
    return isinstance(outer, ast.Attribute) and outer.attr in _FACTS


def _takes_a_part(cut: ast.Subscript, ctx: FileFacts) -> bool:
    """Whether a selection leaves something out, and says what by numbers of the host."""
    if not isinstance(cut.ctx, ast.Load):
        return False
    items = cut.slice.elts if isinstance(cut.slice, ast.Tuple) else [cut.slice]
    bounds = [item for item in items if isinstance(item, ast.Slice)]
    cuts_off = any(item.lower is not None or item.upper is not None or item.step is not None for item in bounds)
    numbers = [item for item in items if not isinstance(item, (ast.Slice, ast.Constant))]
    takes_one = any(isinstance(item, ast.Constant) and type(item.value) is int for item in items)
    known = all(ctx.kind(item).tag is Tag.NUMBER for item in numbers)
    return known and (cuts_off or takes_one or bool(numbers))
