"""TPL111: training with batches of one sample."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Impact, Rule, Tier, is_constant, keyword
from perflint.api.loading import dataset_work, is_plain_loader, option, purpose
from perflint.api.names import BATCH_SIZE_OPTION, EVALUATING_FILE, OF_MANY_SHAPES
from perflint.api.phases import accumulates_by_default, is_option, names_of_option, steps_here

#: Libraries whose samples are whole graphs.
_GRAPHS = ("dgl", "torch_geometric")

#: What cuts a model up among devices, because it fills them.
_SHARDED = (
    *("FSDP", "FullyShardedDataParallel", "fully_shard", "GeminiPlugin", "LowLevelZeroPlugin"),
    *("HybridParallelPlugin", "MoeHybridParallelPlugin"),
)


class BatchSizeOne(Rule):
    """With a batch size of one, every step pays its fixed cost for a single sample.

    What it does

    Reports training loaders with `batch_size=1`, and options whose default batch size is 1.

    Why is this slow?

    A step launches the same number of kernels for every batch size. For small batches, launching the kernels is what
    the step costs.

    What to do

    Use the largest batch that fits in memory, and adapt the learning rate and its schedule. Gradient accumulation
    changes the batch of the optimizer only; it does not reduce this cost.

    Fix safety

    No fix: another batch size changes training.

    Not reported

    - Models that fill the device with one sample: accumulation is on by default, or the model is split across
      devices.
    - Samples of different shapes, datasets that return whole batches, and a `batch_sampler`.
    - Evaluation and reinforcement learning.

    Measured

    256 samples, a very small model: batches of one took 26 times as long as batches of 32 (CPU).

    References

    - torch.utils.data, loading batched and non-batched data:
      https://docs.pytorch.org/docs/stable/data.html#loading-batched-and-non-batched-data
    """

    code, name = "TPL111", "batch-size-one"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    listens = (Calls("DataLoader", "add_argument"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not ctx.program.whole.has_training:
            return
        if EVALUATING_FILE.search(ctx.path) or ctx.mentions(*_GRAPHS) or ctx.mentions(*_SHARDED):
            return
        message = _of_option(node, ctx) if is_option(node) else _of_loader(node, ctx)
        if message:
            yield self.finding(
                node,
                ctx,
                message,
                advice="Use the largest batch size that fits in memory, and adapt the learning rate.",
                confidence=Confidence.MEDIUM,
            )


def _of_option(node: ast.Call, ctx: Context) -> str:
    name = next(filter(BATCH_SIZE_OPTION.search, names_of_option(node)), None)
    if (
        name is None
        or not is_constant(keyword(node, "default"), 1)
        or not steps_here(ctx)
        or accumulates_by_default(ctx)
    ):
        return ""
    return f"`{name}` is 1 by default: every training step pays its fixed cost for one sample."


def _of_loader(node: ast.Call, ctx: Context) -> str:
    if not is_plain_loader(node, ctx) or not is_constant(option(node, "batch_size", ctx), 1):
        return ""
    if option(node, "batch_sampler", ctx) is not None or option(node, "collate_fn", ctx) is not None:
        return ""
    dataset = option(node, "dataset", ctx)
    if purpose(node, ctx) != "train" or dataset is None or dataset_work(node, ctx) == "iterable":
        return ""
    if OF_MANY_SHAPES.search(ctx.text(dataset)) or any(OF_MANY_SHAPES.search(ref.name) for ref in ctx.refs(dataset)):
        return ""
    return "This training loader has batch size 1: every step pays its fixed cost for one sample."
