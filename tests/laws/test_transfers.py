"""Transfer functions are monotone: what is known less of the operands is known no better of the result.

The methods and functions of the tables, in each place of an operand, and what code does to the device's queue.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_lattice import _on_its_device, _tensor

from perflint.analysis.device_queue.functions import Entry
from perflint.analysis.device_queue.queue import QueueState
from perflint.analysis.device_queue.transfer import FULL, NEVER, NOTHING, WORK, Transfer, launching, waiting
from perflint.analysis.values import library, methods, operations
from perflint.analysis.values.arguments import given as given_arguments
from perflint.analysis.values.kind import Kind, Place, join, leq
from perflint.finding import Confidence, Hop
from perflint.torch_model import tensors

METHODS = sorted(
    set().union(
        tensors.VIEW_METHODS,
        tensors.CAST_METHODS,
        tensors.FRESH_METHODS,
        tensors.TUPLE_METHODS,
        tensors.NEW_METHODS,
        tensors.NUMBER_METHODS,
        tensors.DIMENSIONED,
        tensors.TO_DEVICE_METHODS,
        ("to", "cpu", "pin_memory", "item", "type_as", "size", "backward", "split", "numpy"),
    )
    # Written of what is not known to be a single number, it says that there are several.
    - {"tolist"}
)
FUNCTIONS = sorted({*tensors.FUNCTIONS, *tensors.TUPLE_FUNCTIONS, *tensors.LIKE_CONSTRUCTORS})
OPERATORS = (ast.Add(), ast.Div(), ast.MatMult(), ast.BitAnd(), ast.Pow())
#: Each with the operand that changes and another one that stays.
PLACES: dict[str, Callable[[str, Kind, Kind], Kind]] = {
    "receiver": lambda name, kind, other: methods.method(kind, name, given_arguments()),
    "receiver with an argument": lambda name, kind, other: methods.method(kind, name, given_arguments(other)),
    "argument": lambda name, kind, other: methods.method(other, name, given_arguments(kind)),
}
ARGUMENTS: dict[str, Callable[[str, Kind, Kind], Kind]] = {
    "only": lambda name, kind, other: library.call(name, given_arguments(kind)),
    "first": lambda name, kind, other: library.call(name, given_arguments(kind, other)),
    "second": lambda name, kind, other: library.call(name, given_arguments(other, kind)),
}
_DRAWN = 12


def drawn(seed: int) -> tuple[Kind, Kind, Kind]:
    """A tensor, one that covers it, and another one."""
    one, two, other = (_on_its_device(_tensor(random.Random(number)), number) for number in range(seed, seed + 3))
    return one, join((one, two)), other


def value(kind: Kind) -> Kind:
    """What a kind says of a value and of its parts, without what it rests on."""
    parts = tuple((key, value(part)) for key, part in kind.items)
    element = None if kind.element is None else value(kind.element)
    return kind.but(certainty=Confidence.HIGH, origin=None, element=element, items=parts)


def faults(transfer: Callable[[str, Kind, Kind], Kind], names: Iterable[str]) -> list[str]:
    """The names that give more where less is known."""
    found = []
    for name in names:
        for seed in range(0, 3 * _DRAWN, 3):
            one, wider, other = drawn(seed)
            if name in ("to", "type") and Place.UNKNOWN in (other.place, wider.place):
                continue  # who moves something to where another is says that this is worth a move
            if not leq(value(transfer(name, one, other)), value(transfer(name, wider, other))):
                found.append(f"{name} of {one!r} and of {wider!r} with {other!r}")
    return found


@pytest.mark.parametrize("place", PLACES)
def test_every_method_of_the_tables_is_monotone(place: str) -> None:
    assert faults(PLACES[place], METHODS) == []


@pytest.mark.parametrize("place", ARGUMENTS)
def test_every_function_of_the_tables_is_monotone(place: str) -> None:
    assert faults(ARGUMENTS[place], FUNCTIONS) == []


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**20), st.sampled_from(OPERATORS))
def test_operators_are_monotone_in_both_operands(seed: int, operator: ast.operator) -> None:
    one, wider, other = drawn(seed)
    assert leq(value(operations.binary(one, operator, other)), value(operations.binary(wider, operator, other)))
    assert leq(value(operations.binary(other, operator, one)), value(operations.binary(other, operator, wider)))


# The queue of the device.

PLACES_OF_WAITS = st.sampled_from([Hop("a.py", 1, "x"), Hop("a.py", 2, "x"), Hop("b.py", 1, "y")])
HOPS = st.one_of(st.none(), PLACES_OF_WAITS)
COUNTS = st.one_of(st.none(), st.integers(0, FULL))
PIECES = st.one_of(st.sampled_from([NEVER, NOTHING, WORK]), st.integers(0, 9).map(launching), HOPS.map(waiting))
CODES = st.recursive(
    PIECES,
    lambda inner: st.tuples(inner, inner, st.booleans()).map(
        lambda it: it[0].join(it[1]) if it[2] else it[0].then(it[1])
    ),
)


def counts(code: Transfer) -> tuple[int | None, int | None, int]:
    """What a transfer says, without the place that is for people."""
    return code.through, code.fresh, code.total


def covers(wide: Transfer, narrow: Transfer) -> bool:
    return counts(wide.join(narrow)) == counts(wide)


@given(CODES, CODES, CODES)
def test_what_code_does_to_the_queue_is_a_lattice_with_monotone_composition(
    one: Transfer, two: Transfer, three: Transfer
) -> None:
    assert one.join(one) == one
    assert one.join(two) == two.join(one)
    assert one.join(two).join(three) == one.join(two.join(three))
    wide = one.join(two)
    assert covers(wide.then(three), one.then(three))
    assert covers(three.then(wide), three.then(one))
    assert counts(one.then(two).then(three)) == counts(one.then(two.then(three)))
    again = one.again()
    assert covers(again, one)
    assert covers(again, again.then(one))
    assert covers(wide.again(), again)


ENTRIES = st.tuples(st.integers(0, FULL), st.frozensets(PLACES_OF_WAITS)).map(
    lambda it: Entry(FULL) if it[0] >= FULL else Entry(it[0], tuple(sorted(it[1], key=str)))
)
STATES = st.tuples(st.integers(0, FULL), st.frozensets(PLACES_OF_WAITS)).map(
    lambda it: QueueState(FULL) if it[0] >= FULL else QueueState(*it)
)


@given(ENTRIES, ENTRIES, ENTRIES, CODES)
def test_queues_where_functions_begin_are_a_lattice(one: Entry, two: Entry, three: Entry, code: Transfer) -> None:
    assert one.join(one) == one
    assert one.join(two) == two.join(one)
    assert one.join(two).join(three) == one.join(two.join(three))
    assert Entry(FULL).join(one) == Entry(FULL)
    behind, wide = one.after(code), one.join(two).after(code)
    assert (behind is None) is (wide is None)
    assert behind is None or wide is None or wide.join(behind).launched == wide.launched


@given(STATES, STATES, STATES)
def test_queues_before_statements_are_a_lattice(one: QueueState, two: QueueState, three: QueueState) -> None:
    assert one.join(one) == one
    assert one.join(two) == two.join(one)
    assert one.join(two).join(three) == one.join(two.join(three))
    assert QueueState(FULL).join(one) == QueueState(FULL)
    assert QueueState(0).join(one) == one
