"""The query engine behind kinds: every question is answered once, and cycles are solved to a fixed point.

A query is a key with a function that answers it by asking others. Queries are followed depth first (Tarjan's
algorithm finds those that depend on each other). One that depends on nothing open is final at once. A strongly
connected component is solved as a whole: every member starts at `NEVER` and is evaluated again, in rounds that see the
values of the round before, until nothing changes. So an answer is a function of the program alone, not of what was
asked before it. Queries nested too deeply for Python's stack are put off to the component of the outermost query.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from perflint.analysis.values.kind import NEVER, UNKNOWN, Kind, Tag, join, limited

#: How deep queries are nested on Python's stack. Each takes some five of its frames, of the thousand there are.
_DEEPEST = 100
#: How often the value of a member may change before it is cut to a depth, joined with what it was, and unknown:
#: containers that grow with every round, and rules of transfer that are not monotone, come to an end.
_CHANGES_DEEP = 3
_CHANGES_REPLACED = 12
_CHANGES_JOINED = 24
#: How many containers deep values are that change more often than that.
_DEPTH = 3
#: After so many attempts in a row at components that turned out to read more, what was read in one bears on the next:
#: components only grow from then on, so that there is a last one.
_ATTEMPTS = 16
_NOWHERE = 1 << 60
_Key = TypeVar("_Key", bound=Hashable)


class _Query:
    """A query that is not final: being evaluated, or waiting for others of its component."""

    __slots__ = (
        "args",
        "changes",
        "evaluate",
        "floor",
        "floored",
        "index",
        "key",
        "memo",
        "memo_key",
        "readers",
        "reads",
        "value",
    )

    def __init__(
        self,
        key: Hashable,
        memo: dict[Any, Kind],
        memo_key: Hashable,
        evaluate: Callable[..., Kind],
        args: tuple[Any, ...],
        floor: Callable[[], Kind] | None,
        index: int,
    ) -> None:
        self.key = key
        self.memo = memo
        self.memo_key = memo_key
        self.evaluate = evaluate
        self.args = args
        self.floor = floor
        #: Its number in the order in which queries were begun.
        self.index = index
        self.value = NEVER
        self.changes = 0
        #: Whether nothing but the component bears on it, so that `floor` is what it gives.
        self.floored = False
        #: The open queries it read when it was last evaluated or solved, and those that read it.
        self.reads: dict[_Query, None] = {}
        self.readers: dict[_Query, None] = {}


class Queries:
    """The queries of one file. Answers are kept in the memos that the callers give."""

    def __init__(self) -> None:
        self._open: dict[Hashable, _Query] = {}
        #: Evaluated but not final, in the order of their evaluation.
        self._trail: list[_Query] = []
        #: The query being evaluated, and the lowest index of an open query it depends on.
        self._reader: _Query | None = None
        self._lowest = _NOWHERE
        self._depth = 0
        self._begun = 0

    @property
    def is_evaluating(self) -> bool:
        return self._depth > 0

    def abandon(self) -> None:
        """After an error nothing is being evaluated any more."""
        self._open.clear()
        self._trail.clear()
        self._reader = None
        self._lowest = _NOWHERE
        self._depth = self._begun = 0

    def ask(
        self,
        key: Hashable,
        memo: dict[_Key, Kind],
        memo_key: _Key,
        evaluate: Callable[..., Kind],
        *args: Any,
        floor: Callable[[], Kind] | None = None,
    ) -> Kind:
        """The answer to `key`: `evaluate(*args)`, kept in `memo` under `memo_key` once it is final (it is not there
        yet). Of a query on which nothing but itself bears, the answer is `floor()` where that is given.
        """
        query = self._open.get(key)
        if query is not None:
            return self._read(query)
        index = self._begun
        self._begun += 1
        query = self._open[key] = _Query(key, memo, memo_key, evaluate, args, floor, index)
        if self._depth >= _DEEPEST:
            self._trail.append(query)
            self._lowest = min(self._lowest, 0)
            return self._read(query)
        reader, outer, mark = self._reader, self._lowest, len(self._trail)
        # As `_evaluate` does, without a call more for each of the many.
        self._reader, self._lowest = query, _NOWHERE
        self._depth += 1
        try:
            found = evaluate(*args)
        finally:
            self._depth -= 1
        lowest = self._lowest
        if lowest >= index and not query.readers and len(self._trail) == mark:
            if floor is not None and found.tag is Tag.NEVER:
                found = floor()
            memo[memo_key] = found
            del self._open[key]
        else:
            query.value = found
            self._trail.append(query)
            if lowest >= index:
                lowest = self._settle(mark, index)
            found = query.value
        self._reader = reader
        self._lowest = min(outer, lowest) if lowest < index else outer
        if reader is not None and key in self._open:
            reader.reads[query] = None
            query.readers[reader] = None
        if not self._depth:
            self._begun = 0
        return found

    def _read(self, query: _Query) -> Kind:
        self._lowest = min(self._lowest, query.index)
        if self._reader is not None:
            self._reader.reads[query] = None
            query.readers[self._reader] = None
        return query.value

    def _evaluate(self, query: _Query) -> tuple[Kind, int]:
        """What a query gives now, and the lowest index of an open query that it read on the way."""
        self._reader, self._lowest = query, _NOWHERE
        self._depth += 1
        try:
            if query.floored and query.floor is not None:
                found = query.floor()
            else:
                found = query.evaluate(*query.args)
        finally:
            self._depth -= 1
        return found, self._lowest

    def _settle(self, mark: int, base: int) -> int:
        """Solve the queries on the trail from `mark` on, which depend on none begun before `base`. The lowest index
        that one of them turned out to depend on nevertheless: then they stay open.
        """
        trail, failed, lowest = self._trail, 0, _NOWHERE
        while len(trail) > mark and lowest >= base:
            for component in list(_components(trail[mark:])):
                if failed <= _ATTEMPTS:
                    for query in component:
                        query.reads.clear()
                lowest = self._solve(component, base)
                if lowest < _NOWHERE:
                    failed += 1
                    break  # it depends on what is not solved yet
                self._keep(component)
                failed = 0
            # What was kept is final, also where the rest has to wait.
            trail[mark:] = [query for query in trail[mark:] if query.key in self._open]
        return lowest if lowest < base else _NOWHERE

    def _keep(self, component: Sequence[_Query]) -> None:
        for query in component:
            query.memo[query.memo_key] = query.value
            del self._open[query.key]
            for other in query.readers:
                other.reads.pop(query, None)

    def _solve(self, component: Sequence[_Query], base: int) -> int:
        """Give the members of a component their values. `_NOWHERE`, or the lowest index of an open query outside that
        was read: then the values are provisional.
        """
        members = dict.fromkeys(component)
        for query in component:
            query.value, query.changes, query.floored = NEVER, 0, False
            query.readers = {}
        lowest = self._rounds(members, list(component), base)
        while lowest >= base:
            bare = [q for q in members if q.floor is not None and q.value.tag is Tag.NEVER and not q.floored]
            if not bare:
                break
            for query in bare:
                query.floored = True
            lowest = min(lowest, self._rounds(members, bare, base))
        return lowest

    def _rounds(self, members: dict[_Query, None], dirty: Sequence[_Query], base: int) -> int:
        """Evaluate members until nothing changes. An open query that one of them turns out to read becomes a member,
        too, so that all that is read is known at the end: what then depends on each other is solved anew. The lowest
        index of such a query, at once where it was begun before `base`; `_NOWHERE` if there was none.
        """
        joined = _NOWHERE
        while dirty:
            found: list[tuple[_Query, Kind]] = []
            again: dict[_Query, None] = {}
            for query in dirty:
                value, lowest = self._evaluate(query)
                outside = [other for other in query.reads if other not in members and other.key in self._open]
                if outside:
                    joined = min(joined, *(other.index for other in outside))
                    if joined < base:
                        query.value = value
                        return min(lowest, joined)
                    members.update(dict.fromkeys(outside))
                    again.update(dict.fromkeys(outside))
                if value != query.value:
                    found.append((query, value))
            for query, value in found:
                before = query.value
                query.value = _settled(query, value)
                if query.value != before:
                    again.update(query.readers)
            dirty = [query for query in again if query in members]
        return joined


def _settled(query: _Query, value: Kind) -> Kind:
    """The value of a member after a round: what was found, and where that never comes to rest, what it is at most."""
    query.changes += 1
    if query.changes > _CHANGES_DEEP:
        value = limited(value, _DEPTH)
    if query.changes <= _CHANGES_REPLACED:
        return value
    return join((query.value, value)) if query.changes <= _CHANGES_JOINED else UNKNOWN


def _components(queries: Sequence[_Query]) -> Iterator[list[_Query]]:
    """Strongly connected components by what was read, those that others depend on first."""
    among = dict.fromkeys(queries)
    numbers: dict[_Query, int] = {}
    lowest: dict[_Query, int] = {}
    waiting: list[_Query] = []
    held: set[_Query] = set()
    for start in queries:
        if start in numbers:
            continue
        path: list[tuple[_Query, Iterator[_Query]]] = []
        _begin(start, numbers, lowest, waiting, held)
        path.append((start, iter(list(start.reads))))
        while path:
            query, reads = path[-1]
            for other in reads:
                if other not in among:
                    continue
                if other not in numbers:
                    _begin(other, numbers, lowest, waiting, held)
                    path.append((other, iter(list(other.reads))))
                    break
                if other in held:
                    lowest[query] = min(lowest[query], numbers[other])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[query])
                if lowest[query] == numbers[query]:
                    component: list[_Query] = []
                    while not component or component[-1] is not query:
                        component.append(waiting.pop())
                        held.discard(component[-1])
                    yield component


def _begin(
    query: _Query, numbers: dict[_Query, int], lowest: dict[_Query, int], waiting: list[_Query], held: set[_Query]
) -> None:
    numbers[query] = lowest[query] = len(numbers)
    waiting.append(query)
    held.add(query)
