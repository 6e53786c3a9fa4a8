"""Whether one pass over a loader is what a program is for: inference over files, in nothing that trains. Asked by the
rule about loaders without workers.
"""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.ways_in import ways_in
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.copied_batches import moves_batches
from perflint.analysis.loading.passes import Run
from perflint.analysis.names.refs import Scope


def is_inference_pass(call: ast.Call, loops: list[Run], ctx: FileFacts) -> bool:
    """Whether a loop over the loader computes on a device, and no training is around it or what makes the loader: the
    one evaluation after a training takes a small part of its time.
    """
    scopes = {ctx.scope(call), *(run.scope for run in loops)}
    return not any(_is_of_training(scope, ctx) for scope in scopes) and any(moves_batches(run, ctx) for run in loops)


def _is_of_training(scope: Scope, ctx: FileFacts) -> bool:
    return ctx.program.trains(scope) or any(ctx.program.trains(edge.caller) for edge in ways_in(scope, ctx))
