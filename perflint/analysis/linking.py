"""Linking the same program in several processes: what is plain to see is shared among them."""

from __future__ import annotations

import marshal
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple, Protocol

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence
from perflint.ir.summary import FunctionFacts


class Together(Protocol):
    """Processes that share work on the functions of a program."""

    def share(
        self, work: Callable[[range], bytes], functions: Sequence[tuple[Scope, FunctionFacts]]
    ) -> Iterable[bytes]:
        """What `work` gives for the places of some functions, then for those of the next, to the last of them."""


class Connected(NamedTuple):
    """What some functions are plainly seen to call, and the calls of which that is not plain: the places of function
    and call.
    """

    edges: Iterable[Edge]
    waiting: list[tuple[int, int]]


def share_of(functions: Sequence[tuple[Scope, FunctionFacts]], number: int, size: int) -> range:
    """The places of the functions that the process of that number is to connect, of `size`: as many calls for each."""
    calls = list(accumulate(len(facts.calls) for _, facts in functions))
    total = calls[-1] if calls else 0
    start, end = (bisect_left(calls, total * each / size) for each in (number, number + 1))
    return range(start, end if number + 1 < size else len(functions))


def files_of(functions: Sequence[tuple[Scope, FunctionFacts]]) -> list[range]:
    """The places of the functions of each file; those of a file stand together."""
    sizes = [sum(1 for _ in of_file) for _, of_file in groupby(functions, lambda function: function[0].path)]
    ends = list(accumulate(sizes))
    return [range(end - size, end) for size, end in zip(sizes, ends)]


class Packing:
    """Edges between `functions`, for other processes, which list them in the same order."""

    def __init__(self, functions: Sequence[tuple[Scope, FunctionFacts]]) -> None:
        self._functions = functions
        self._numbers = {scope: number for number, (scope, _) in enumerate(functions)}

    def packed(self, connected: Connected) -> bytes:
        numbers = self._numbers
        edges = [
            (numbers[caller], numbers[callee], context, line, int(confidence), *rest)
            for caller, callee, context, line, confidence, *rest in connected.edges
        ]
        return marshal.dumps((edges, connected.waiting))

    def unpacked(self, words: bytes) -> Connected:
        edges, waiting = marshal.loads(words)  # noqa: S302 - what our own processes have just said
        return Connected(self._edges(edges), waiting)

    def _edges(self, edges: Iterable[Sequence[int]]) -> Iterator[Edge]:
        functions = self._functions
        for caller, callee, context, line, confidence, index, callback, stands_in in edges:
            yield Edge(
                functions[caller][0],
                functions[callee][0],
                context,
                line,
                Confidence(confidence),
                index,
                bool(callback),
                bool(stands_in),
            )
