"""What copies to the device cost in passes that train nothing, and where the host waits in any case."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.transfers.host_copies import is_pass
from perflint.analysis.waits.cost import begins_drained, is_repeated, is_waited_for_anyway, is_waited_for_next
from perflint.analysis.waits.host_answers import answers_on_host
from perflint.analysis.waits.kept_results import is_collected_at_end
from perflint.finding import Confidence, Heat
from perflint.ir.summary import MODULE


def costs_little(node: ast.AST, ctx: FileFacts, *, is_drained: bool, is_batch: bool = False) -> bool:
    """Whether the host waits behind a copy for what stays, or the copy belongs to a pass that trains nothing, and has
    nothing queued there (`is_drained`) or reads its result in any case: nobody waits for anything but the bytes. Not so
    a batch whose results are only collected: they may be read after the loop. A pass that a program takes once is none
    that anybody waits for again, but for what it copies for each token.
    """
    if not is_batch and answers_on_host(node, ctx):
        return True
    if not is_pass(node, ctx):
        return is_waited_for_anyway(node, ctx)
    if runs_once(node, ctx) and not is_repeated(node, ctx):
        return True
    if is_batch and is_collected_at_end(node, ctx):
        return False
    return is_drained or waits_in_any_case(node, ctx)


def runs_once(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the loop that makes a pass hot runs once in a program: a test behind a training, a script that writes
    results. A training's own evaluation comes back, and what nothing calls nobody knows.
    """
    found = ctx.program.step_loop(ctx.scope(node), ctx.context(node))
    if found is None:
        return False
    scope, index = found
    if scope.function != MODULE and not ctx.program.callers(scope):
        return False
    return ctx.program.heat_at(scope, ctx.program.function(scope).loops[index].context) is Heat.ONCE


def waits_in_any_case(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the host reads what is made of a copy, soon or before the iteration ends: then nothing is queued where
    the next one begins.
    """
    found = ctx.phase(node)
    if is_waited_for_next(node, ctx) or (found.ends_in_reads and found.confidence >= Confidence.MEDIUM):
        return True
    return begins_drained(node, ctx)
