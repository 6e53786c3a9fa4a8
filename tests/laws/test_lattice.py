"""The laws of the lattice of kinds: of `join`, and of what gives one kind for another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.finding import Confidence
from perflint.kinds.kind import NEVER, NONE, UNKNOWN, Device, Kind, Place, Tag, join, leq, limited

NAMES = st.sampled_from(["", "torch.FloatTensor", "torch.cuda.FloatTensor", "a.B"])
REASONS = st.sampled_from(["", "made by `torch.zeros`", "moved by `x.cuda()`", "a batch of `DataLoader`"])
CONFIDENCES = st.sampled_from(list(Confidence))
TENSORS = st.builds(
    Kind,
    st.sampled_from([Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.MODULE]),
    st.sampled_from(list(Place)),
    device=st.sampled_from([None, Device.CUDA, Device.CPU, Device.MAYBE]),
    pinned=st.booleans(),
    scalar=st.booleans(),
    requires_grad=st.sampled_from([None, True, False]),
    fresh=st.booleans(),
    optional=st.booleans(),
    certainty=CONFIDENCES,
    how=REASONS,
)
DEVICES = st.builds(
    Kind, st.sampled_from([Tag.DEVICE, Tag.STRING]), device=st.sampled_from([None, *Device]), certainty=CONFIDENCES
)
NAMED = st.builds(
    Kind, st.sampled_from([Tag.CLASS, Tag.FUNCTION, Tag.INSTANCE]), qualified=NAMES, certainty=CONFIDENCES
)
LEAVES = st.one_of(
    st.sampled_from([NEVER, UNKNOWN, NONE, Kind(Tag.NUMBER), Kind(Tag.ARRAY), UNKNOWN.but(place=Place.TARGET)]),
    TENSORS,
    DEVICES,
    NAMED,
)


def containers(held: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    items = st.one_of(
        st.lists(held, max_size=2).map(lambda kinds: tuple(enumerate(kinds))),
        st.dictionaries(st.sampled_from(["x", "y"]), held).map(lambda kinds: tuple(kinds.items())),
    )
    return st.builds(
        Kind,
        st.sampled_from([Tag.SEQUENCE, Tag.MAPPING, Tag.LOADER, Tag.BATCH]),
        st.sampled_from([Place.UNKNOWN, Place.HOST, Place.TARGET]),
        element=st.one_of(st.none(), held),
        items=items,
        optional=st.booleans(),
        certainty=CONFIDENCES,
        how=REASONS,
    ).map(_named)


def _named(kind: Kind) -> Kind:
    """Items of lists are numbered, those of all others named."""
    named = kind.tag is not Tag.SEQUENCE
    if named != all(isinstance(key, str) for key, _ in kind.items):
        return kind.but(items=())
    return kind


KINDS = st.recursive(LEAVES, containers, max_leaves=5)


@settings(max_examples=200, deadline=None)
@given(KINDS, KINDS, KINDS)
def test_join_is_that_of_a_lattice(one: Kind, two: Kind, three: Kind) -> None:
    assert join((one, one)) == one
    assert join((one, two)) == join((two, one))
    assert join((join((one, two)), three)) == join((one, join((two, three))))


@settings(max_examples=100, deadline=None)
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
@settings(max_examples=100, deadline=None)
@given(one=KINDS, two=KINDS)
def test_what_covers_more_gives_what_covers_more(name: str, one: Kind, two: Kind) -> None:
    transfer = TRANSFERS[name]
    assert leq(transfer(one), transfer(join((one, two))))
