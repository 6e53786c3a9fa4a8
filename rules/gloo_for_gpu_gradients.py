"""TPL806: gradients of GPUs that go through the host from process to process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Impact, Phase, Rule
from perflint.api.processes import gloo_backend, is_chosen


class GlooForGpuGradients(Rule):
    """The process group of a training on GPUs uses the backend `gloo`.

    What it does

    Reports `init_process_group("gloo")` in programs that wrap a model in `DistributedDataParallel` for the GPU of each
    process.

    Why is this slow?

    Gloo reduces in host memory: each bucket of gradients is copied from the GPU to the host, sent over sockets, and
    copied back, on every step. NCCL reduces on the GPUs, over NVLink or PCIe, while the backward pass runs.

    What to do

    Pass `"nccl"`. Leave the backend out to get both: NCCL for CUDA tensors, gloo for those on the host.

    Fix safety

    Unsafe: NCCL needs Linux and a GPU for each process, and does not take tensors on the host.

    Not reported

    - Backends that are chosen: by an option, by the machine, or by another call in the program.
    - Programs that wrap a model without `device_ids`, which may train on the host.
    - Tests.

    References

    - torch.distributed, backends: https://docs.pytorch.org/docs/stable/distributed.html
    """

    code, name = "TPL806", "gloo-for-gpu-gradients"
    impact = Impact.HIGH
    numerics = "same to rounding"
    listens = (Calls("init_process_group"),)
    lasting = True
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        backend = gloo_backend(node)
        if backend is None or ctx.target(node.func) != "torch.distributed.init_process_group":
            return
        if ctx.phase(node).phase is Phase.TEST:
            return
        if is_chosen(node, ctx) or not ctx.program.whole.reduces_on_gpus:
            return
        yield self.finding(
            node,
            ctx,
            "With `gloo`, DistributedDataParallel copies all gradients to the host and back on every step.",
            advice='Pass `"nccl"`, which reduces on the GPUs.',
            fix=Fix(
                "Use NCCL",
                Applicability.UNSAFE,
                (ctx.edit.replace(backend, '"nccl"'),),
                reason="NCCL needs a GPU for each process and does not take tensors on the host",
            ),
        )
