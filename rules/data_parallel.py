"""TPL801: training through `nn.DataParallel`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Impact, Rule, argument, callee_name, distributed
from perflint.api.phases import asks_hardware
from perflint.api.processes import (
    copies_module,
    has_process_for_each,
    is_data_parallel,
    is_offered,
    option_of_several,
    runs_forward,
    trains_wrapped,
)


class DataParallel(Rule):
    """`nn.DataParallel` trains slower than one process per device.

    What it does

    Reports `nn.DataParallel(...)` in a program that trains, and classes of the project that derive from it.

    Why is this slow?

    Every forward pass copies the module to each device, scatters the batch from the first device, runs the replicas
    in threads that share the interpreter lock, and gathers the outputs on the first device. PyTorch's documentation
    advises against it.

    What to do

    Use `torch.nn.parallel.DistributedDataParallel`, one process per device (started by `torchrun`), with a
    `DistributedSampler`. It pays on a single machine, too.

    Fix safety

    No fix: launcher, sampler and everything that only one process may do must change.

    Not reported

    - Programs that only evaluate, and wrappers that only match the `module.` keys of a checkpoint: no forward goes
      through them.
    - `isinstance(model, nn.DataParallel)`, annotations, a single device id, and tests.
    - Code that offers the wrapper by its name for others to choose.
    - Programs that put the same model under DistributedDataParallel in another branch, for one process on each device,
      unless an option asks one process for several.
    - An option that names one device by default, or counts one, has low impact.

    References

    - `torch.nn.DataParallel`: https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
    - `torch.nn.parallel.DistributedDataParallel`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    """

    code, name = "TPL801", "data-parallel"
    impact = Impact.HIGH
    lasting = True
    listens = (Calls("DataParallel", *distributed.DERIVED_DATA_PARALLEL, doing=("DataParallel",)),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        certainty = ctx.once(_certainty, node)
        if certainty is None:
            return
        model, option = argument(node, 0, "module"), option_of_several(node, ctx)
        what = f"`{ctx.text(model)}`" if model is not None and len(ctx.text(model)) < 40 else "the model"
        where = f"Only with several `{option}`:" if option else "With several devices,"
        yield self.finding(
            node,
            ctx,
            f"{where} every forward pass copies {what} to each and gathers the outputs, in threads of one process.",
            advice="Use `torch.nn.parallel.DistributedDataParallel` with `torchrun` and a `DistributedSampler`.",
            confidence=certainty,
            impact=_impact(node, ctx),
            block=ctx.once(_first_in_file, ctx.tree.module),
        )


def _certainty(node: ast.Call, ctx: Context) -> Confidence | None:
    """How sure it is that a wrapper copies a model that is trained; None where it does not, or is none."""
    if not node.args + node.keywords or not is_data_parallel(node, ctx):
        return None
    if not copies_module(node, ctx) or is_offered(node, ctx) or not runs_forward(node, ctx):
        return None
    certainty = trains_wrapped(node, ctx)
    return None if certainty is None or has_process_for_each(node, ctx) else certainty


def _impact(node: ast.Call, ctx: Context) -> Impact:
    """Low where an option names one device by default; less where a test asks the machine: for most that is one
    device.
    """
    if option_of_several(node, ctx):
        return Impact.LOW
    asked = [test for test, holds in ctx.conditions(node) if holds and isinstance(test, ast.Compare)]
    return Impact.MEDIUM if any(asks_hardware(test, ctx) for test in asked) else Impact.HIGH


def _first_in_file(module: ast.Module, ctx: Context) -> ast.Call | None:
    """Wrappers of one file are one decision, told at the first of them."""
    calls = (part for part in ast.walk(module) if isinstance(part, ast.Call) and callee_name(part)[:1].isupper())
    found = (call for call in calls if ctx.once(_certainty, call) is not None)
    return min(found, key=lambda call: (call.lineno, call.col_offset), default=None)
