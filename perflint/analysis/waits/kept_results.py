"""Results of an evaluation that every step copies to the host for nothing but to keep them until its loop has ended."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.phases.generation import beside_generation
from perflint.analysis.phases.phase import Phase
from perflint.analysis.waits.by_element import reads_each_element
from perflint.analysis.waits.called_functions import change_but_copies
from perflint.analysis.waits.host_work import in_forward
from perflint.analysis.waits.reads import Read, device_read
from perflint.syntax.tree import LoopNode

#: Code that trains nothing.
_ASIDE = ("texts", "eval", "batches")
#: Methods and attributes that leave values what they are.
_SAME = frozenset(
    "cpu numpy data detach tolist float double half long int reshape view flatten squeeze unsqueeze permute transpose "
    "astype copy T contiguous".split()
)
#: What a list or an array is found in.
_HOLDERS = (ast.Name, ast.Attribute, ast.Subscript)
_DEPTH = 4


def is_beside_generation(node: ast.expr, read: Read, ctx: FileFacts) -> bool:
    """Whether a step that makes whole samples, and trains nothing, copies what it has made: the device has nothing else
    queued by then.
    """
    if ctx.role(node) not in _ASIDE or in_forward(node, ctx) or not beside_generation(node, ctx):
        return False
    return not reads_each_element(read.value, ctx)


def is_kept_until_end(node: ast.expr, read: Read, ctx: FileFacts) -> bool:
    """Whether a loop over the batches of an evaluation reads whole results only to collect them, and waits for nothing
    else: they may as well be collected on the device.
    """
    if not read.copies or ctx.role(node) not in ("eval", "batches") or ctx.phase(node).phase is Phase.TRAIN:
        return False
    loop = _batch_loop(node, ctx)
    return loop is not None and _only_collects(loop, ctx) and _is_collected(node, loop, ctx)


def is_collected_at_end(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the loop over batches around a copy to the device waits for nothing but results that it collects."""
    loop = _batch_loop(node, ctx)
    return loop is not None and _only_collects(loop, ctx)


def _batch_loop(node: ast.AST, ctx: FileFacts) -> LoopNode | None:
    """The outermost loop around a node, if it is one over batches."""
    loops = ctx.loops(node)
    return loops[-1] if loops and ctx.is_root_loop(loops[-1]) else None


def _only_collects(loop: LoopNode, ctx: FileFacts) -> bool:
    return ctx.once(_collects, loop)


def _collects(loop: LoopNode, ctx: FileFacts) -> bool:
    """Whether a loop waits, and for nothing but results that it keeps as arrays or lists of numbers."""
    waits = [part for part in ctx.walk(loop) if ctx.once(change_but_copies, part).empties]
    return bool(waits) and all(_is_collected(part, loop, ctx) for part in waits)


def _is_collected(wait: ast.AST, loop: LoopNode, ctx: FileFacts) -> bool:
    if not isinstance(wait, ast.Call) or device_read(wait, ctx) is None:
        return False
    # What stays a tensor is moved out of the device's memory, for all that is known.
    return _is_kept(wait, loop, ctx, _DEPTH) and _leaves_torch(wait, ctx, _DEPTH)


def _is_kept(value: ast.expr, loop: LoopNode, ctx: FileFacts, depth: int) -> bool:
    """Whether all that a turn does with a value is to put it away."""
    child: ast.AST = value
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Attribute):
            if outer.attr not in _SAME:
                return False
        elif isinstance(outer, ast.Subscript):
            if child is not outer.value:
                return False
        elif isinstance(outer, ast.Call):
            if child is not outer.func:
                return _is_appended(outer, loop, ctx)
        elif isinstance(outer, (ast.Assign, ast.AugAssign)):
            return _is_put_away(outer, loop, ctx, depth)
        elif not isinstance(outer, (ast.Tuple, ast.List, ast.Dict)):
            return False
        child = outer
    return False


def _leaves_torch(value: ast.expr, ctx: FileFacts, depth: int) -> bool:
    """Whether what is kept becomes an array or a list of numbers at once, which no tensor is asked for again."""
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Attribute) and outer.attr in ("numpy", "tolist"):
            return True
        if isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Subscript):
            return True
        if isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Name) and depth:
            return any(_leaves_torch(use, ctx, depth - 1) for use in _uses_of(outer.targets[0], ctx))
        if isinstance(outer, ast.stmt):
            return False
    return False


def _is_appended(call: ast.Call, loop: LoopNode, ctx: FileFacts) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("append", "extend"):
        return False
    return isinstance(ctx.tree.parent(call), ast.Expr) and _is_left_alone(func.value, loop, ctx)


def _is_put_away(statement: ast.Assign | ast.AugAssign, loop: LoopNode, ctx: FileFacts, depth: int) -> bool:
    target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add) and _is_left_alone(target, loop, ctx)
    if len(statement.targets) != 1:
        return False
    if isinstance(target, ast.Subscript):
        return not ctx.kind(target.value).on_accelerator and _is_left_alone(target.value, loop, ctx)
    if not isinstance(target, ast.Name) or depth == 0:
        return False
    uses = _uses_of(target, ctx)
    return bool(uses) and all(_is_kept(use, loop, ctx, depth - 1) for use in uses)


def _uses_of(target: ast.Name, ctx: FileFacts) -> list[ast.Name]:
    made = ctx.inference.flow.definition_at(target)
    return [] if made is None else ctx.inference.flow.uses_of(made)


def _is_left_alone(kept: ast.expr, loop: LoopNode, ctx: FileFacts) -> bool:
    """Whether a turn does nothing with the list or array but to fill it."""
    return isinstance(kept, _HOLDERS) and ctx.text(kept) not in ctx.once(_used_otherwise, loop)


def _used_otherwise(loop: LoopNode, ctx: FileFacts) -> frozenset[str]:
    """The names in a loop of what it does more with than to fill it: gone through once for all of them."""
    parts = (part for part in ctx.walk(loop) if isinstance(part, _HOLDERS) and not _only_fills(part, ctx))
    return frozenset(map(ctx.text, parts))


def _only_fills(part: ast.expr, ctx: FileFacts) -> bool:
    outer = ctx.tree.parent(part)
    if isinstance(outer, ast.Attribute):
        return outer.attr in ("append", "extend")
    if isinstance(outer, ast.Subscript):
        return outer.value is part and isinstance(outer.ctx, ast.Store)
    return isinstance(outer, ast.AugAssign) and outer.target is part
