"""TPL309: a tensor that is joined to all that came before, on every turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Nodes,
    Rule,
    is_name,
    mentions_name,
    walk,
)
from perflint.api.loops import (
    NUMPY_JOINS,
    TORCH_JOINS,
    WRITTEN_IN_METRICS,
    Grown,
    adds_the_same,
    are_elements,
    are_generated,
    are_moved_over,
    encodes_items,
    goes_over_a_handful,
    growing_loop,
    grown_at,
    grown_attributes,
    impact_of_growth,
    is_now_and_then,
    is_of_a_kind,
    may_be_a_number,
    need_not_be_many,
    size_reads,
    turns_few_times,
)
from perflint.api.phases import runs_rarely

from ._fixes.grown_list import collected_in_list

_ON_HOST = ("numpy.append", "numpy.concatenate", "numpy.vstack", "numpy.hstack")
_JOINS = ("cat", "concat", "concatenate", "append", "vstack", "hstack")
#: Loops of so few turns are not worth a word.
_FEW = 8


class GrowingCat(Rule):
    """Concatenating to a growing tensor on every iteration copies all earlier data again.

    What it does

    Reports `x = torch.cat([x, new])`, `np.append` and `np.concatenate` in loops that grow `x`.

    Why is this slow?

    Each call allocates a new tensor and copies all of `x` into it, so the bytes moved grow with the square of the
    number of iterations.

    What to do

    Append to a list and call `torch.cat` once after the loop. Preallocating and writing rows is no better for small
    rows. Keep the state of a metric as a list too, and concatenate where the result is computed.

    Fix safety

    Unsafe: the parts stay alive until they are concatenated, and shape errors or in-place writes surface only there.
    The value from before the loop stays the first part, so type and result are the same bits, also for zero
    iterations. No fix if the loop writes to a part.

    Not reported

    - Loops whose iterations read the concatenated value: key-value caches, token-by-token decoding, sliding windows.
    - Loops of few iterations, over few things (layers, devices, crops), or over things that are not known to be many.
    - One number for each item, beside the forward of a model; what methods of it give, where the loop runs once.
    - NumPy arrays of numbers beside the steps, and rows of a few numbers.
    - Parts that are slices of one tensor; iterations that generate what they add, or run a model on one item.
    - Tests, checkpoint conversions, and cold code of files that do not use torch.

    Measured

    Rows of 64 floats, against a list that is concatenated once: 12 times as long for 100 iterations, 28 times for
    1,000, 87 times for 5,000. Writing rows into a preallocated tensor took 13 times as long as the list (CPU, torch
    2.13).

    References

    - `torch.cat`: https://docs.pytorch.org/docs/stable/generated/torch.cat.html
    """

    code, name = "TPL309", "growing-cat"
    numerics = "same bits"
    impact = Impact.HIGH
    listens = (
        Calls(*_JOINS, repeated=True),
        Nodes(ast.ClassDef, mentioning=("Metric", "EpochMetric", "add_state"), written=WRITTEN_IN_METRICS),
    )

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.ClassDef):
            yield from self._states(node, ctx)
            return
        assert isinstance(node, ast.Call)
        grown = grown_at(node, ctx)
        if grown is None:
            return
        loop = growing_loop(grown, ctx)
        if (
            loop is None
            or goes_over_a_handful(loop)
            or is_of_a_kind(grown.statement, loop, ctx)
            or turns_few_times(loop, ctx)
        ):
            return
        if adds_the_same(grown, loop, ctx) or _is_trifling(node, ctx):
            return
        if encodes_items(loop, ctx) or are_generated(grown.added, loop, ctx):
            return
        if are_moved_over(grown.added, loop) or _goes_over_few(grown, loop, ctx):
            return
        if any(may_be_a_number(part, loop) for part in grown.added):
            return
        reads, impact = size_reads(grown, loop, ctx), impact_of_growth(grown, loop, ctx)
        if reads is None or impact is None:
            return
        yield self.finding(
            node,
            ctx,
            f"Every iteration of this loop copies all of `{grown.name}` to add `{grown.new}`.",
            advice=f"Append `{grown.new}` to a list, and concatenate the list once after the loop.",
            impact=impact,
            confidence=Confidence.MEDIUM if reads else None,
            fix=None if reads else collected_in_list(grown, loop, ctx),
        )

    def _states(self, node: ast.ClassDef, ctx: Context) -> Iterator[Finding]:
        """What a metric or a buffer holds, joined to all that came before on each call."""
        for grown in grown_attributes(node, ctx, (*TORCH_JOINS, *NUMPY_JOINS)):
            yield self.finding(
                grown.call,
                ctx,
                f"Every call of `{grown.method}` copies all of `self.{grown.name}` to add `{grown.new}`.",
                advice=f"Append `{grown.new}` to a list, and concatenate the list once where its values are read.",
                confidence=Confidence.MEDIUM,
            )


def _goes_over_few(grown: Grown, loop: ast.stmt, ctx: Context) -> bool:
    """Whether code that runs once, or joins arrays on the host, goes over something of which there need not be many,
    as far as names say: the boxes of a picture. For tensors the loops around it count, where the joined value outlives
    their turns.
    """
    node = grown.call
    on_host = ctx.is_call_of(node, *_ON_HOST)
    if ctx.heat(node) >= Heat.EPOCH and not on_host and not are_elements(grown.added, loop):
        return False
    outer = [] if on_host else ctx.loops(loop)
    around = [item for item in outer if isinstance(item, ast.For) and not _begins_in(item, grown.name)]
    return all(need_not_be_many(node, item, ctx) for item in (loop, *around))


def _begins_in(loop: ast.stmt, name: str) -> bool:
    return any(
        isinstance(part, ast.Assign)
        and any(is_name(target, name) for target in part.targets)
        and not mentions_name(part.value, name)
        for part in walk(loop)
    )


def _is_trifling(node: ast.AST, ctx: Context) -> bool:
    """Whether nobody waits for the copies: in tests, where a model is converted, and in scripts without torch."""
    is_idle = ctx.heat(node) < Heat.STEP and not ctx.mentions("torch")
    return is_idle or runs_rarely(node, ctx) or is_now_and_then(node, ctx)
