"""Calls of a loop that are worth keeping and give the same on each of its turns."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import is_for_one_turn
from perflint.analysis.gradients.drawn_anew import draws_anew
from perflint.analysis.gradients.forwards import is_forward, is_given_counts, only_shapes
from perflint.analysis.gradients.helper_forwards import runs_given_model
from perflint.analysis.invariants.in_loops import is_thrown_away, is_unchanging
from perflint.analysis.invariants.picture_copies import copies_picture
from perflint.finding import Heat
from perflint.ir.calls import arguments_of
from perflint.torch_model import tensors
from perflint.torch_model.names import last

#: The tables and decompositions of torch that are worth keeping.
_KEPT = frozenset(name for name in tensors.COSTLY_FUNCTIONS if last(name) in ("meshgrid", "eigh", "svd", "pinv"))


def unchanging_work(loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts) -> Iterator[ast.Call]:
    """The calls of a loop's own body that cost something and whose inputs no turn changes."""
    for call in list(_calls(loop, ctx)):
        # Most calls train, and most others depend on what the loop sets, which costs less to see than what they call.
        copies = copies_picture(call, loop, ctx)
        if not (copies or _may_be_worth_it(call, ctx)) or not is_unchanging(call, loop, ctx):
            continue
        if ctx.heat(call) < Heat.STEP if copies else _is_cheap(call, ctx):
            continue
        if is_for_one_turn(call, loop, ctx) or is_given_counts(ctx.text(call.func), arguments_of(call), ctx):
            continue
        if not draws_anew(call, loop, ctx) and not only_shapes(call, ctx):
            yield call


def _calls(loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts) -> Iterator[ast.Call]:
    """Calls of the loop's own body whose result is bound or used; those of inner loops are judged there."""
    for statement in loop.body:
        for part in ctx.walk(statement):
            if isinstance(part, ast.Call) and ctx.loops(part)[:1] == [loop] and arguments_of(part):
                if not isinstance(ctx.tree.parent(part), ast.Return) and not is_thrown_away(part, ctx):
                    yield part


def _may_be_worth_it(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call runs without gradients, or is worth keeping whatever it is: all others are cheap."""
    return ctx.grad_off(call) or ctx.target(call.func) in _KEPT or runs_given_model(call, ctx)


def _is_cheap(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the call is none of those worth keeping: a forward without gradients, a table, a decomposition."""
    if is_forward(call, ctx):
        return not ctx.grad_off(call)
    target = ctx.target(call.func)
    if target is not None:
        return ctx.heat(call) < Heat.STEP or target not in _KEPT
    return not runs_given_model(call, ctx)
