"""Forwards of whose results only the values are read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.evaluated_calls import is_first_forward
from perflint.analysis.gradients.evaluation_loops import is_evaluated_as_a_whole
from perflint.analysis.gradients.in_reach import ASKING
from perflint.analysis.gradients.model_calls import is_model_call, may_differentiate
from perflint.analysis.gradients.results import Followed, forwards_read_by, has_no_graph, learns
from perflint.analysis.gradients.ways_without import is_called_without_gradients, is_switched_off_by_some
from perflint.finding import Heat
from perflint.ir.calls import is_constant

#: Words that a program has which walks a graph back somewhere, itself or through a framework.
_WALKS = ASKING | frozenset(
    "backward manual_backward autograd grad functional_call requires_grad_ set_grad_enabled Trainer LightningModule "
    "Fabric Accelerator Optimizer optim SFTTrainer Seq2SeqTrainer".split()
)
_DEPTH = 7


def walks_back_somewhere(ctx: FileFacts) -> bool:
    """Whether the program walks a graph back anywhere, itself or through a framework."""
    return ctx.program.mentions(_WALKS)


def reads_by_data(loop: ast.stmt, ctx: FileFacts) -> Iterator[ast.expr]:
    """The reads `loss.data[0]` in the turns of a loop, as they were written before there was `loss.item()`."""
    lines = ctx.source.lines[loop.lineno - 1 : loop.end_lineno] if ctx.mentions("data") else ()
    for part in ctx.walk(loop) if any("data" in line for line in lines) else ():
        if isinstance(part, ast.Subscript) and is_constant(part.slice, 0) and isinstance(part.value, ast.Attribute):
            if part.value.attr == "data" and ctx.heat(part) >= Heat.STEP:
                yield part.value


def read_for_values(node: ast.expr, ctx: FileFacts) -> Iterator[ast.Call]:
    """The forwards of a step behind a read of values, whose results are never used for more than that; not those that
    are looked at as a part of what is around them, or that may run without gradients.
    """
    if ctx.grad_off(node) or (ctx.role(node) == "forward" and is_switched_off_by_some(ctx.scope(node), ctx)):
        return
    for forward in set(forwards_read_by(node, ctx)):
        if ctx.heat(forward) < Heat.STEP or not learns(forward, ctx) or has_no_graph(forward, ctx):
            continue
        if is_evaluated_as_a_whole(forward, ctx) or (ctx.role(forward) == "texts" and not walks_back_somewhere(ctx)):
            continue
        followed = Followed(ctx, by_value=True)
        if not followed.ends(forward, _DEPTH) or followed.detached:
            continue
        if not is_called_without_gradients(ctx.scope(forward), ctx) and not may_differentiate(forward, ctx):
            yield forward


def reads_texts_alone(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a model runs on text after text in a program that walks nothing back, with gradients all the same."""
    if ctx.role(node) != "texts" or ctx.grad_off(node) or walks_back_somewhere(ctx):
        return False
    return is_model_call(node, ctx) and is_first_forward(node, ctx)
