"""What copies to the device cost in passes that train nothing."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.many_turns import runs_dozens_of_times
from perflint.analysis.transfers.host_copies import is_pass
from perflint.analysis.waits.cost import is_waited_for_next
from perflint.finding import Confidence


def costs_a_pass_little(node: ast.AST, ctx: FileFacts, *, is_drained: bool) -> bool:
    """Whether a copy belongs to a pass that trains nothing, and has nothing queued there (`is_drained`) or reads its
    result in any case: nobody waits for anything but the bytes.
    """
    return is_pass(node, ctx) and (is_drained or waits_in_any_case(node, ctx))


def is_made_once_a_batch(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a pass that trains nothing makes something once for each of its batches, of which an epoch has few."""
    return is_pass(node, ctx) and not (
        runs_dozens_of_times(node, ctx) or ctx.program.runs_several_times(ctx.scope(node))
    )


def waits_in_any_case(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the host reads what is made of a copy, soon or before the iteration ends: then nothing is queued where
    the next one begins.
    """
    found = ctx.phase(node)
    return is_waited_for_next(node, ctx) or (found.ends_in_reads and found.confidence >= Confidence.MEDIUM)
