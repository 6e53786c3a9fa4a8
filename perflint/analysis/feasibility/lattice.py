"""The lattice of what a value may be: one of a few literals, or of what is only known whether it is None or true.

An element says of which sorts a value may be (None, true, false), which literals it is one of where these can be
counted, and of which types it is where these are told. Bottom is no value at all, top any value. Its height is finite:
more than a few literals, or types, are no longer counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, NamedTuple, TypeAlias

#: The sorts of values: None, other values that are true, other values that are false.
NONE, TRUE, FALSE = "None", "true", "false"
#: How many literals are counted, and how many types.
_MOST = 8


class Literal(NamedTuple):
    """A literal with the name of its type: 1 and True are two."""

    type: str
    value: Any


Literals: TypeAlias = "frozenset[Literal] | None"
Types: TypeAlias = "frozenset[str] | None"


class Possible(NamedTuple):
    """What a value may be. `literals` is None where they cannot be counted, `types` where nobody can tell: they go by
    the names of builtins, `Tensor`, `Parameter`, and of the project's classes by path and name.
    """

    sorts: frozenset[str]
    literals: Literals
    types: Types = None

    def __or__(self, other: tuple[Any, ...]) -> Possible:
        """The join."""
        assert isinstance(other, Possible)
        types = None if self.types is None or other.types is None else self.types | other.types
        literals = None if self.literals is None or other.literals is None else self.literals | other.literals
        return _counted(self.sorts | other.sorts, literals, types)

    def within(self, other: Possible) -> bool:
        """Whether whatever a value of this may be, `other` may be as well."""
        if not self.sorts <= other.sorts:
            return False
        if other.types is not None and (self.types is None or not self.types <= other.types):
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
        types = self.types
        if literals is not None:
            types = frozenset([item.type for item in literals])
        elif types is not None and NONE not in left:
            types -= {"NoneType"}
        return Possible(left, literals, types)

    def typed(self, *types: str) -> Possible:
        """The same, of one of these types."""
        return self._replace(types=frozenset(types))


def _counted(sorts: frozenset[str], literals: Literals, types: Types) -> Possible:
    """An element that counts no more than a few."""
    is_few = literals is not None and len(literals) <= _MOST
    return Possible(sorts, literals if is_few else None, types if types is not None and len(types) <= _MOST else None)


def _sort(literal: Literal) -> str:
    return NONE if literal.value is None else TRUE if literal.value else FALSE


BOTTOM = Possible(frozenset(), frozenset(), frozenset())
TOP = Possible(frozenset({NONE, TRUE, FALSE}), None)
#: Any object but None.
SOMETHING = Possible(frozenset({TRUE, FALSE}), None)
#: An object that is true, as most are.
OBJECT = Possible(frozenset({TRUE}), None)


def of(*values: object) -> Possible:
    """One of several literals."""
    literals = frozenset([Literal(type(value).__name__, value) for value in values])
    return _counted(frozenset(map(_sort, literals)), literals, frozenset([item.type for item in literals]))


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


#: Defaults of options that choose nothing.
_SWITCHES = (None, False, True, 0, "", "none", "None")


def switched(found: Possible) -> Possible:
    """A default of an option, as far as it says which branches are taken: an option that is off, or None, switches
    something on; which of several it chooses says nothing of what users choose.
    """
    if found.literals is not None and all(item.value in _SWITCHES for item in found.literals):
        return found
    return Possible(found.sorts, None, found.types if found.literals is None else None) if found != BOTTOM else found


def chosen(found: Possible) -> Possible:
    """A default of an option together with all that the commands, or the files, of a project are seen to give it: which
    of several they choose, by a name, tells as well which branches are taken.
    """
    if found.literals is not None and all(item.type == "str" or not item.value for item in found.literals):
        return found
    return switched(found)
