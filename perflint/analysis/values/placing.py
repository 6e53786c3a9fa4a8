"""What a module holds lies where the module does."""

from __future__ import annotations

from perflint.analysis.values.kind import NEVER, Device, Kind, Place, Tag, leaf_place
from perflint.analysis.values.origin import Origin, Provenance, is_from


def placed(kind: Kind, base: Kind) -> Kind:
    """An attribute of a module whose place is known is there too."""
    if base.tag is Tag.MODULE and base.place not in (Place.UNKNOWN, Place.MODULE):
        return put_module(kind, base.place, base.device)
    return kind


def put_module(kind: Kind, place: Place, device: Device | None) -> Kind:
    """`kind` with what is on the module's device put at `place`."""
    if place in (Place.UNKNOWN, Place.MODULE) or kind.tag is Tag.NEVER or kind == NEVER:
        return kind
    changes: dict[str, object] = {}
    if kind.place is Place.MODULE:
        changes = {"place": place, "device": device}
    if kind.element is not None and leaf_place(kind.element) is Place.MODULE:
        changes["element"] = put_module(kind.element, place, device)
    if kind.items:
        changes["items"] = tuple((key, put_module(item, place, device)) for key, item in kind.items)
    return kind.but(**changes) if changes else kind


def handed_out(kind: Kind, place: Place, device: Device | None) -> Kind:
    """What a call of a module gives: where the module is, also where a part of it computed the result of nobody knows
    what.
    """
    if (
        kind.is_tensor
        and kind.place is Place.UNKNOWN
        and is_from(kind.origin, Provenance.MODULE)
        and place.is_accelerator
    ):
        kind = kind.but(place=Place.MODULE, device=None)
    return put_module(kind, place, device)


def held_by_module(held: Kind) -> Kind:
    """A module or a parameter that a container of such holds: it is wherever the container is put."""
    if held.tag is Tag.TENSOR:
        return held.but(place=Place.MODULE, device=None, fresh=False, origin=Origin(Provenance.PARAMETER))
    return held.but(place=Place.MODULE) if held.tag is Tag.MODULE and held.place is Place.UNKNOWN else held


def with_module(kind: Kind) -> Kind:
    """What a mapping holds that is all a forward is given: tensors of which nobody says where they are lie with it."""
    if kind.holds_tensors:
        return kind.but(place=Place.MODULE, device=None) if kind.place is Place.UNKNOWN else kind
    if kind.tag not in (Tag.SEQUENCE, Tag.MAPPING):
        return kind
    items = tuple((key, with_module(held)) for key, held in kind.items)
    return kind.but(items=items, element=kind.element and with_module(kind.element))
