"""The lattice of what a value may be: one of a few literals, or of what is only known whether it is None or true.

An element says of which sorts a value may be (None, true, false), and which literals it is one of where these can be
counted. Bottom is no value at all, top any value. Its height is finite: more than a few literals are no longer counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, NamedTuple, TypeAlias

#: The sorts of values: None, other values that are true, other values that are false.
NONE, TRUE, FALSE = "None", "true", "false"
#: How many literals are counted.
_MOST = 8


class Literal(NamedTuple):
    """A literal with the name of its type: 1 and True are two."""

    type: str
    value: Any


Literals: TypeAlias = "frozenset[Literal] | None"


class Possible(NamedTuple):
    """What a value may be. `literals` is None where they cannot be counted."""

    sorts: frozenset[str]
    literals: Literals

    def __or__(self, other: tuple[Any, ...]) -> Possible:
        """The join."""
        assert isinstance(other, Possible)
        if self.literals is None or other.literals is None:
            return Possible(self.sorts | other.sorts, None)
        return _counted(self.sorts | other.sorts, self.literals | other.literals)

    def within(self, other: Possible) -> bool:
        """Whether whatever a value of this may be, `other` may be as well."""
        if not self.sorts <= other.sorts:
            return False
        return other.literals is None or (self.literals is not None and self.literals <= other.literals)

    @property
    def truth(self) -> bool | None:
        """What a test of it comes to, None where both may be, or where there is no value."""
        may_hold, may_fail = TRUE in self.sorts, bool(self.sorts - {TRUE})
        return may_hold if may_hold is not may_fail else None

    def only(self, *sorts: str) -> Possible:
        """What is left of it where it is known to be of these sorts."""
        left = self.sorts & frozenset(sorts)
        if not left or left == {NONE}:
            return of(None) if left else BOTTOM
        literals = self.literals
        if literals is not None:
            literals = frozenset([item for item in literals if _sort(item) in sorts])
        return Possible(left, literals)


def _counted(sorts: frozenset[str], literals: frozenset[Literal]) -> Possible:
    return Possible(sorts, literals if len(literals) <= _MOST else None)


def _sort(literal: Literal) -> str:
    return NONE if literal.value is None else TRUE if literal.value else FALSE


BOTTOM = Possible(frozenset(), frozenset())
TOP = Possible(frozenset({NONE, TRUE, FALSE}), None)
#: Any object but None.
SOMETHING = Possible(frozenset({TRUE, FALSE}), None)
#: An object that is true, as most are.
OBJECT = Possible(frozenset({TRUE}), None)


def of(*values: object) -> Possible:
    """One of several literals."""
    literals = frozenset([Literal(type(value).__name__, value) for value in values])
    return _counted(frozenset(map(_sort, literals)), literals)


YES, NO = of(True), of(False)  # noqa: FBT003
BOOL = YES | NO


def joined(parts: Iterable[Possible]) -> Possible:
    found = BOTTOM
    for part in parts:
        found |= part
    return found


def tested(truth: bool | None) -> Possible:  # noqa: FBT001 - what a test comes to
    """The truth value that a test gives."""
    return BOOL if truth is None else of(truth)


def lifted(function: Callable[..., object], *arguments: Possible, otherwise: Possible = BOOL) -> Possible:
    """What a function of literals gives for any that the arguments may be. `otherwise` where they cannot be counted, or
    where it raises for some of them; it must cover all that the function gives.
    """
    if BOTTOM in arguments:
        return BOTTOM
    counted = [item.literals for item in arguments if item.literals is not None]
    if len(counted) < len(arguments):
        return otherwise
    try:
        return joined([of(function(*[item.value for item in chosen])) for chosen in product(*counted)])
    except (TypeError, ValueError, ArithmeticError):
        return otherwise
