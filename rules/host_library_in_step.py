"""TPL123: a library that computes on the host for milliseconds, within a step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Phase, Rule, host_work, last


class HostLibraryInStep(Rule):
    """A library call computes on the host for milliseconds on every step, and the device waits for the host.

    What it does

    Reports, in training and evaluation steps: structural similarity by scikit-image; PESQ, STOI and the BSS metrics of
    sounds; filters, zooms and distance transforms by `scipy.ndimage`; denoising by OpenCV.

    Why is this slow?

    These calls run in the process that queues the work of the device. While they run, no work is queued, so the device
    has nothing to do. They take their arguments from one picture or one sound, so a batch takes as many calls.

    What to do

    Compute the likeness of pictures in batches on the device, for example with torchmetrics. Give the sounds to a
    process pool and go on with the next batch. Move filters of inputs into the dataset, where workers run them, and
    write filters of outputs as operations of tensors.

    Fix safety

    No fix: other implementations round, pad and interpolate differently.

    Not reported

    - Datasets, transforms and collate functions, which workers run.
    - Functions that run once or that a condition leaves out of most steps.

    Known limitations

    The sizes of pictures and sounds are not known. For small ones the calls take less than a millisecond.

    Measured

    On one core: structural similarity of two pictures of 512 x 512 pixels and 3 channels, 114 ms (scikit-image 0.26); a
    median filter of 5 x 5 over one channel, 95 ms, a zoom by 2, 57 ms, and the Euclidean distance transform, 14 ms
    (SciPy 1.17); for sounds of 3 s at 16 kHz, PESQ 28 ms (pesq 0.0.4) and STOI 12 ms (pystoi 0.4.1); the BSS metrics of
    2 sounds of 4 s at 8 kHz, 170 ms (mir_eval 0.8).

    References

    - torchmetrics, structural similarity: https://lightning.ai/docs/torchmetrics/stable/
    - concurrent.futures: https://docs.python.org/3/library/concurrent.futures.html
    """

    code, name = "TPL123", "host-library-in-step"
    impact = Impact.MEDIUM
    listens = (Calls(*sorted({last(name) for name in host_work.SLOW_ON_HOST})),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        target = ctx.target(node.func)
        if target not in host_work.SLOW_ON_HOST or ctx.role(node) == "data":
            return
        trains = ctx.phase(node).phase is Phase.TRAIN
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}(...)` computes on the host for milliseconds, on every step; the device waits.",
            advice=_advice(target, trains=trains),
            confidence=Confidence.MEDIUM,
        )


def _advice(target: str, *, trains: bool) -> str:
    if target in host_work.LIKENESS:
        return "Compute it for the whole batch on the device, for example with torchmetrics."
    if target in host_work.SOUNDS:
        return "Give the sounds to a process pool, and go on with the next batch."
    if trains:
        return "Move it into the dataset if it only needs inputs; otherwise write it with tensors."
    return "Write it as operations of tensors on the device, for the whole batch."
