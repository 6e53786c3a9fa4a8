"""Prefixes of a sequence that a loop makes one after the other, and the model's call that is given each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.invariants.turn_dependence import feeds_itself
from perflint.analysis.naming.models import CHEAP, NOT_CAUSAL
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import arguments_of, callee_name, is_constant
from perflint.syntax.walk import walk


def prefixes_in(loop: ast.For, index: str, ctx: FileFacts) -> Iterator[ast.Subscript]:
    """`x[:, :t]`, `x[:t]`, `x[:, : t + 1]` of sequences that the loop leaves as they are."""
    flow = ctx.inference.flow
    for part in ctx.walk(loop):
        if not isinstance(part, ast.Subscript) or not isinstance(part.ctx, ast.Load):
            continue
        items = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        if (
            len(items) not in (1, 2)
            or not _is_up_to(items[-1], index)
            or not all(_is_whole(item) for item in items[:-1])
        ):
            continue
        base = part.value
        if isinstance(base, (ast.Name, ast.Attribute)) and flow.is_invariant(base, loop):
            yield part


def _is_whole(item: ast.expr) -> bool:
    return isinstance(item, ast.Slice) and item.lower is None and item.upper is None and item.step is None


def _is_up_to(item: ast.expr, index: str) -> bool:
    if not isinstance(item, ast.Slice) or item.lower is not None or item.step is not None:
        return False
    return item.upper is not None and _is_index(item.upper, index)


def _is_index(node: ast.expr, index: str) -> bool:
    """`t`, `t + 1`, `t - 1`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and is_constant(node.right, 1):
        node = node.left
    return isinstance(node, ast.Name) and node.id == index


def forward_of_prefix(prefix: ast.Subscript, loop: ast.For, ctx: FileFacts) -> ast.Call | None:
    """The model's call that is given the prefix, or what the turn makes of it."""
    made = _made_of(prefix, loop, ctx)
    for part in ctx.walk(loop):
        if not isinstance(part, ast.Call) or not _is_causal_model(part, ctx):
            continue
        given = [item for value in arguments_of(part) for item in walk(value)]
        if any(item is prefix or (isinstance(item, ast.Name) and item.id in made) for item in given):
            # What an earlier turn gave is a cache, or a choice that is fed back.
            return None if feeds_itself(part, loop) else part
    return None


def _is_causal_model(call: ast.Call, ctx: FileFacts) -> bool:
    if CHEAP.search(callee_name(call)) or NOT_CAUSAL.search(callee_name(call)):
        return False
    return is_model_call(call, ctx)


def _made_of(prefix: ast.Subscript, loop: ast.For, ctx: FileFacts) -> set[str]:
    """The names that a turn sets to something made of the prefix, before a model sees it."""
    settings = [
        part
        for part in ctx.walk(loop)
        if isinstance(part, ast.Assign)
        and not any(isinstance(item, ast.Call) and _is_causal_model(item, ctx) for item in walk(part.value))
    ]
    made: set[str] = set()
    for _ in range(4):
        for setting in settings:
            if any(item is prefix or (isinstance(item, ast.Name) and item.id in made) for item in walk(setting.value)):
                made |= {item.id for target in setting.targets for item in walk(target) if isinstance(item, ast.Name)}
    return made


def reads_next(prefix: ast.Subscript, loop: ast.For) -> bool:
    """Whether a turn reads the last position of what the model gave, or the sequence's own next element."""
    whole = set(names_in(prefix.value))
    index = loop.target.id if isinstance(loop.target, ast.Name) else ""
    for part in walk(loop):
        if not isinstance(part, ast.Subscript):
            continue
        items = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        if len(items) > 1 and _is_whole(items[0]) and _is_minus_one(items[1]):
            return True
        if any(_is_index(item, index) for item in items[:2]) and whole <= set(names_in(part.value)):
            return True
    return False


def _is_minus_one(item: ast.expr) -> bool:
    return isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub) and is_constant(item.operand, 1)
