"""TPL103: data prepared on the main thread, between the steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule
from perflint.api.loading import (
    LOADER_NAMES,
    SAMPLERS,
    has_no_workers,
    is_derived_loader,
    is_inference_pass,
    is_moved,
    is_of_notebook,
    is_plain_loader,
    is_sampling_loader,
    is_short_of_workers,
    needs_workers,
    only_looks,
    option,
    runs,
    works_on_device,
)

from ._fixes.four_workers import four_workers

_FEW = "Pass `num_workers=` (a few per device) and measure."


class LoaderWithoutWorkers(Rule):
    """A training DataLoader without workers decodes and augments on the main thread while the device is idle.

    What it does

    Reports loaders with `num_workers=0` (the default, or that of an option) whose samples are known to be expensive to
    make, of training, of evaluations that every epoch repeats, and of inference programs; and loaders of one worker
    that decodes and transforms pictures or sounds, of training and of inference programs.

    Why is this slow?

    With `num_workers=0` the main thread makes the next batch only after it has queued the step. Loading and training
    do not overlap.

    What to do

    Pass `num_workers=` and measure. The number of CPU cores divided by the number of devices is a good start.

    Fix safety

    Unsafe, always. Augmentation draws from per-worker seeds, so values change with the number of workers. Iterable
    datasets repeat every sample unless they shard themselves. State that a dataset changes stays in the worker.
    Spawned workers (macOS, Windows, Python 3.14) cannot receive lambdas. The dataset must not use CUDA. Changes
    training.

    Not reported

    - Datasets whose items are simple look-ups (for a `TensorDataset`, two workers were 4.5 times slower than none).
    - Datasets that perflint cannot see, iterable datasets, and those of a handful of items (`__len__` returns 1).
    - Datasets that receive a device (forked workers cannot use CUDA).
    - Loaders that no training loop iterates, and evaluations that a training runs once.
    - Loaders that each step builds again for one batch (it would start its workers again).
    - Datasets whose class is defined in a notebook (spawned workers cannot import it).

    Known limitations

    A sample is known to be expensive if it is read from a file, decoded, augmented or tokenized on each access, if
    the collate function decodes or augments, if rows are transformed lazily or streamed, or if a subgraph is sampled.
    For tiny epochs, starting the workers can cost 100 times the work.

    Measured

    With 2 ms per sample, batches of 16 and a 30 ms step, an epoch took 0.56 s without workers and 0.34 s with two
    (two CPU cores).

    References

    - torch.utils.data, single- and multi-process data loading:
      https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading
    """

    code, name = "TPL103", "loader-without-workers"
    impact = Impact.HIGH
    lasting = True
    listens = (Calls(*LOADER_NAMES, *SAMPLERS, doing=("DataLoader",)),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        samples = is_sampling_loader(node, ctx)
        if not (samples or is_plain_loader(node, ctx) or is_derived_loader(node, ctx)):
            return
        if not has_no_workers(node, ctx):
            if is_short_of_workers(node, ctx):
                what = "One worker decodes and transforms every sample of each batch."
                impact = Impact.LOW if only_looks(node, runs(node, ctx), ctx) else Impact.MEDIUM
                yield self.finding(node, ctx, what, advice=_FEW, impact=impact, confidence=Confidence.MEDIUM)
            return
        dataset = option(node, "dataset", ctx)
        if not samples and (dataset is None or works_on_device(dataset, ctx)):
            return
        loops = runs(node, ctx)
        evaluates = only_looks(node, loops, ctx)
        infers = evaluates and is_inference_pass(node, loops, ctx)
        if not infers and not ctx.program.whole.has_training:
            return
        if evaluates and not infers and not any(loop.again for loop in loops):
            return  # a look at the data, or one evaluation
        if not loops and not samples and ctx.heat(node) >= Heat.STEP:
            return  # made anew for one batch: workers would be started for each
        made_in = ctx.scope(node)
        if not loops and (made_in.function == "<module>" or ctx.program.never_runs(made_in)):
            return  # a script that shows no use for it, or a function that no program calls
        if is_of_notebook(node, ctx):
            return
        if is_moved(node, ctx) if samples else not needs_workers(node, ctx):
            return
        count = option(node, "num_workers", ctx)
        by_default = count is not None and not isinstance(count, ast.Constant)
        asked = (
            f"`{ctx.text(count)}` is 0 by default" if count is not None and by_default else "This loader has no workers"
        )
        yield self.finding(
            node,
            ctx,
            f"{asked}: the main thread makes every batch between two {'forward passes' if infers else 'steps'}.",
            advice="Set it to a few per device by default, and measure." if by_default else _FEW,
            fix=None if by_default else four_workers(node, ctx),
            confidence=Confidence.HIGH if (loops or samples) and not by_default else Confidence.MEDIUM,
            impact=(Impact.LOW if evaluates and not infers else Impact.MEDIUM)
            if evaluates or by_default
            else self.impact,
        )
