"""Loaders that a loop takes one after the other from a list that is written out, and the name that it gives them."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.ir.callees import last_name
from perflint.ir.summary import FunctionFacts, LoopFacts, Value


def listed_as(name: str, facts: FunctionFacts) -> Iterator[tuple[int, str]]:
    """The loops of a function over lists with `name` in them, each with its own name for an item: `loader` of `for
    loader, split in zip([held_out, tests], splits)`.
    """
    for index, loop in enumerate(facts.loops):
        for at, values in _lists(loop):
            if name in values and at < len(loop.targets):
                yield index, loop.targets[at]


def _lists(loop: LoopFacts) -> Iterator[tuple[int, tuple[Value, ...]]]:
    """The lists that a loop goes through, with the place of the target for their items."""
    over = loop.iterable
    if not isinstance(over, tuple) or not over:
        return
    if over[0] == "seq":
        if len(loop.targets) == 1:
            yield 0, over[1]
        else:
            yield from enumerate(zip(*(item[1] for item in over[1] if _is_list(item))))
    elif over[0] == "call" and last_name(over[1]) in ("zip", "enumerate"):
        first = int(last_name(over[1]) == "enumerate")
        yield from ((first + at, item[1]) for at, item in enumerate(over[2]) if _is_list(item))
    elif over[0] == "call" and isinstance(over[1], tuple) and over[1][:1] == ("attr",) and over[1][2] == "items":
        if isinstance(over[1][1], tuple) and over[1][1][:1] == ("map",):
            yield 1, tuple(value for _, value in over[1][1][1])


def _is_list(value: Value) -> bool:
    return isinstance(value, tuple) and value[:1] == ("seq",)
