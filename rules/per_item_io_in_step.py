"""TPL110: files read one by one in the training loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, Tier, keyword, loaders


class PerItemIoInStep(Rule):
    """The training loop itself reads and decodes a file per sample, and the device waits for the disk.

    What it does

    Reports file reads and decoding (images, arrays, audio) per sample in the body of the training step.

    Why is this slow?

    The loop reads one file after the other between two steps, again on every epoch. In a loader with workers the same
    work overlaps with the steps.

    What to do

    Write a `Dataset` whose `__getitem__` reads one file, and a `DataLoader` with workers. Read data that fit into
    memory once, before the loop.

    Fix safety

    No fix: the reads must move to a dataset.

    Not reported

    - Slices of tensors or open memory-mapped arrays: these are faster than a `DataLoader`.
    - Files that hold a whole shard of batches.
    - Checkpoints, and evaluation.

    Measured

    With 2 ms per sample, batches of 16 and a 30 ms step, an epoch took 0.56 s without workers and 0.34 s with two
    (two CPU cores).

    References

    - torch.utils.data: https://docs.pytorch.org/docs/stable/data.html
    """

    code, name = "TPL110", "per-item-io-in-step"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    listens = (Calls(*sorted({name.rpartition(".")[2] for name in loaders.FILE_READERS})),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if ctx.target(node.func) not in loaders.FILE_READERS:
            return
        if ctx.role(node) != "train" or ctx.grad_off(node) or keyword(node, "mmap_mode") is not None:
            return
        if not any(ctx.is_root_loop(loop) for loop in ctx.loops(node)) or not _varies(node, ctx):
            return  # one file for all steps is another matter, and a loader's own code reads in its workers
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}(...)` {ctx.heat(node).phrase} in the training loop itself, and the device "
            "waits for the file.",
            advice=("Read it in a `Dataset` with a `DataLoader` that has workers, or read everything before the loop."),
            confidence=Confidence.MEDIUM,
        )


def _varies(node: ast.Call, ctx: Context) -> bool:
    """Whether which file is read changes from turn to turn of the innermost loop."""
    loop = ctx.loops(node)[0]
    return bool(node.args) and not ctx.inference.flow.is_invariant(node.args[0], loop)
