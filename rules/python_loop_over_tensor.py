"""TPL603: a Python loop that goes through a tensor one index at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Loops, Phase, Rule
from perflint.api.loops import computed_by_index, launches_by_row, stacked_rows
from perflint.api.names import OVER_FEW_PARTS
from perflint.api.waits import TurnRead, read_by_turns

#: Text of an expression up to this length is shown whole.
_SHORT = 60
_BATCHED = "Run them on the whole batch: `torch.bmm` and convolutions with `groups` take other weights for each row."
_READ = "Read all values once before the loop with `.tolist()`, or use operations on the whole tensor."
_COLLECTED = "Collect the values on the device and read them once after the loop: `torch.stack(values).tolist()`."
_DECIDED = "Decide for all rows at once, with operations on the whole tensor: `torch.where` takes the place of a test."


class PythonLoopOverTensor(Rule):
    """A Python loop computes one row of a tensor at a time where one operation computes all rows.

    What it does

    Reports loops on the hot path that read an element of a device tensor in each iteration, compute one row from the
    same row of other tensors, run several operations on each row of `x.split(1)`, add up or list what each row gives,
    write the rows that pass a test or that a list names, or fill a square mask row by row.

    Why is this slow?

    Each iteration slices the tensor, launches kernels for one row and writes the result. If it reads an element on
    the host (`x[i].item()`, `if mask[i]:`), it also synchronizes in each iteration.

    What to do

    Apply the operation to the whole tensor: `torch.arange(n)` for the index, and broadcasting for a shared operand.
    If the host must decide by each value, call `x.tolist()` once before the loop (one synchronization) and loop over
    Python numbers.

    Fix safety

    No fix: how the operands broadcast depends on their shapes.

    Not reported

    - Iterations that read what an earlier one wrote.
    - Rows of different lengths.
    - Loops of few iterations, such as over layers, heads or levels.

    Measured

    1,000 iterations of one number each took 1,500 times as long as one operation on all of them. A loop over
    `x.tolist()` is 32 times as fast as a loop over the tensor (CPU).

    References

    - Broadcasting semantics: https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    - `torch.Tensor.tolist`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.tolist.html
    """

    code, name = "TPL603", "python-loop-over-tensor"
    impact = Impact.HIGH
    listens = (
        Loops("range", "enumerate", "zip", "append", "item", "tolist", "nonzero", "unique", "int", "float", "copy_"),
        Calls("stack", "cat", "concat", "vstack", "sum"),
    )

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Call):
            yield from self._stacked(node, ctx)
            return
        if not isinstance(node, ast.For) or ctx.body_heat(node) < Heat.STEP:
            return
        read = read_by_turns(node, ctx) if not OVER_FEW_PARTS.search(ctx.text(node.target)) else None
        # TPL202 tells of a test itself: beside a step that is trained, the turns are one more thing to mend.
        if read is not None and (not read.is_tested or _trains(node, ctx)):
            yield self._reads(node, read, ctx)
            return
        name = computed_by_index(node, ctx)
        rows = launches_by_row(node, ctx) if name is None else None
        if name is None and rows is None:
            return
        does = f"computes `{name}` one index" if rows is None else f"runs its operations on one row of `{rows}`"
        yield self.finding(
            node,
            ctx,
            f"This loop {does} at a time, although its iterations are independent.",
            advice=f"Compute all of `{name}` with one operation on whole tensors." if rows is None else _BATCHED,
            confidence=Confidence.MEDIUM,
            impact=Impact.HIGH if _trains(node, ctx) else Impact.MEDIUM,
        )

    def _stacked(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`torch.stack([f(x[i]) for i in range(len(x))])`, and `sum(f(row) for row in x)`."""
        rows = stacked_rows(node, ctx)
        if rows is None or ctx.heat(rows.elt) < Heat.STEP:
            return
        done = "added up" if ctx.is_call_of(node, "sum") else "stacked"
        yield self.finding(
            rows,
            ctx,
            f"These rows are computed one at a time and {done}, although they are independent.",
            advice="Compute all of them with one operation on the whole tensor.",
            confidence=Confidence.MEDIUM,
            impact=Impact.HIGH if _trains(node, ctx) else Impact.MEDIUM,
        )

    def _reads(self, node: ast.For, read: TurnRead, ctx: Context) -> Finding:
        text = ctx.text(read.at)
        what = f"`{text}`" if len(text) <= _SHORT else "a value of it"
        does = f"reads `{read.tensor}` one element at a time"
        if read.is_computed:
            does = f"goes over `{read.tensor}` one row at a time"
        return self.finding(
            node,
            ctx,
            f"This loop {does}: the host blocks for {what} in every iteration.",
            advice=_READ if not read.is_computed else _DECIDED if read.is_tested else _COLLECTED,
            confidence=Confidence.MEDIUM,
            # Few kernels are queued for each read; what does not train waits for its results in any case.
            impact=Impact.HIGH if _trains(node, ctx) else Impact.LOW,
            related=(replace(ctx.hop(read.at, "read on the host in every iteration"), code=self.code),),
        )


def _trains(node: ast.AST, ctx: Context) -> bool:
    return ctx.phase(node).phase is Phase.TRAIN
