"""TPL206: several calls of an experiment tracker in one step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, Tier, arguments_of, trackers, walk
from perflint.api.loops import names_in
from perflint.api.waits import certainty_on_device, device_read, is_exceptional, is_tracker, region_of, works_on_host

_NAMES = (*sorted(trackers.TRACKER_METHODS), *sorted({name.rpartition(".")[2] for name in trackers.TRACKER_FUNCTIONS}))

#: So many calls with numbers that are on the host already are a cost of their own.
_MANY = 3
#: What only tensors have, and trackers are given for the values on the device.
_READ = ("item", "grad")


class LogEveryMicrobatch(Rule):
    """Several tracker calls on every step add host work before the next kernel.

    What it does

    Reports several calls of an experiment tracker (`wandb.log`, `add_scalar`) that run on every step.

    Why is this slow?

    Each call checks, converts and queues its values on the host, and reads values that are device tensors. The reads
    are most of the cost (see sync-in-hot-loop and tensor-formatting). The rest is the tracker's own Python code, once
    per call.

    What to do

    Collect the values of a step in one dict, and log it every N steps.

    Fix safety

    No fix: fewer calls change what the tracker shows.

    Not reported

    - Calls under an every-N guard or once per epoch.
    - One call per step, or two calls with numbers that are already on the host.
    - Calls of different trackers.

    Known limitations

    Merging calls of `wandb.log` changes its step counter, unless `step=` is passed. Therefore this rule is off by
    default.

    References

    - torch.utils.tensorboard: https://docs.pytorch.org/docs/stable/tensorboard.html
    """

    code, name = "TPL206", "log-every-microbatch"
    tier = Tier.EXTRA
    impact = Impact.LOW
    listens = (Calls(*_NAMES),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not is_tracker(node, ctx) or works_on_host(node, ctx) or is_exceptional(node, ctx):
            return
        if any(isinstance(loop, ast.For) and "epoch" in names_in(loop.target) for loop in ctx.loops(node)[:1]):
            return  # a step of the whole graph, with evaluations beside it
        calls = [
            part
            for part in ctx.walk(region_of(node, ctx))
            if isinstance(part, ast.Call) and ctx.heat(part) >= Heat.STEP and is_tracker(part, ctx)
        ]
        if len(calls) < 2 or node is not min(calls, key=lambda part: (part.lineno, part.col_offset)):
            return
        if len(calls) < _MANY and not any(_reads(part, ctx) for part in calls):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` {ctx.heat(node).phrase} and is the first of {len(calls)} tracker calls there.",
            advice="Collect the values in one dict, and log it every N steps.",
        )


def _reads(call: ast.Call, ctx: Context) -> bool:
    """Whether a call is given a tensor of the device, or what is fetched from one for it."""
    given = arguments_of(call)
    return any(
        (isinstance(part, ast.Attribute) and part.attr in _READ)
        or device_read(part, ctx) is not None
        or certainty_on_device(part, ctx) is not None
        for value in given
        for part in walk(value)
        if isinstance(part, ast.expr)
    )
