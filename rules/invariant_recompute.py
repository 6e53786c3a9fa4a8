"""TPL506: work in a loop whose inputs never change there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Loops,
    Rule,
    last,
    tensors,
)
from perflint.api.gradients import (
    arguments,
    draws_anew,
    is_forward,
    is_given_counts,
    only_shapes,
    runs_given_model,
)
from perflint.api.invariants import is_thrown_away, is_unchanging
from perflint.api.loops import (
    is_between_clocks,
    is_for_one_turn,
    is_forever,
    is_timing,
    only_repeats,
    starts_afresh,
    trains_inside,
)
from perflint.api.words import short_call

_MODELS = (
    "model",
    "teacher",
    "encoder",
    "net",
    "network",
    "text_encoder",
    "base_model",
    "ref_model",
    "reference_model",
)
_MAKERS = ("meshgrid", "linspace", "arange", "outer", "logspace", "tril_indices", "triu_indices")
#: The tables and decompositions of torch that are worth keeping.
_KEPT = frozenset(name for name in tensors.COSTLY_FUNCTIONS if last(name) in ("meshgrid", "eigh", "svd", "pinv"))


class InvariantRecompute(Rule):
    """A forward pass of an unchanged model, or another expensive pure call, repeats in a loop with the same inputs.

    What it does

    Reports forward passes without gradients, grids and position tables, and decompositions in a loop that changes
    none of their inputs.

    Why is this slow?

    The result is the same in every iteration. A search loop that compares each candidate with the unchanged original
    spends half of its forward passes on the original.

    What to do

    Compute it once before the loop and keep the result; on the host, if the loop needs the device memory.

    Fix safety

    No fix: the source does not prove that a call is pure.

    Not reported

    - Models that the loop trains or changes, and inputs that the loop sets.
    - Calls with dropout or sampling, and models that receive only a count and draw the rest.
    - Warm-up and timing loops, loops over seeds and trials.
    - Cheap calls, attribute reads, and functions of weights that are being trained.

    References

    - `torch.no_grad`: https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    code, name = "TPL506", "invariant-recompute"
    impact = Impact.MEDIUM
    listens = (Loops(*_MODELS, *_MAKERS, "eigh", "svd", "inv", "pinv"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        if is_forever(node) or starts_afresh(node):
            return
        if only_repeats(node):
            return
        # Most calls train, and most others depend on what the loop sets, which costs less to see than what they call.
        calls = [
            call
            for call in _calls(node, ctx)
            if _may_be_worth_it(call, ctx)
            and is_unchanging(call, node, ctx)
            and not _is_cheap(call, ctx)
            and not is_for_one_turn(call, node, ctx)
        ]
        calls = [
            call
            for call in calls
            if not (
                is_given_counts(ctx.text(call.func), arguments(call), ctx)
                or draws_anew(call, node, ctx)
                or only_shapes(call, ctx)
            )
        ]
        if not calls or trains_inside(node, ctx) or is_timing(node) or is_between_clocks(node, ctx):
            return
        for call in calls:
            certain = is_forward(call, ctx)
            yield self.finding(
                call,
                ctx,
                f"`{short_call(call, ctx)}` is computed in every iteration of this loop, but its inputs never change.",
                advice="Compute it once before the loop and reuse the result.",
                confidence=None if certain else Confidence.MEDIUM,
                related=(ctx.hop(node, "the loop"),),
            )


def _calls(loop: ast.For | ast.AsyncFor | ast.While, ctx: Context) -> Iterator[ast.Call]:
    """Calls of the loop's own body whose result is bound or used; those of inner loops are judged there."""
    for statement in loop.body:
        for part in ctx.walk(statement):
            if isinstance(part, ast.Call) and ctx.loops(part)[:1] == [loop] and arguments(part):
                if not isinstance(ctx.tree.parent(part), ast.Return) and not is_thrown_away(part, ctx):
                    yield part


def _may_be_worth_it(call: ast.Call, ctx: Context) -> bool:
    """Whether a call runs without gradients, or is worth keeping whatever it is: all others are cheap."""
    return ctx.grad_off(call) or ctx.target(call.func) in _KEPT or runs_given_model(call, ctx)


def _is_cheap(call: ast.Call, ctx: Context) -> bool:
    """Whether the call is none of those worth keeping: a forward without gradients, a table, a decomposition."""
    if is_forward(call, ctx):
        return not ctx.grad_off(call)
    target = ctx.target(call.func)
    if target is not None:
        return ctx.heat(call) < Heat.STEP or target not in _KEPT
    return not runs_given_model(call, ctx)
