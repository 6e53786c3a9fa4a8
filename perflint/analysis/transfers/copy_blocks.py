"""Copies of one block, made one after the other with nothing queued between: the first of them waits."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.transfers.host_copies import Copy, What, copies_in
from perflint.analysis.waits.cost import is_company


def first_of_each_block(region: ast.AST, ctx: FileFacts) -> dict[int, Copy]:
    """By the id of each copy's call, the first copy of its block: those that are made one after the other, with nothing
    queued between.
    """
    found: dict[int, Copy] = {}
    last: Copy | None = None
    for copy in copies_in(region, ctx).values():
        goes_on = last is not None and copy.what is last.what is What.BATCH and _belongs(copy, last, ctx)
        found[id(copy.call)] = found[id(last.call)] if last is not None and goes_on else copy
        last = copy
    return found


def _belongs(copy: Copy, last: Copy, ctx: FileFacts) -> bool:
    one, other = copy.call, last.call
    if ctx.scope(one) != ctx.scope(other) or ctx.heat(one) != ctx.heat(other) or ctx.loops(one) != ctx.loops(other):
        return False
    return is_company(one, other, ctx)
