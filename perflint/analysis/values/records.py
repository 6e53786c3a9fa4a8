"""Structures of tensors that libraries make of what they are given by name: graphs, tensor dictionaries, namespaces."""

from __future__ import annotations

from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.kind import Kind, Place, Tag, leaf_place, mapping
from perflint.analysis.values.origin import Origin, Provenance
from perflint.finding import Confidence
from perflint.torch_model import structures


def named_item(kind: Kind, name: str) -> Kind | None:
    """What a namespace holds under a name: `nets.encoder`; None where that is not known, and of anything else."""
    if kind.path or kind.tag not in (Tag.MAPPING, Tag.INSTANCE) or kind.qualified not in structures.HOLDING_BY_NAME:
        return None
    if kind.items or kind.tag is Tag.INSTANCE or hasattr(dict, name):
        return kind.item(name)
    return kind.element


def annotated(name: str) -> Kind | None:
    """What an annotation by such a class promises."""
    if name not in structures.OF_TENSORS:
        return None
    return Kind(Tag.BATCH, certainty=Confidence.MEDIUM, origin=Origin(Provenance.ANNOTATION))


def made(name: str, arguments: Arguments) -> Kind | None:
    """What the constructor of such a class gives, or what puts several of them together."""
    if name in structures.JOINED:
        given = arguments.at(0)
        place = Place.UNKNOWN if given is None else leaf_place(given)
        return Kind(
            Tag.BATCH, place, device=None, certainty=Confidence.MEDIUM, origin=Origin(Provenance.CONSTRUCTOR, name)
        )
    if name in structures.NAMESPACES:
        given_by_name = tuple((key, thunk()) for key, thunk in arguments.keywords.items())
        return Kind(Tag.INSTANCE, qualified=name, items=given_by_name) if arguments.exact else None
    if name in structures.KEYED_NAMESPACES and arguments.exact and arguments.keywords and not len(arguments):
        return mapping(items=((key, thunk()) for key, thunk in arguments.keywords.items())).but(qualified=name)
    if name not in structures.OF_TENSORS:
        return None
    first = arguments.at(0)
    items: list[tuple[int | str, Kind]] = list(first.items) if first is not None and first.tag is Tag.MAPPING else []
    items += [(key, kind) for key, thunk in arguments.keywords.items() if (kind := thunk()).tag is not Tag.NONE]
    places = {leaf_place(kind) for _, kind in items if kind.holds_tensors or not kind.known}
    return Kind(
        Tag.BATCH,
        places.pop() if len(places) == 1 else Place.UNKNOWN,
        items=tuple((key, kind.but(fresh=False)) for key, kind in items),
        certainty=Confidence.MEDIUM,
        origin=Origin(Provenance.CONSTRUCTOR, name),
    )
