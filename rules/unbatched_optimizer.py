"""TPL707: optimizers of libraries that step parameter by parameter, or read a number of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Impact,
    Rule,
    argument,
    is_constant,
    keyword,
    last,
    modules,
)
from perflint.api.gradients import is_over_few_tensors
from perflint.api.loading import uses_accelerator


class UnbatchedOptimizer(Rule):
    """An optimizer updates one parameter after the other, although torch has it for all parameters at once.

    What it does

    Reports the `AdamW` of transformers, the `BertAdam` of its predecessors, and `torch.optim.ASGD` without
    `capturable=True`, in programs that train on an accelerator.

    Why is this slow?

    The optimizers of transformers launch seven operations or more for each parameter: for BERT with its 200
    parameters about 1,500 launches in every step. `torch.optim.AdamW` does the same for all parameters at once.
    `torch.optim.ASGD` keeps its counters on the device, and unless it is `capturable` reads one for each parameter:
    the host blocks that many times in every step.

    What to do

    Write `torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0, fused=True)`. Pass `weight_decay`: its default is
    0.01 there, and 0 in transformers. Pass `capturable=True` to `torch.optim.ASGD`.

    Fix safety

    No fix: a checkpoint of the old optimizer does not fit the new one, and results are equal to rounding only.

    Not reported

    - Programs that use no accelerator or train nothing, and optimizers of a few tensors.
    - Projects that support a torch without the option: 2.0 for `fused`, 2.2 for `capturable` of ASGD.

    Known limitations

    `AdamW(correct_bias=False)` and the schedules of `BertAdam` are reported as well, although torch's optimizer has
    neither: a scheduler of torch has the schedules.

    Measured

    One step of 200 parameters, each by itself and with `torch.optim.AdamW(fused=True)`: 4.87 ms and 1.46 ms for 1,000
    numbers each, 15.6 ms and 6.55 ms for 30,000 (`perflint verify --rule TPL707 --device cpu`, torch 2.13, one
    thread). A step of `torch.optim.ASGD` reads one number for each parameter, 10 for 10 (torch 2.13).

    References

    - `torch.optim.AdamW`: https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    - `torch.optim.ASGD`: https://docs.pytorch.org/docs/stable/generated/torch.optim.ASGD.html
    """

    code, name = "TPL707", "unbatched-optimizer"
    impact = Impact.MEDIUM
    confidence = Confidence.HIGH
    lasting = True
    listens = (Calls(*sorted({last(name) for name in (*modules.UNBATCHED_OPTIMIZERS, modules.READING_OPTIMIZER)})),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        target = ctx.target(node.func)
        reads = target == modules.READING_OPTIMIZER
        if not reads and target not in modules.UNBATCHED_OPTIMIZERS:
            return
        if not ctx.program.whole.has_training or not uses_accelerator(ctx):
            return
        if is_over_few_tensors(argument(node, 0, "params"), ctx):
            return
        name = ctx.text(node.func)
        if not reads and (ctx.torch_version or _FUSED) >= _FUSED:
            yield self.finding(
                node,
                ctx,
                f"`{name}` launches seven operations or more for each parameter in every step.",
                advice="Use `torch.optim.AdamW(..., fused=True)` with the same `weight_decay`: its default is 0.01.",
            )
        elif reads and not _is_on(keyword(node, "capturable")) and (ctx.torch_version or _SINCE) >= _SINCE:
            yield self.finding(
                node,
                ctx,
                f"`{name}` reads a number of each parameter from the device in every step: the host blocks each time.",
                advice="Pass `capturable=True`.",
            )


#: `torch.optim.AdamW(fused=True)` is there since this version.
_FUSED = (2, 0)
#: In this version the option came, and the counters have been on the device since.
_SINCE = (2, 2)


def _is_on(option: ast.expr | None) -> bool:
    return option is not None and not is_constant(option, value=False)
