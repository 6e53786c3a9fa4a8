"""Waits that find the device's queue empty, because another wait that stays has drained it, and waits right before such
a one: whoever mends them gains nothing.

The wait that drains it may stand in the function's callers, or before in the function, where no rule tells of it: its
value is wanted on the host. Where the same rule tells of it, in whatever file, or where nothing needs its value, the
waits behind it are related places of its finding: whoever mends it alone gains nothing. What other rules tell of
decides nothing: a rule by itself finds what it finds among all.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from perflint.analysis.device_queue.functions import in_order
from perflint.finding import Finding, Heat, Hop, Impact, Span
from perflint.rule_api.context import Context

if TYPE_CHECKING:
    from perflint.rule_api.rule import Rule

__all__ = ["Behind", "behind", "settled", "told"]

#: So many waits in a row cost something, whatever each of them waits for.
_MANY = 4


class Behind(NamedTuple):
    """What drains the queue before a finding's wait: an expression of its function, or waits of other functions, those
    that it calls or that call it. `is_repeated` where a loop repeats the finding's wait alone, with work between: then
    it is a cost of its own, of the same defect where the same rule tells of both. `ahead`: the waits right behind the
    finding's own, one of which would wait in its place. `inner`: the wait of another function of the file.
    """

    first: Span | None
    places: frozenset[Hop] = frozenset()
    is_repeated: bool = False
    ahead: tuple[Span, ...] = ()
    can_be_spared: bool = False
    inner: Span | None = None


def behind(finding: Finding, node: ast.AST, rule: Rule, ctx: Context) -> Behind | None:
    """What certainly drains the queue before the wait that a finding tells of; None where it finds work to wait for."""
    if not _is_wait(finding, rule):
        return None
    # The inference of values is loaded with the rules: whoever only asks for help needs neither.
    from perflint.analysis.waits.cost import (
        copied_next,
        drained_by_callers,
        first_of_block,
        surely_waits,
        wait_of_call,
        works_between,
    )
    from perflint.analysis.waits.sparable import can_be_spared

    places = drained_by_callers(node, ctx)
    if places:
        return _in_other_functions(None, places, ctx)
    if finding.block in (None, finding.span):
        ahead = tuple(ctx.span(wait) for wait in copied_next(node, ctx))
        return Behind(None, ahead=ahead) if ahead else None
    first = first_of_block(node, ctx)
    if ctx.span(first) != finding.block:
        return None
    is_sure, called, is_repeated = surely_waits(first, ctx), wait_of_call(first, ctx), works_between(first, node, ctx)
    if called is not None and not is_repeated:
        found = _in_other_functions(finding.block, frozenset({called}), ctx)
        return found if is_sure or found.can_be_spared else None
    if not is_sure:
        return None
    return Behind(finding.block, is_repeated=is_repeated, can_be_spared=can_be_spared(first, ctx))


def _in_other_functions(first: Span | None, places: frozenset[Hop], ctx: Context) -> Behind:
    from perflint.analysis.waits.sparable import can_be_spared_at, waits_at

    spared = all(can_be_spared_at(place, ctx) for place in places)
    own = [ctx.span(wait) for place in places if place.path == ctx.path for wait in waits_at(place, ctx)]
    return Behind(first, places, can_be_spared=spared, inner=min(own, default=None))


def _is_wait(finding: Finding, rule: Rule) -> bool:
    """Whether a finding tells of a wait that costs what is queued, and no more: of a copy to the device its rule knows
    what the bytes cost.
    """
    claims = rule.claims
    if claims is None or not claims.waits or "to-device" in claims.adopts:
        return False
    return finding.heat >= Heat.STEP and finding.impact is Impact.LOW


def told(found: Collection[tuple[Finding, Behind | None]]) -> Iterator[Finding | None]:
    """The findings of a file in their order, None for those whose wait stands behind one that their rule does not tell
    of. Those behind a wait of another function that it tells of are of its block; those behind one of another file say
    so, for `settled` to decide.
    """
    spans: dict[str, set[Span]] = {}
    for finding, _ in found:
        spans.setdefault(finding.code, set()).add(finding.span)
    placed = {(finding.code, finding.span.line): finding.span for finding, _ in found}
    repeated = _firsts_repeated(found)
    for finding, wait in found:
        own_spans = spans[finding.code]
        if wait is None or not own_spans.isdisjoint(wait.ahead):
            yield finding
        elif (finding.code, wait.first) in repeated:
            yield replace(finding, block=repeated[finding.code, wait.first])
        elif wait.first is not None and any(_covers(span, wait.first) for span in own_spans):
            yield finding
        elif wait.can_be_spared and not wait.places:
            yield finding
        else:
            yield _linked(finding, wait, placed)


def _linked(finding: Finding, wait: Behind, placed: Mapping[tuple[str, int], Span]) -> Finding | None:
    """A finding with the wait of another function that its own is behind; None where nothing is gained by it."""
    own = sorted(place.line for place in wait.places if place.path == finding.path)
    firsts = (placed.get((finding.code, line)) for line in own)
    first = next((span for span in firsts if span not in (None, finding.span)), None)
    others = sorted((place for place in wait.places if place.path != finding.path), key=in_order)
    if first is not None:
        return replace(finding, block=first)
    if others:
        return replace(finding, block=None, behind=tuple(others), is_next=wait.can_be_spared)
    return replace(finding, block=wait.inner) if wait.can_be_spared else None


def settled(findings: Sequence[Finding], silenced: Iterable[Finding] = ()) -> list[Finding]:
    """The findings of all files but those whose wait stands behind one of another file that no finding tells of. What a
    comment silences is told.
    """
    quiet = {(one.code, one.path, one.span.line) for one in silenced if not one.behind}
    kept = list(findings)
    while True:
        placed = quiet | {(one.code, one.path, one.span.line) for one in kept}
        left = [
            one
            for one in kept
            if not one.behind
            or one.is_next
            or any((one.code, place.path, place.line) in placed for place in one.behind)
        ]
        if len(left) == len(kept):
            return kept
        kept = left


def _firsts_repeated(found: Collection[tuple[Finding, Behind | None]]) -> dict[tuple[str, Span | None], Span]:
    """By rule and wait, where the block of what is repeated behind it begins, in a loop or line by line: there, where
    the rule tells of that wait, or at the first one that is repeated.
    """
    counts = Counter((finding.code, wait.first) for finding, wait in found if wait is not None)
    own = {(finding.code, finding.span) for finding, _ in found}
    firsts: dict[tuple[str, Span | None], Span] = {}
    for finding, wait in found:
        key = (finding.code, None if wait is None else wait.first)
        if wait is not None and wait.first is not None and (wait.is_repeated or counts[key] >= _MANY):
            firsts[key] = wait.first if key in own else min(finding.span, firsts.get(key, finding.span))
    return firsts


def _covers(span: Span, other: Span) -> bool:
    return span.line <= other.line and other.end_line <= span.end_line
