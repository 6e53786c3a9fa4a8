"""What an expression of summaries may come to, given what its names may be: an abstract evaluator of tests.

Operators are evaluated here. Names, attributes, calls and items of anything are leaves: the environment tells them.
Every rule is monotone: where more may be known of the parts, no more may be what the whole comes to.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from perflint.analysis.feasibility.lattice import (
    BOOL,
    BOTTOM,
    FALSE,
    NO,
    NONE,
    OBJECT,
    SOMETHING,
    TOP,
    TRUE,
    YES,
    Possible,
    joined,
    lifted,
    of,
    tested,
)
from perflint.ir.notation import LONGEST_TEXT
from perflint.ir.summary import Value

#: Whether something has an entry by a name: (HOLDS, it, name).
HOLDS = "holds"
#: What a leaf may be: a dotted name, a call, an item, an attribute of something without a name, whether one `HOLDS`.
Leaves: TypeAlias = Callable[[Value], Possible]

_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow,
}  # fmt: skip
_LARGEST = 2**31
_NUMBERS = frozenset({"int", "bool"})
#: False where they hold nothing.
_SIZED = frozenset({"list", "tuple", "dict", "set"})
#: Whose value is written down.
_WRITTEN = frozenset({"int", "bool", "str", "float"})


def evaluate(value: Value, leaves: Leaves) -> Possible:
    """What a value, or an expression of `ir.computed`, may be. One that is not written down is some object."""
    if value is None:
        return SOMETHING
    if type(value) is str:
        return leaves(value)
    form = value[0]
    if form == "const":
        return literal(value)
    rule = _FORMS.get(form)
    return leaves(value) if rule is None else rule(value, leaves)


def parts_of(values: tuple[Value, ...], index: int) -> tuple[Value, ...]:
    """What stands at a place of those of several values that are written as tuples: what `_, mask = f()` takes."""
    written = (value[1] for value in values if type(value) is tuple and value[0] == "seq")
    return tuple(items[index] for items in written if -len(items) <= index < len(items))


def literal(value: Value) -> Possible:
    """A literal in the notation of summaries."""
    _, kind, written = value
    if kind == "NoneType":
        return of(None)
    if kind not in _WRITTEN or written is None or (kind == "str" and len(written) >= LONGEST_TEXT):
        return SOMETHING.typed(kind) if kind in _WRITTEN else SOMETHING
    return of(written)


def _not(value: Value, leaves: Leaves) -> Possible:
    found = evaluate(value[1], leaves)
    return BOTTOM if found == BOTTOM else tested(None if found.truth is None else not found.truth)


def _and(value: Value, leaves: Leaves) -> Possible:
    """The first of several that is false, or the last."""
    return _first_that(value[1], leaves, (NONE, FALSE))


def _or(value: Value, leaves: Leaves) -> Possible:
    return _first_that(value[1], leaves, (TRUE,))


def _first_that(parts: tuple[Value, ...], leaves: Leaves, decisive: tuple[str, ...]) -> Possible:
    found = BOTTOM
    for part in parts[:-1]:
        here = evaluate(part, leaves)
        found |= here.only(*decisive)
        if here.sorts.issubset(decisive):
            return found
    return found | evaluate(parts[-1], leaves)


def _if(value: Value, leaves: Leaves) -> Possible:
    _, test, body, otherwise = value
    sorts = evaluate(test, leaves).sorts
    found = evaluate(body, leaves) if TRUE in sorts else BOTTOM
    return found | evaluate(otherwise, leaves) if sorts - {TRUE} else found


def _compare(value: Value, leaves: Leaves) -> Possible:
    _, name, left, right = value
    one = evaluate(left, leaves)
    if name in ("in", "not in"):
        found = _contained(one, right, leaves)
        return found if name == "in" else _negated(found)
    other = evaluate(right, leaves)
    if name in ("is", "=="):
        return _same(one, other, _is if name == "is" else operator.eq)
    if name in ("is not", "!="):
        return _negated(_same(one, other, _is if name == "is not" else operator.eq))
    return lifted(_ORDERS[name], one, other)


def _negated(found: Possible) -> Possible:
    return lifted(operator.not_, found)


def _is(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _same(one: Possible, other: Possible, same: Callable[[object, object], bool]) -> Possible:
    """Whether two values are the same: what may not be None is no None."""
    if BOTTOM in (one, other):
        return BOTTOM
    if (one.sorts == {NONE} and NONE not in other.sorts) or (other.sorts == {NONE} and NONE not in one.sorts):
        return NO
    return lifted(same, one, other)


def _contained(one: Possible, container: Value, leaves: Leaves) -> Possible:
    if type(container) is tuple and container[0] == "seq":
        if one == BOTTOM:
            return BOTTOM
        same = [_same(one, evaluate(item, leaves), operator.eq) for item in container[1]]
        if BOTTOM in same:
            return BOTTOM
        if YES in same:
            return YES
        return NO if all(item == NO for item in same) else BOOL
    key = next(iter(one.literals)).value if one.literals is not None and len(one.literals) == 1 else None
    if isinstance(key, str) and type(container) is str:
        held = leaves((HOLDS, container, key))
        if held != TOP:
            return held
    return lifted(_in_text, one, evaluate(container, leaves))


def _in_text(one: object, container: object) -> bool:
    if not isinstance(one, str) or not isinstance(container, str):
        raise TypeError
    return one in container


def _arithmetic(value: Value, leaves: Leaves) -> Possible:
    rule = _ARITHMETIC[value[1]]

    def compute(one: object, other: object) -> int:
        if not isinstance(one, int) or not isinstance(other, int) or max(abs(one), abs(other)) > _LARGEST:
            raise TypeError
        if value[1] == "**" and not 0 <= other <= 31:
            raise ValueError
        return rule(one, other)

    return lifted(compute, evaluate(value[2], leaves), evaluate(value[3], leaves), otherwise=SOMETHING)


def _either(value: Value, leaves: Leaves) -> Possible:
    return joined([evaluate(part, leaves) for part in value[1]])


def _sequence(value: Value, _: Leaves) -> Possible:
    return SOMETHING.only(TRUE if value[1] else FALSE).typed("list", "tuple")


_FORMS: dict[str, Callable[[Value, Leaves], Possible]] = {
    "not": _not,
    "and": _and,
    "or": _or,
    "if": _if,
    "compare": _compare,
    "arithmetic": _arithmetic,
    "either": _either,
    "seq": _sequence,
    "map": lambda *_: SOMETHING.typed("dict"),
    "each": lambda *_: SOMETHING.typed("list", "generator", "set"),
    "table": lambda *_: SOMETHING.typed("dict"),
    "lambda": lambda *_: OBJECT.typed("function"),
}


def builtin(name: str, args: tuple[Value, ...], leaves: Leaves) -> Possible | None:
    """What a call of a builtin function gives, None where nothing is known of that function."""
    given = [evaluate(item, leaves) for item in args]
    if name == "len" and len(args) == 1:
        is_empty = given[0].sorts == {FALSE} and given[0].types is not None and given[0].types <= _SIZED
        return of(0) if is_empty else lifted(len, given[0], otherwise=SOMETHING)
    if len(given) == 1 and name in _CONVERSIONS:
        return BOTTOM if given[0] == BOTTOM else _CONVERSIONS[name](given[0])
    return BOOL if name in ("callable", "issubclass", "hasattr", "any", "all") else None


_CONVERSIONS: dict[str, Callable[[Possible], Possible]] = {
    "bool": lambda found: tested(found.truth),
    "int": lambda found: lifted(int, found, otherwise=SOMETHING.typed("int")),
    "str": lambda found: lifted(str, found, otherwise=SOMETHING.typed("str")),
    "float": lambda _: SOMETHING.typed("float"),
    "tuple": lambda _: SOMETHING.typed("tuple"),
    "list": lambda _: SOMETHING.typed("list"),
}
