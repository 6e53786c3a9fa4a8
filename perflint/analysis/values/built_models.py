"""Calls that make a module that costs: a checkpoint's, a factory's, or a layer with weights."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, INSTANCE, Scope
from perflint.analysis.values.kind import Tag
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import callee_name
from perflint.torch_model import modules
from perflint.torch_model.names import last

#: Modules of torch.nn whose weights are filled at construction.
LAYERS_WITH_WEIGHTS = (
    "Linear",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose2d",
    "Embedding",
    "LSTM",
    "GRU",
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "TransformerEncoder",
    "TransformerDecoderLayer",
)
#: What only asks what something is, or takes it off what holds it.
_ASKING = frozenset(
    "isinstance issubclass type hasattr getattr len bool super is_parallel is_dist_avail_and_initialized".split()
)


def builds_model(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the call makes a module that costs: a checkpoint's, a factory's, or a layer with weights."""
    target = ctx.target(node.func)
    if target is not None:
        if modules.is_torch_module(target):
            return last(target) in LAYERS_WITH_WEIGHTS
        return modules.makes_module(target)
    project = ctx.project_target(node.func)
    if project is None:
        return False
    if project.kind == FUNCTION and _only_hands_over(Scope(project.path, project.name), ctx):
        return False
    return (
        project.kind != INSTANCE and ctx.kind(node).tag is Tag.MODULE and callee_name(node) not in LAYERS_WITH_WEIGHTS
    )


def _only_hands_over(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a function calls nothing that could build: `get_model` gives back the one that is there, unwrapped."""
    return all(last_of(call.func) in _ASKING for call in ctx.program.function(scope).calls)
