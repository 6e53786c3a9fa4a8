"""Whether a model gives a sample the same result, whatever else is in its batch."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.models import BATCH_STATISTICS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import is_constant
from perflint.syntax.walk import walk


def gives_the_same_in_batches(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a sample's result does not depend on what else is in its batch, nor on an earlier call."""
    if any(isinstance(outer, ast.Try) and _saves_memory(outer) for outer in ctx.tree.ancestors(call)):
        return False
    if _has_a_batched_way(call, ctx):
        return False
    keywords = {item.arg for item in call.keywords}
    if keywords & {"past_key_values", "cache", "memory", "state", "hidden", "hidden_state", "hx", "mems"}:
        return False
    return ctx.grad_off(call) or not (ctx.program.trains(ctx.scope(call)) or _has_batch_statistics(call.func, ctx))


def _has_batch_statistics(model: ast.expr, ctx: FileFacts) -> bool:
    """Whether the file, or that of the model's class, speaks of batch normalisation."""
    homes = {ctx.path, ctx.kind(model).path} - {""}
    texts = (there.source.text for there in map(ctx.at, sorted(homes)) if there is not None)
    return any(BATCH_STATISTICS.search(text) for text in texts)


def _has_a_batched_way(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a list is asked for, and what is none goes through the same model: lists hold what cannot be stacked."""
    asked = {(id(test), not holds) for test, holds in ctx.conditions(call) if "list" in names_in(test)}
    if not asked:
        return False
    text = ctx.text(call.func)
    return any(
        isinstance(part, ast.Call)
        and ctx.text(part.func) == text
        and not asked.isdisjoint((id(test), holds) for test, holds in ctx.conditions(part))
        for part in ctx.walk(ctx.tree.scope_of(call))
    )


def _saves_memory(attempt: ast.Try) -> bool:
    """Whether a `try` catches an accelerator that is out of memory: its way round is meant to be slow."""
    caught = {name for handler in attempt.handlers if handler.type is not None for name in names_in(handler.type)}
    return bool(caught & {"RuntimeError", "OutOfMemoryError", "AcceleratorError"})


def changes_model(region: ast.AST, call: ast.Call) -> bool:
    """Whether the loop sets what is called, or switches it to training."""
    own = {part.id for part in walk(call.func) if isinstance(part, ast.Name)} - {"self"}
    for part in walk(region):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id in own:
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "train":
            return not (part.args and is_constant(part.args[0], value=False))
    return False
