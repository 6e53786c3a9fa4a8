"""A function's facts as a tree of regions: loops, branches and rare code, with the calls and reads in each in the
order of evaluation.

It is built from summaries, so that functions of other files are told as this file's are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from perflint.ir.callees import last_name
from perflint.ir.own_effects import COMPUTES, READERS, READS
from perflint.ir.rarity import ACCUMULATION
from perflint.ir.summary import EffectFacts, FunctionFacts, Value

__all__ = ["Event", "Region", "regions_of"]

_Place: TypeAlias = "tuple[int, int]"


@dataclass(frozen=True)
class Event:
    """A call (`index` is its place among those of the function), or a read or computation (`fact`)."""

    place: _Place
    index: int
    fact: EffectFacts | None = None


@dataclass
class Region:
    """`kind` is "body", "loop", "rare", "branch" or "maybe" (code that need not run, for a reason that is not known).
    `loop` is the place of a loop among those of the function, `test` and `truth` say when a branch is taken.
    """

    kind: str
    start: _Place
    end: _Place
    loop: int = -1
    test: Value = None
    truth: bool = True
    parts: list[Region | Event] = field(default_factory=list)

    def is_other_arm(self, other: Region | Event) -> bool:
        """Whether a test takes one of two branches."""
        if not isinstance(other, Region) or not self.kind == other.kind == "branch":
            return False
        return self.test == other.test and self.truth is not other.truth


def regions_of(facts: FunctionFacts) -> Region:
    """The tree of a function's body. What holds no event is left out."""
    whole = Region("body", (0, 0), (facts.end_line + 1, 0))
    # Outer ones first: those that begin at the same place in the order of the facts.
    inner = sorted(_regions(facts), key=lambda one: (one.start, (-one.end[0], -one.end[1])))
    placed: set[int] = {id(whole)}
    for event in _in_order(facts):
        outer = whole
        for region in inner:
            if region.start > event.place:
                break
            if event.place < region.end:
                if id(region) not in placed:
                    placed.add(id(region))
                    outer.parts.append(region)
                outer = region
        if outer is whole and not facts.is_sure(*event.place):
            outer = Region("maybe", event.place, event.place)
            whole.parts.append(outer)
        outer.parts.append(event)
    return whole


def _regions(facts: FunctionFacts) -> Iterator[Region]:
    for item in facts.contexts:
        start, end = (item.line, item.column), (item.end_line, item.end_column)
        if item.kind == "loop":
            yield Region("loop", start, end, loop=int(item.detail))
        elif item.kind in ("guard", "switch"):
            # An optimizer's step is taken every few iterations, or in each one.
            yield Region("maybe" if item.detail == ACCUMULATION else "rare", start, end)
    for branch in facts.branches:
        start, end = (branch.line, branch.column), (branch.end_line, branch.end_column)
        if not facts.is_sure(*start):
            yield Region("branch", start, end, test=branch.test, truth=branch.truth)


def _in_order(facts: FunctionFacts) -> Iterator[Event]:
    """Calls stand in the order of evaluation; reads, which are told by place, come behind what they read and before
    the calls that they are arguments of.
    """
    reads = [
        Event((fact.line, fact.column), -1, fact)
        for fact in sorted(facts.does, key=lambda fact: (fact.line, fact.column))
        if fact.kind in (READS, COMPUTES)
    ]
    furthest: _Place = (0, 0)
    for index, call in enumerate(facts.calls):
        place = (call.line, call.column)
        is_outer = place < furthest
        while reads and (_is_before(reads[0], place) or (is_outer and reads[0].place <= furthest)):
            yield reads.pop(0)
        for _ in range(sum(map(_reads_in, (*call.args, *(value for _, value in call.keywords))))):
            if reads and reads[0].place > place:
                yield reads.pop(0)
        yield Event(place, index)
        furthest = max(furthest, place)
    yield from reads


def _is_before(read: Event, call: _Place) -> bool:
    """Whether a read comes before a call. One of an expression that begins on the same line may read what it gives."""
    assert read.fact is not None
    return read.place < call and (bool(read.fact.name) or read.place[0] < call[0])


def _reads_in(value: Value) -> int:
    """How many reads a value holds, in the notation of summaries."""
    if not isinstance(value, tuple):
        return 0
    own = len(value) > 1 and value[0] == "call" and last_name(value[1]) in READERS
    return own + sum(map(_reads_in, value[1:]))
