"""Least fixpoints of variables that depend on each other, worked out when they are asked for.

A variable that is asked for while another is evaluated is evaluated first, where that does not go too deep; what it is
later on has those that read it evaluated again. As evaluations are monotone and the lattice has a finite height, each
is evaluated a few times at most for each variable that it reads, and the least fixpoint comes out whatever was asked
first. Nothing is kept before all that was begun is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from perflint.analysis.feasibility.lattice import BOTTOM, Possible

#: Variables that are evaluated within one another, each of which takes some frames of the interpreter.
_DEEPEST = 32


class Fixpoint:
    """The values of variables. Evaluations must be monotone."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Possible] = {}
        #: What is not settled: values so far, how they are evaluated, and by which others they were read.
        self._values: dict[Hashable, Possible] = {}
        self._rules: dict[Hashable, Callable[[], Possible]] = {}
        self._readers: dict[Hashable, dict[Hashable, None]] = {}
        self._open: list[Hashable] = []
        self._due: dict[Hashable, None] = {}

    def ask(self, key: Hashable, evaluate: Callable[[], Possible]) -> Possible:
        found = self._known.get(key)
        if found is not None:
            return found
        if not self._open:
            return self._settled(key, evaluate)
        if key not in self._values:
            self._begin(key, evaluate)
            if len(self._open) < _DEEPEST:
                self._evaluate(key)
            else:
                self._due[key] = None
        self._readers.setdefault(key, {})[self._open[-1]] = None
        return self._values[key]

    def _settled(self, key: Hashable, evaluate: Callable[[], Possible]) -> Possible:
        try:
            self._begin(key, evaluate)
            self._due[key] = None
            while self._due:
                first = next(iter(self._due))  # by turns: what changes often is not evaluated after each change
                del self._due[first]
                self._evaluate(first)
            self._known.update(self._values)
        finally:
            for unsettled in (self._values, self._rules, self._readers, self._due, self._open):
                unsettled.clear()
        return self._known[key]

    def _begin(self, key: Hashable, evaluate: Callable[[], Possible]) -> None:
        self._values[key] = BOTTOM
        self._rules[key] = evaluate

    def _evaluate(self, key: Hashable) -> None:
        self._open.append(key)
        try:
            value = self._rules[key]() | self._values[key]
        finally:
            self._open.pop()
        if value != self._values[key]:
            self._values[key] = value
            self._due.update(self._readers.get(key, {}))
