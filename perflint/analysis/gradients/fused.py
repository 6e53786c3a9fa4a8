"""Whether a fused optimizer would be refused, or has little to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.feasibility.passed_keywords import file_passes
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.parameter_counts import of_layer
from perflint.analysis.names.refs import EXTERNAL_INSTANCE
from perflint.ir.summary import CallFacts
from perflint.torch_model import modules

#: Up to this many tensors, one launch for each is cheap.
_FEW = 5
#: What raises for sparse gradients in any case: who runs it has none.
_OF_DENSE = ("Adam", "AdamW")
#: What torch can run fused over sharded parameters as well (torch 2.13).
_OF_SHARDS = ("Adam", "AdamW")
_NOTHING = ("const", "NoneType", None)


def cannot_be_fused(optimizer: str, ctx: FileFacts) -> bool:
    """Whether gradients are sparse, or parameters or a Trainer of a kind that the fused way refuses. torch has no way
    to run most optimizers fused over the DTensors that `fully_shard` makes of parameters.
    """
    if ctx.mentions(*modules.NEVER_FUSED):
        return True
    if optimizer not in _OF_DENSE and (ctx.mentions("SparseAdam") or file_passes(ctx, ("sparse",))):
        return True
    if optimizer not in _OF_SHARDS and ctx.program.mentions({"fully_shard"}):
        return True
    return any(map(_refuses, _trainers(ctx)))


def is_over_few_tensors(params: ast.expr | None, ctx: FileFacts) -> bool:
    """Whether the optimizer is over a few tensors that are named one by one, or over a single layer of torch."""
    if isinstance(params, (ast.List, ast.Tuple)):
        return len(params.elts) <= _FEW and all(isinstance(item, (ast.Name, ast.Attribute)) for item in params.elts)
    if not isinstance(params, ast.Call) or not isinstance(params.func, ast.Attribute) or params.args:
        return False
    whole = params.func.value
    refs = ctx.refs(whole) if params.func.attr == "parameters" and isinstance(whole, (ast.Name, ast.Attribute)) else ()
    counts = [of_layer(ref.name) if ref.kind == EXTERNAL_INSTANCE else None for ref in refs]
    return bool(counts) and all(count is not None and count <= _FEW for count in counts)


def _refuses(trainer: CallFacts) -> bool:
    """Whether a Trainer scales losses of half precision and clips gradients: a fused optimizer raises under it."""
    given = dict(trainer.keywords)
    if "" in given:
        return True  # `**options` may hold both
    precision = given.get("precision", ("const", "str", "32"))
    literal = str(precision[2]) if isinstance(precision, tuple) and precision[0] == "const" else ""
    halved = not literal or literal.startswith("16")
    return halved and given.get("gradient_clip_val", _NOTHING) != _NOTHING


def _trainers(ctx: FileFacts) -> Iterator[CallFacts]:
    """The calls of Lightning's Trainer in the project."""
    for path in ctx.program.summaries:
        if ctx.program.mentions({"Trainer"}, [path]):
            for function in ctx.program.summaries[path].functions.values():
                calls = (call for call in function.calls if isinstance(call.func, str))
                yield from (call for call in calls if call.func.rpartition(".")[2] == "Trainer")
