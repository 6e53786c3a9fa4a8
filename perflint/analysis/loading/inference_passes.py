"""Whether one pass over a loader is what a program is for: inference over files, in nothing that trains. Asked by the
rule about loaders without workers, or with one.
"""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.ways_in import ways_in
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.copied_batches import moves_batches
from perflint.analysis.loading.passes import Run, batch_names, calls_in
from perflint.analysis.loading.reaching import is_of_batch
from perflint.analysis.names.refs import Scope
from perflint.ir.callees import last_name as last_of


def is_inference_pass(call: ast.Call, loops: list[Run], ctx: FileFacts) -> bool:
    """Whether a loop over the loader computes on a device, and no training is around it or what makes the loader: the
    one evaluation after a training takes a small part of its time.
    """
    scopes = {ctx.scope(call), *(run.scope for run in loops)}
    return not any(_is_of_training(scope, ctx) for scope in scopes) and any(_computes(run, ctx) for run in loops)


def _computes(run: Run, ctx: FileFacts) -> bool:
    """Whether the batches of a loop, or what is made of them, go to a device."""
    if moves_batches(run, ctx):
        return True
    facts, names = ctx.program.function(run.scope), batch_names(run, ctx)
    moved = (call for call in calls_in(run, ctx) if last_of(call.func) in ("to", "cuda"))
    return any(is_of_batch(call, names, facts) is not None for call in moved)


def _is_of_training(scope: Scope, ctx: FileFacts) -> bool:
    return ctx.program.trains(scope) or any(ctx.program.trains(edge.caller) for edge in ways_in(scope, ctx))
