"""TPL112: values that go from the device to the host and back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Claims, Confidence, Context, Finding, Heat, Impact, Rule, has_unpacking
from perflint.api.invariants import round_trip
from perflint.api.phases import is_load_shedding
from perflint.api.transfers import is_pass
from perflint.api.waits import impact_at, in_host_search
from perflint.api.words import short_text


class RoundTripTransfer(Rule):
    """A value is copied from the device to the host and back in the same step: two copies and a synchronization.

    What it does

    Reports a device-to-host read (`.cpu()`, `.numpy()`, `.tolist()`, `.item()`) whose result becomes a device tensor
    again, with only tensor operations in between.

    Why is this slow?

    The read blocks the host until all queued GPU work has finished. The copy back, from pageable memory, blocks
    again. The device is idle in between.

    What to do

    Run the same operation on the device: tensors have indexing, sorting, stacking and reductions. For a tensor from a
    number write `loss.detach()`, not `torch.tensor(loss.item(), device=...)`.

    Fix safety

    No fix: the operations between the two copies must move to the device, too.

    Not reported

    - Algorithms that exist only in numpy, scipy or on the host (assignment, metrics).
    - Anything but a tensor operation between the two copies.
    - Copies that are kept, offloading, and code under an option that trades speed for memory (`offload`).

    References

    - `torch.Tensor.cpu`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.cpu.html
    - `torch.Tensor.detach`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    code, name = "TPL112", "round-trip-transfer"
    minor_beside_reads = True
    impact = Impact.HIGH
    listens = (Calls("to", "cuda", "tensor", "as_tensor"),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("to-device", waits=False)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if has_unpacking(node) or ctx.role(node) == "data":
            return
        fetched = round_trip(node, ctx)
        if not fetched or is_load_shedding(node, ctx) or in_host_search(node, ctx):
            return
        down = fetched[0]
        yield self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx, 60)}` copies the result of `{short_text(down, ctx, 60)}` back to the device: "
            f"{_often(ctx.heat(node))} two copies and a synchronization.",
            advice="Stay on the device: use the tensor itself and tensor operations.",
            confidence=Confidence.HIGH if ctx.kind(node).certainty is Confidence.HIGH else Confidence.MEDIUM,
            impact=_impact(down, ctx),
            related=tuple(ctx.hop(item, ctx.text(item)) for item in fetched if item.lineno != node.lineno),
        )

    def counted(self, node: ast.AST, ctx: Context) -> ast.AST:
        fetched = round_trip(node, ctx) if isinstance(node, ast.Call) else ()
        return fetched[0] if fetched else node


def _impact(down: ast.Call, ctx: Context) -> Impact:
    """Two copies and what the host does meanwhile, beside the wait; of a pass that trains nothing it is the work."""
    return Impact.LOW if is_pass(down, ctx) else max(Impact.MEDIUM, impact_at(down, ctx))


def _often(heat: Heat) -> str:
    return {Heat.SAMPLE: "for every sample", Heat.MICROBATCH: "every micro-batch"}.get(heat, "every step")
