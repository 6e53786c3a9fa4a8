"""TPL804: Python objects sent between processes on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, callee_name

_OBJECTS = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list")
_TARGETS = tuple(
    f"{module}.{name}" for module in ("torch.distributed", "torch.distributed.distributed_c10d") for name in _OBJECTS
)
_TENSORS = {
    "all_gather_object": "all_gather_into_tensor",
    "gather_object": "gather",
    "broadcast_object_list": "broadcast",
    "scatter_object_list": "scatter",
}


class ObjectCollectiveInHotLoop(Rule):
    """A collective of Python objects on every step pickles them, and synchronizes host and device several times.

    What it does

    Reports `all_gather_object`, `gather_object`, `broadcast_object_list` and `scatter_object_list` in code that runs
    every step.

    Why is this slow?

    Each call pickles the object, copies the bytes to the device (with NCCL), exchanges the sizes, reads the largest
    size back on the host, exchanges the padded bytes, copies them to the host and unpickles them. Every process blocks
    until the slowest one is there, in the middle of a step.

    What to do

    Exchange tensors: stack the numbers and call `all_reduce` or `all_gather_into_tensor` once. Collect objects on each
    process, and exchange them once per epoch. A second process group on gloo keeps objects off the device.

    Fix safety

    No fix: the shape of a tensor that holds the same has to be designed.

    Not reported

    - Calls per epoch, behind an every-N guard, or in an error path.
    - Evaluation: its results are exchanged per batch, but are mostly small beside its work.

    References

    - `torch.distributed`, collective functions: https://docs.pytorch.org/docs/stable/distributed.html
    """

    code, name = "TPL804", "object-collective-in-hot-loop"
    impact = Impact.HIGH
    listens = (Calls(*_OBJECTS),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not ctx.is_call_of(node, *_TARGETS) or ctx.role(node) == "eval":
            return
        name = callee_name(node)
        yield self.finding(
            node,
            ctx,
            f"`{name}` {ctx.heat(node).phrase}: it pickles, copies to the device and back, and blocks.",
            advice=f"Exchange a tensor (`torch.distributed.{_TENSORS[name]}`), or the objects once per epoch.",
        )
