"""TPL122: an array that a step goes through in a Python loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Heat, Impact, Loops, Phase, Rule
from perflint.api.loops import goes_by_element


class ArrayLoopInStep(Rule):
    """A Python loop goes through an array one element at a time on every step, and the device waits for the host.

    What it does

    Reports loops in forward passes, losses and metrics that read, compare or fill the elements of NumPy arrays or of
    tensors on the host: nested loops, loops over tensors, and loops with many elements in each iteration.

    Why is this slow?

    Python takes 0.1 us to 5 us for each element, so a loop over a batch takes milliseconds. The host queues no work
    for the device in this time.

    What to do

    Compute the array with operations on whole arrays. Where Python must decide by each value, call `x.tolist()` once
    before the loop. Where elements depend on earlier ones, compile the loop with numba.

    Fix safety

    No fix: how the operands broadcast depends on their shapes.

    Not reported

    - Loops of fewer than 8 iterations, such as over classes or levels.
    - Elements that depend on other elements, loops that end early, and loops that numba compiles.
    - Loops that spend their time in other calls, such as drawing.
    - Statistics of the data that are computed once.

    Measured

    Distances of 17 points in 32 samples: 1.2 ms in a loop, 0.016 ms with operations on whole arrays.

    References

    - NumPy, broadcasting: https://numpy.org/doc/stable/user/basics.broadcasting.html
    - `torch.Tensor.tolist`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.tolist.html
    """

    code, name = "TPL122", "array-loop-in-step"
    impact = Impact.MEDIUM
    listens = (Loops(),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.For) or ctx.body_heat(node) < Heat.STEP or ctx.role(node) == "data":
            return
        found = goes_by_element(node, ctx)
        if found is None:
            return
        trains = ctx.phase(node).phase is Phase.TRAIN
        yield self.finding(
            node,
            ctx,
            f"This loop goes through `{found.array}` one element at a time in Python, on every step.",
            advice="Use operations on whole arrays, or read all values once with `.tolist()`.",
            confidence=Confidence.MEDIUM,
            impact=Impact.MEDIUM if trains or found.is_slow else Impact.LOW,
        )
