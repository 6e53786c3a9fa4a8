"""The laws of the lattice of kinds: of `join`, and of what gives one kind for another."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.analysis.values import library, methods, operations, transfers
from perflint.analysis.values.arguments import given as given_arguments
from perflint.analysis.values.dtypes import Dtype, join_dtypes, of_operation, promoted
from perflint.analysis.values.kind import NEVER, NONE, NUMBER, UNKNOWN, Device, Kind, Place, Tag, join, leq, limited
from perflint.analysis.values.origin import Origin, Provenance, join_origins
from perflint.analysis.values.ranks import SOME, broadcast, fewer, join_ranks, more
from perflint.finding import Confidence

NAMES = ("", "torch.FloatTensor", "torch.cuda.FloatTensor", "a.B")
ORIGINS = (
    None,
    Origin(Provenance.CONSTRUCTOR, "torch.zeros"),
    Origin(Provenance.CONSTRUCTOR, "torch.ones"),
    Origin(Provenance.MOVE, "cuda"),
    Origin(Provenance.LOADER, "DataLoader"),
)
CONSTANTS = (NEVER, UNKNOWN, NONE, Kind(Tag.NUMBER), Kind(Tag.ARRAY), UNKNOWN.but(place=Place.TARGET))
HOLDERS = (Tag.SEQUENCE, Tag.MAPPING, Tag.LOADER, Tag.BATCH)


def made(source: random.Random, depth: int = 2) -> Kind:
    """A kind as the tables make them, or the join of two."""
    forms = [lambda: source.choice(CONSTANTS), lambda: _named(source), lambda: _tensor(source), lambda: _tensor(source)]
    if depth:
        forms += [lambda: _holder(source, depth - 1)] * 2
        forms += [lambda: join((made(source, depth - 1), made(source, depth - 1)))]
    return source.choice(forms)()


def _tensor(source: random.Random) -> Kind:
    return Kind(
        source.choice([Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.MODULE]),
        source.choice(list(Place)),
        device=source.choice([None, Device.CUDA, Device.CPU, Device.MAYBE]),
        pinned=source.random() < 0.5,
        rank=source.choice([None, 0, 1, 2, -1]),
        dtype=source.choice([None, *Dtype]),
        requires_grad=source.choice([None, True, False]),
        fresh=source.random() < 0.5,
        optional=source.random() < 0.3,
        certainty=source.choice(list(Confidence)),
        origin=source.choice(ORIGINS),
    )


def _named(source: random.Random) -> Kind:
    certainty = source.choice(list(Confidence))
    if source.random() < 0.5:
        tag = source.choice([Tag.DEVICE, Tag.STRING])
        return Kind(tag, device=source.choice([None, *Device]), certainty=certainty)
    tag = source.choice([Tag.CLASS, Tag.FUNCTION, Tag.INSTANCE])
    return Kind(tag, qualified=source.choice(NAMES), certainty=certainty)


def _holder(source: random.Random, depth: int) -> Kind:
    """A container. Items of lists are numbered, those of all others named."""
    tag = source.choice(HOLDERS)
    keys = source.choice([(), (0,), (0, 1)]) if tag is Tag.SEQUENCE else source.choice([(), ("x",), ("y", "x")])
    return Kind(
        tag,
        source.choice([Place.UNKNOWN, Place.HOST, Place.TARGET]),
        element=None if source.random() < 0.2 else made(source, depth),
        items=tuple((key, made(source, depth)) for key in keys),
        optional=source.random() < 0.3,
        certainty=source.choice(list(Confidence)),
        origin=source.choice(ORIGINS),
    )


KINDS = st.integers(0, 2**32).map(lambda seed: made(random.Random(seed)))


@settings(max_examples=1_000, deadline=None)
@given(KINDS, KINDS, KINDS)
def test_join_is_that_of_a_lattice(one: Kind, two: Kind, three: Kind) -> None:
    assert join((one, one)) == one
    assert join((one, two)) == join((two, one))
    assert join((join((one, two)), three)) == join((one, join((two, three))))


@settings(max_examples=500, deadline=None)
@given(KINDS, KINDS)
def test_bottom_adds_nothing_top_takes_all_and_a_join_covers_its_parts(one: Kind, two: Kind) -> None:
    assert join((NEVER, one)) == join((one, NEVER)) == one
    assert join((UNKNOWN, one)) == join((one, UNKNOWN)) == UNKNOWN
    both = join((one, two))
    assert leq(one, both)
    assert leq(two, both)
    assert leq(NEVER, one)
    assert leq(one, UNKNOWN)


METHODS = "sum max half bool cpu cuda detach view unsqueeze flatten nonzero sort new_zeros item numpy"
FUNCTIONS = "sum max relu isnan stack zeros_like argmax nn.functional.mse_loss"


def _method(name: str, kind: Kind) -> Kind:
    return methods.method(kind, name, given_arguments())


def _function(name: str, kind: Kind) -> Kind:
    return library.call(name, given_arguments(kind))


FLOATS = Kind(Tag.TENSOR, Place.DEVICE, device=Device.CUDA, rank=2, dtype=Dtype.FLOAT)
TRANSFERS: dict[str, Callable[[Kind], Kind]] = {
    "limited": lambda kind: limited(kind, 1),
    "at_most": lambda kind: kind.at_most(Confidence.MEDIUM),
    "joined": lambda kind: join((kind, Kind(Tag.TENSOR, Place.TARGET))),
    "not": lambda kind: operations.unary(ast.Not(), kind),
}
#: What holds for tensors. Of what is not known to be one, a method or an operator is evidence that it is: that holds no
#: law, and cycles through it come to rest by widening (`queries`).
TENSOR_TRANSFERS: dict[str, Callable[[Kind], Kind]] = {
    "iterate": operations.iterate,
    "item": lambda kind: operations.index(kind, 0),
    "slice": lambda kind: operations.index(kind, None, is_slice=True),
    "negative": lambda kind: operations.unary(ast.USub(), kind),
    "plus a number": lambda kind: operations.binary(kind, ast.Add(), NUMBER),
    "over a number": lambda kind: operations.binary(kind, ast.Div(), NUMBER),
    "less than a number": lambda kind: operations.compare(kind, [ast.Lt()], [NUMBER]),
    "selects": lambda kind: operations.index(FLOATS, None, by=kind),
    "plus": lambda kind: operations.binary(kind, ast.Add(), FLOATS),
    "less": lambda kind: operations.compare(kind, [ast.Lt()], [FLOATS]),
    "moved": lambda kind: transfers.moved(kind, Device.CUDA, Origin(Provenance.MOVE, "cuda")),
    **{name: partial(_method, name) for name in METHODS.split()},
    **{f"torch.{name}": partial(_function, f"torch.{name}") for name in FUNCTIONS.split()},
}
DEVICES = {Place.DEVICE: [Device.CUDA], Place.TARGET: [Device.MAYBE, Device.CUDA_OR_CPU]}
TENSORS = st.integers(0, 2**32).map(lambda seed: _on_its_device(_tensor(random.Random(seed)), seed))


def _on_its_device(kind: Kind, seed: int) -> Kind:
    """A tensor whose device is of its place."""
    return kind.but(tag=Tag.TENSOR, device=random.Random(seed).choice(DEVICES.get(kind.place, [None])))


def _value(kind: Kind) -> Kind:
    """What a kind says of a value, without what it rests on."""
    return kind.but(certainty=Confidence.HIGH, origin=None)


RANKS = st.sampled_from([None, SOME, 0, 1, 2, 3])
DTYPES = st.sampled_from([None, *Dtype])
FOUND = st.sampled_from(ORIGINS)


@pytest.mark.parametrize("name", TRANSFERS)
@settings(max_examples=500, deadline=None)
@given(one=KINDS, two=KINDS)
def test_what_covers_more_gives_what_covers_more(name: str, one: Kind, two: Kind) -> None:
    transfer = TRANSFERS[name]
    assert leq(transfer(one), transfer(join((one, two))))


@pytest.mark.parametrize("name", TENSOR_TRANSFERS)
@settings(max_examples=200, deadline=None)
@given(one=TENSORS, two=TENSORS)
def test_operations_on_tensors_are_monotone(name: str, one: Kind, two: Kind) -> None:
    transfer = TENSOR_TRANSFERS[name]
    assert leq(_value(transfer(one)), _value(transfer(join((one, two)))))


@given(RANKS, RANKS, RANKS)
def test_ranks_are_a_lattice_and_their_operations_monotone(one: int | None, two: int | None, three: int | None) -> None:
    _is_a_join(join_ranks, one, two, three)
    both = join_ranks(one, two)
    transfers: list[Callable[[int | None], int | None]] = [fewer, more, lambda rank: broadcast([rank, three])]
    for transfer in transfers:
        assert join_ranks(transfer(one), transfer(both)) == transfer(both)


@given(DTYPES, DTYPES, DTYPES)
def test_types_are_a_lattice_and_their_promotion_monotone(
    one: Dtype | None, two: Dtype | None, three: Dtype | None
) -> None:
    _is_a_join(join_dtypes, one, two, three)
    both = join_dtypes(one, two)
    transfers: list[Callable[[Dtype | None], Dtype | None]] = [
        lambda dtype: promoted([dtype, three]),
        lambda dtype: of_operation("mean", [dtype]),
        lambda dtype: of_operation("sum", [dtype]),
        lambda dtype: of_operation("argmax", [dtype]),
    ]
    for transfer in transfers:
        assert join_dtypes(transfer(one), transfer(both)) is transfer(both)


@given(FOUND, FOUND, FOUND)
def test_origins_are_a_lattice(one: Origin | None, two: Origin | None, three: Origin | None) -> None:
    _is_a_join(join_origins, one, two, three)


def _is_a_join(joined: Callable[[Any, Any], Any], one: object, two: object, three: object) -> None:
    assert joined(one, one) == one
    assert joined(one, two) == joined(two, one)
    assert joined(joined(one, two), three) == joined(one, joined(two, three))
