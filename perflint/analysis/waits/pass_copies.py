"""What copies to the device cost in passes that train nothing, and where the host waits in any case."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.transfers.host_copies import is_pass
from perflint.analysis.waits.cost import is_waited_for_anyway, is_waited_for_next
from perflint.analysis.waits.kept_results import is_collected_at_end
from perflint.finding import Confidence


def costs_little(node: ast.AST, ctx: FileFacts, *, is_drained: bool, is_batch: bool = False) -> bool:
    """Whether the host waits behind a copy for what stays, or the copy belongs to a pass that trains nothing, and has
    nothing queued there (`is_drained`) or reads its result in any case: nobody waits for anything but the bytes. Not so
    a batch whose results are only collected: they may be read after the loop.
    """
    if not is_pass(node, ctx):
        return is_waited_for_anyway(node, ctx)
    if is_batch and is_collected_at_end(node, ctx):
        return False
    return is_drained or waits_in_any_case(node, ctx)


def waits_in_any_case(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the host reads what is made of a copy, soon or before the iteration ends: then nothing is queued where
    the next one begins.
    """
    found = ctx.phase(node)
    return is_waited_for_next(node, ctx) or (found.ends_in_reads and found.confidence >= Confidence.MEDIUM)
