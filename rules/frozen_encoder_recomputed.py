"""TPL620: a frozen encoder computes the features of the same items again in each epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule
from perflint.api.gradients import frozen_forwards


class FrozenEncoderRecomputed(Rule):
    """A frozen encoder computes the features of the same items again in every epoch.

    What it does

    Reports forward passes of a frozen network, in evaluation mode, on the batches of a loader, in training that makes
    several epochs: `requires_grad` of all of its parameters is False, its input comes from the items alone, and the
    dataset and its `collate_fn` draw no random numbers.

    Why is this slow?

    The encoder is usually far larger than what is trained on its features, so nearly all of each epoch after the first
    computes numbers that are known.

    What to do

    Run the encoder once over the dataset, under `torch.no_grad()`, keep its features on the host or in a file, and
    train on a `TensorDataset` of them. Keep what the trained part reads: a pooled vector takes a few kilobytes per
    item, all positions of a text or a feature map a few megabytes; store those in float16 in a file, or leave it.

    Fix safety

    No fix: the training needs another dataset, and memory or disk for the features.

    Not reported

    - Datasets with random augmentation, and those whose items perflint cannot follow to their end: a transform that is
      passed in, a dataset of a library.
    - Encoders that are in training mode, whose dropout and statistics change the features, or may be.
    - Files that give gradients to any parameter again, and freezing under an option.
    - A single epoch, and options that are off by default.
    - Encoders whose output is only a target of the loss (teachers, perceptual losses).

    Known limitations

    Padding to the longest text of a batch changes the features of models that take no attention mask.

    Measured

    A step of a linear layer on a frozen transformer of four layers and width 256, 16 x 64 positions, forward and
    backward pass: 435 ms, and 0.07 ms on kept features (CPU, 1 thread, torch 2.13).

    References

    - Locally disabling gradients: https://docs.pytorch.org/docs/stable/notes/autograd.html
    - `torch.utils.data.TensorDataset`: https://docs.pytorch.org/docs/stable/data.html
    """

    code, name = "TPL620", "frozen-encoder-recomputed"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("backward", "manual_backward"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        for found in frozen_forwards(node, ctx):
            encoder, is_here = found.there.text(found.call.func), found.there.path == ctx.path
            related = (found.frozen_in.hop(found.frozen, "frozen here"),)
            yield self.finding(
                found.call if is_here else found.through,
                ctx,
                f"`{encoder}` is frozen and computes the features of the same items again in every epoch.",
                advice=f"Run `{encoder}` once over the dataset under `torch.no_grad()`, keep what the trained layers "
                "read, and train on that. Check its size first: items times numbers per item times 4 bytes.",
                impact=None if found.is_large else Impact.LOW,
                related=related if is_here else (*related, found.there.hop(found.call, "runs the encoder")),
            )
