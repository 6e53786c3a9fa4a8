"""TPL103: data prepared on the main thread, between the steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Confidence, Context, Finding, Fix, Impact, Rule

from ._shared.datasets import is_moved, is_of_notebook, needs_workers, works_on_device
from ._shared.epochs import runs, use
from ._shared.loaders import (
    LOADER_NAMES,
    SAMPLERS,
    is_derived_loader,
    is_plain_loader,
    is_sampling_loader,
    option,
    purpose,
    workers,
)


class LoaderWithoutWorkers(Rule):
    """A training loader without workers decodes and augments on the main thread while the device waits.

    Why it is slow
    With `num_workers=0`, the default, the next batch is made after the step has been queued, in the same thread. With
    2 ms per sample, batches of 16 and a 30 ms step, an epoch took 0.56 s without and 0.34 s with two workers
    (measured on two CPU cores).

    What to write instead
    `num_workers=` a few per device (the number of cores divided by the number of devices is a start), measured.

    When to leave it
    Data that lies in memory: for a `TensorDataset` two workers were 4.5 times slower than none, and for tiny epochs
    the cost of starting them is 100 times the work. perflint speaks where making a batch is known to be work: a sample
    is read from a file, decoded, augmented or tokenized each time it is asked for, the collate function decodes or
    augments, rows are transformed lazily or stream in, or a subgraph is cut out. It is silent where the items are plain
    look-ups, where it cannot see the dataset, for iterable datasets, for datasets that are told a device (workers that
    are forked cannot use CUDA), for loaders that no training runs through, and for a dataset whose class stands in a
    notebook (workers that are spawned do not find it there).

    Fix safety
    Unsafe, always: augmentation draws from per-worker random seeds (values change with the number of workers),
    iterable datasets repeat every sample unless they shard themselves, changes that a dataset makes to itself stay in
    the worker, lambdas cannot be sent to workers that are spawned (macOS, Windows, Python 3.14), and CUDA must not be
    used in the dataset. Changes training.
    """

    code, name = "TPL103", "loader-without-workers"
    impact = Impact.HIGH
    listens = (Calls(*LOADER_NAMES, *SAMPLERS),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        samples = is_sampling_loader(node, ctx)
        if workers(node) != "none" or not (samples or is_plain_loader(node, ctx) or is_derived_loader(node, ctx)):
            return
        if not ctx.program.whole.has_training or purpose(node, ctx) == "eval":
            return
        dataset = option(node, "dataset")
        if not samples and (dataset is None or works_on_device(dataset, ctx)):
            return
        loops = runs(node, ctx)
        if loops and all(use(loop, ctx) == "look" for loop in loops):
            return  # a look at the data, or an evaluation
        if not loops and ctx.scope(node).function == "<module>":
            return  # a script that shows no use for it
        if is_of_notebook(node, ctx):
            return
        if is_moved(node, ctx) if samples else not needs_workers(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            "This loader has no workers, so every batch is made on the main thread between two steps.",
            advice="Pass `num_workers=` (a few per device) and measure.",
            fix=Fix(
                "Load with four workers",
                Applicability.UNSAFE,
                (ctx.edit.set_keyword(node, "num_workers", "4"),),
                reason="augmentation draws from per-worker seeds, what the dataset changes stays in the worker, and an "
                "iterable dataset gives its samples to every worker",
                numerics="changes training",
            ),
            confidence=Confidence.HIGH if loops or samples else Confidence.MEDIUM,
        )
