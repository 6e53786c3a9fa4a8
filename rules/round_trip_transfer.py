"""TPL112: values that go from the device to the host and back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Claims, Confidence, Context, Finding, Heat, Impact, Rule, has_unpacking

from ._shared.memory import is_load_shedding
from ._shared.transfers import brought_down
from ._shared.wording import short_text


class RoundTripTransfer(Rule):
    """A value is fetched from the device and sent back to it in the same step: two copies and a wait for nothing.

    Why it is slow
    `.cpu()`, `.numpy()`, `.tolist()` and `.item()` wait until the device has finished all that is queued, and copy;
    the way back copies again and, without pinned memory, waits again. Between the two the device has nothing to do.

    What to write instead
    The same operation on the device: tensors have what is commonly done on the way (indexing, sorting, stacking, sums).
    For a tensor from a number, `loss.detach()` instead of `torch.tensor(loss.item(), device=...)`.

    When to leave it
    Algorithms that only numpy, scipy or the host have (assignment, metrics), offloading, and copies that are kept.
    perflint is silent as soon as something other than a tensor operation stands between the two copies, and under a
    switch that gives up speed for memory (`offload`).

    Fix safety
    No fix: the operations between the copies have to be moved, too.
    """

    code, name = "TPL112", "round-trip-transfer"
    impact = Impact.HIGH
    listens = (Calls("to", "cuda", "tensor", "as_tensor"),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("to-device", waits=False)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if has_unpacking(node) or ctx.role(node) == "data":
            return
        down = brought_down(node, ctx)
        if down is None or is_load_shedding(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx, 60)}` sends back to the device what `{short_text(down, ctx, 60)}` fetched from "
            f"it: {_often(ctx.heat(node))} two copies and a wait.",
            advice="Stay on the device: use the tensor itself, and tensor operations on the way.",
            confidence=Confidence.HIGH if ctx.kind(node).certainty is Confidence.HIGH else Confidence.MEDIUM,
            related=(ctx.hop(down, ctx.text(down)),) if down.lineno != node.lineno else (),
        )


def _often(heat: Heat) -> str:
    return {Heat.SAMPLE: "for every sample", Heat.MICROBATCH: "every micro-batch"}.get(heat, "every step")
