"""Whether the program means to run torch on an accelerator."""

from __future__ import annotations

from perflint.analysis.file_facts import FileFacts
from perflint.torch_model.devices import ACCELERATOR_WORDS

_OTHER_LIBRARIES = frozenset({"paddle", "tensorflow", "jax", "mindspore", "mxnet", "oneflow", "tinygrad", "warp"})


def uses_accelerator(ctx: FileFacts) -> bool:
    """Whether the program means to run torch on an accelerator at all, in this file too: not where it is a program that
    could move nothing. A library without loops over batches or steps runs where the tensors of its users are.
    """
    means_to = ctx.program.mentions(ACCELERATOR_WORDS) or not ctx.program.whole.has_step_loops
    return means_to and not _is_of_another_library(ctx) and not ctx.program.whole.runs_on_host(ctx.path)


def _is_of_another_library(ctx: FileFacts) -> bool:
    """Whether a file computes with a library that has tensors of its own, whose methods go by the same names."""
    tops = {target.partition(".")[0] for target in ctx.summary.imports.values()}
    return not tops.isdisjoint(_OTHER_LIBRARIES) and "torch" not in tops
