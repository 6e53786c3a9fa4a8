"""The laws of the lattice of kinds: of `join`, and of what gives one kind for another."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.analysis.values.kind import NEVER, NONE, UNKNOWN, Device, Kind, Place, Tag, join, leq, limited
from perflint.finding import Confidence

NAMES = ("", "torch.FloatTensor", "torch.cuda.FloatTensor", "a.B")
REASONS = ("", "made by `torch.zeros`", "moved by `x.cuda()`", "a batch of `DataLoader`")
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
        scalar=source.random() < 0.5,
        requires_grad=source.choice([None, True, False]),
        fresh=source.random() < 0.5,
        optional=source.random() < 0.3,
        certainty=source.choice(list(Confidence)),
        how=source.choice(REASONS),
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
        how=source.choice(REASONS),
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


TRANSFERS: dict[str, Callable[[Kind], Kind]] = {
    "limited": lambda kind: limited(kind, 1),
    "at_most": lambda kind: kind.at_most(Confidence.MEDIUM),
    "joined": lambda kind: join((kind, Kind(Tag.TENSOR, Place.TARGET))),
}


@pytest.mark.parametrize("name", TRANSFERS)
@settings(max_examples=500, deadline=None)
@given(one=KINDS, two=KINDS)
def test_what_covers_more_gives_what_covers_more(name: str, one: Kind, two: Kind) -> None:
    transfer = TRANSFERS[name]
    assert leq(transfer(one), transfer(join((one, two))))
