"""Which waits a program can do without, whatever rules are at work: nothing on the host needs what they wait for."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.waits.called_functions import change_but_copies
from perflint.analysis.waits.cost import first_of_block
from perflint.analysis.waits.counts import counted_at
from perflint.analysis.waits.exceptional import is_exceptional
from perflint.analysis.waits.host_work import in_step, works_on_host
from perflint.analysis.waits.next_reads import is_read_next
from perflint.analysis.waits.numbers import device_number
from perflint.analysis.waits.reads import device_read
from perflint.analysis.waits.texts import is_formatter, printed_in
from perflint.analysis.waits.truth_tests import is_asked
from perflint.analysis.waits.wanted_on_host import is_wanted_on_host
from perflint.finding import Hop

#: Behind all that stands on a line.
_FAR = 1_000_000


def is_company(wait: ast.AST, ctx: FileFacts) -> bool:
    """Whether a wait finds the queue nearly empty because one before it in the function has drained it that can be
    spared: whoever mends that one alone waits here instead.
    """
    first = first_of_block(wait, ctx)
    return first is not wait and can_be_spared(first, ctx)


def can_be_spared(wait: ast.AST, ctx: FileFacts) -> bool:
    """Whether a wait of a step is one that mending can remove: a count, a number or a test that stays on the device."""
    if not in_step(wait, ctx) or works_on_host(wait, ctx) or is_exceptional(wait, ctx):
        return False
    if isinstance(wait, (ast.Call, ast.Subscript)) and (read := device_read(wait, ctx)) is not None:
        return not is_wanted_on_host(wait, read, ctx)
    if isinstance(wait, (ast.Call, ast.Subscript)) and counted_at(wait, ctx) is not None:
        return not is_read_next(wait, ctx)
    if isinstance(wait, (ast.Call, ast.Subscript, ast.Slice)) and device_number(wait, ctx) is not None:
        return True
    if isinstance(wait, ast.expr) and is_formatter(wait, ctx):
        return all(can_be_spared(item.value, ctx) for item in printed_in(wait, ctx) if item.waits)
    return isinstance(wait, ast.expr) and is_asked(wait, ctx)


def can_be_spared_at(place: Hop, ctx: FileFacts) -> bool:
    """The same of a wait in any file."""
    there = ctx.at(place.path)
    waits = [] if there is None else waits_at(place, there)
    return there is not None and bool(waits) and all(can_be_spared(wait, there) for wait in waits)


def waits_at(place: Hop, ctx: FileFacts) -> list[ast.AST]:
    """The waits on a line of the file."""
    parts = [part for part in ctx.tree.around((place.line, _FAR)) if getattr(part, "lineno", 0) == place.line]
    return [part for part in parts if ctx.once(change_but_copies, part).empties]
