"""Least fixpoints of variables that depend on each other, worked out when they are asked for.

A variable that is asked for while it is being evaluated is what its last round gave, bottom at first; it is evaluated
again until it no longer changes. What was concluded from such a value is not kept before the variable is final, so
that no answer depends on what was asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from perflint.analysis.feasibility.lattice import BOTTOM, TOP, Possible

#: Variables that are evaluated within one another, each of which takes some frames of the interpreter.
_DEEPEST = 32
#: Evaluations for one question from outside. Beyond it anything is possible: cycles of hundreds of variables take time
#: that grows with their paths.
_MOST = 4000
_NOWHERE = 1 << 30


class Fixpoint:
    """The values of variables. Evaluations must be monotone."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Possible] = {}
        self._open: dict[Hashable, tuple[int, Possible]] = {}
        self._done = 0
        #: The outermost open variable that was read since it was last set.
        self._read = _NOWHERE

    def ask(self, key: Hashable, evaluate: Callable[[], Possible]) -> Possible:
        found = self._known.get(key)
        if found is not None:
            return found
        if key in self._open:
            place, found = self._open[key]
            self._read = min(self._read, place)
            return found
        place = len(self._open)
        self._done = 0 if place == 0 else self._done + 1
        if place >= _DEEPEST or self._done > _MOST:
            self._read = 0
            return TOP
        before, self._read = self._read, _NOWHERE
        found = BOTTOM
        try:
            while True:
                self._open[key] = place, found
                value = evaluate() | found
                if value == found or self._read > place:
                    break
                found = value
        finally:
            del self._open[key]
        if self._read >= place:
            self._known[key] = value
            self._read = _NOWHERE
        self._read = min(before, self._read)
        return value
