"""Linking the same program in several processes at the same time: what is plain to see is shared among them."""

from __future__ import annotations

import marshal
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from perflint.facts.summary import FunctionFacts
from perflint.finding import Confidence
from perflint.program.edges import Edge
from perflint.program.refs import Scope


class Together(Protocol):
    """One of `size` processes that link the same program."""

    number: int
    size: int

    def exchange(self, words: bytes) -> list[bytes]:
        """What all say, in the order of their numbers."""


class Connected(NamedTuple):
    """What some functions are plainly seen to call, and the calls of which that is not plain: the places of function
    and call.
    """

    edges: Iterable[Edge]
    waiting: list[tuple[int, int]]


def share(functions: Sequence[tuple[Scope, FunctionFacts]], together: Together) -> range:
    """The places of the functions that this process is to connect: as many calls for each process."""
    calls = list(accumulate(len(facts.calls) for _, facts in functions))
    total = calls[-1] if calls else 0
    start, end = (bisect_left(calls, total * each / together.size) for each in (together.number, together.number + 1))
    return range(start, end if together.number + 1 < together.size else len(functions))


def exchange(
    mine: Connected, functions: Sequence[tuple[Scope, FunctionFacts]], together: Together, make: type[Edge]
) -> Connected:
    """What all processes have connected, in the order of the functions."""
    numbers = {scope: number for number, (scope, _) in enumerate(functions)}
    edges = [
        (numbers[caller], numbers[callee], context, line, int(confidence), *rest)
        for caller, callee, context, line, confidence, *rest in mine.edges
    ]
    said = together.exchange(marshal.dumps((edges, mine.waiting)))
    parts = [marshal.loads(words) for words in said]  # noqa: S302 - what our own processes have just said

    def all_edges() -> Iterator[Edge]:
        for part, _ in parts:
            for caller, callee, context, line, confidence, *rest in part:
                yield make(functions[caller][0], functions[callee][0], context, line, Confidence(confidence), *rest)

    return Connected(all_edges(), [place for _, waiting in parts for place in waiting])
