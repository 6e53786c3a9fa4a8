"""Whether a step may leave parts of a model without gradients, and whether DDP is what it is handed to."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.models import RUNS_IN_PARTS
from perflint.ir.calls import callee_name, is_constant
from perflint.syntax.walk import walk

#: What accelerate is told for DDP, and what it hands the model to instead.
_OF_ACCELERATE = "DistributedDataParallelKwargs"
_NO_DDP = ("deepspeed_plugin", "fsdp_plugin")


def leaves_out_parts(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the file, or that of the class that is wrapped, speaks of parts that a step leaves out."""
    homes = {ctx.path, *(ctx.kind(item).path for item in node.args[:1])} - {""}
    summaries = [ctx.program.summaries[path] for path in sorted(homes)]
    words = (words for summary in summaries for words in summary.words_by_statement().values())
    return any(RUNS_IN_PARTS.search(name) for found in words for name in found)


def hands_to_others(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether accelerate is told to hand the model to DeepSpeed or FSDP: nothing goes to DDP then."""
    return callee_name(node) == _OF_ACCELERATE and any(
        isinstance(part, ast.Call)
        and callee_name(part) == "Accelerator"
        and any(item.arg in _NO_DDP and not is_constant(item.value, None) for item in part.keywords)
        for part in walk(ctx.tree.module)
    )
