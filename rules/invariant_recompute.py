"""TPL506: work in a loop whose inputs never change there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Impact, Loops, Rule
from perflint.api.gradients import is_forward
from perflint.api.invariants import unchanging_work
from perflint.api.loops import is_between_clocks, is_forever, is_timing, only_repeats, starts_afresh, trains_inside
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


class InvariantRecompute(Rule):
    """A forward pass of an unchanged model, or another expensive pure call, repeats in a loop with the same inputs.

    What it does

    Reports forward passes without gradients, grids and position tables, decompositions, and arrays made of a whole
    picture (`np.asarray(picture)`) in a loop that changes none of their inputs.

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
    listens = (Loops(*_MODELS, *_MAKERS, "eigh", "svd", "inv", "pinv", "asarray", "array"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        if is_forever(node) or starts_afresh(node):
            return
        if only_repeats(node):
            return
        calls = list(unchanging_work(node, ctx))
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
