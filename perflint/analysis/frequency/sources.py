"""What values of a function's summary are made of: the calls, items and names behind them, for the roots of heat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perflint.ir.callees import last_name
from perflint.ir.summary import FunctionFacts, Value


def behind(values: Iterable[Value], facts: FunctionFacts, known: set[str]) -> Iterator[Value]:
    """Values and their parts, through the names that they are bound to in a function but for the `known` ones."""
    seen = set(known)
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if value.endswith("()"):
                yield ("call", value[:-2], (), ())
                continue
            yield value
            name = value.partition(".")[0]
            if name not in seen:
                seen.add(name)
                waiting += facts.binds.get(name, ())
                waiting += (part for target, parts in facts.mixed if target == name for part in parts)
                waiting += (item for container, item in facts.stores if container == name)
        elif isinstance(value, tuple):
            yield value
            waiting += parts_of(value)


def calls_behind(values: Iterable[Value], facts: FunctionFacts, known: set[str]) -> Iterator[Value]:
    """The calls that values come from."""
    return (value for value in behind(values, facts, known) if isinstance(value, tuple) and value[0] == "call")


def parts_of(value: Value) -> Iterator[Value]:
    form = value[0]
    if form == "call":
        yield value[1]
        yield from value[2]
        yield from (item for _, item in value[3])
    elif form in ("item", "attr"):
        yield value[1]
    elif form in ("seq", "either"):
        yield from value[1]
    elif form in ("each", "table"):
        yield value[1]
    elif form == "map":
        yield from (item for _, item in value[1])


def names_in(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in parts_of(value):
            yield from names_in(part)


def last_of_call(value: Value) -> str:
    """The last name of what a value is a call of, empty where it is none."""
    return last_name(value[1]) if isinstance(value, tuple) and value[0] == "call" else ""
