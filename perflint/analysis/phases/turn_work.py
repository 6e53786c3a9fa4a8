"""What each turn of a loop runs beside its bookkeeping: a model, an encoder, a generation."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.naming.loops import OVER_DATA
from perflint.analysis.naming.models import ENCODER
from perflint.analysis.phases.generation import generates
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk
from perflint.torch_model import loaders
from perflint.torch_model.effects import Effect

_CUTS = frozenset("chunk split tensor_split unbind split_with_sizes".split())
#: How models of speech and of series say that they generate.
_GENERATES = frozenset({"inference", "synthesize"})
#: Types of tokens and of what is known of each of them.
_TOKENS = frozenset({Dtype.INT, Dtype.BOOL})


def runs_a_model(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a turn runs a module, or hands one to what does: beside that a column is copied in no time."""
    return any(
        isinstance(part, ast.Call) and any(ctx.kind(item).tag is Tag.MODULE for item in (part.func, *part.args))
        for part in ctx.walk(loop)
    )


def encodes_items(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a turn encodes one item of a batch, which takes far longer than to copy the codes of the others."""
    if not isinstance(loop, ast.For) or any(OVER_DATA.search(name) for name in names_in(loop.iter)):
        return False
    is_cut = _is_cut_up(loop.iter, ctx)
    return any(
        isinstance(part, ast.Call) and (_encodes(part) or (is_cut and is_model_call(part, ctx)))
        for part in ctx.walk(loop)
    )


def _is_cut_up(items: ast.expr, ctx: FileFacts) -> bool:
    """Whether a loop goes over what one tensor was cut into: `torch.chunk(images, len(images))`."""
    return any(isinstance(item, ast.Call) and callee_name(item) in _CUTS for item in ctx.inference.origins(items))


def are_generated(values: Sequence[ast.expr], loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether each turn generates these values: `codes = model.inference(text)` takes seconds, and tokens, which are
    whole numbers, take a forward pass, beside which those before them are copied in no time.
    """
    if all(ctx.role(part) == "decode" and ctx.kind(part).dtype in _TOKENS for part in values):
        return True
    names = {name for part in values for name in names_in(part)}
    return any(
        isinstance(part, ast.Assign)
        and isinstance(part.value, ast.Call)
        and (generates(part.value, ctx) or callee_name(part.value) in _GENERATES)
        and not names.isdisjoint(name for target in part.targets for name in names_in(target))
        for part in walk(loop)
    )


def _encodes(call: ast.Call) -> bool:
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or not callee_name(call).startswith("encode"):
        return False
    models = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return any(ENCODER.search(last_name(item)) for item in models)


def goes_from_file_to_file(region: ast.AST, ctx: FileFacts) -> bool:
    """Whether each turn decodes a file and writes its results to files, which takes longer than to run a model."""
    calls = [part for part in ctx.walk(region) if isinstance(part, ast.Call)]
    return any((ctx.target(call.func) or "") in loaders.FILE_READERS for call in calls) and any(
        ctx.effects(call).does(Effect.FILES) for call in calls
    )
