"""What an object of the project holds of what its constructor was given: `self.tensors = tensors`, by the one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.names.refs import INSTANCE, Ref
from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Kind, Place, Tag, leaf_place
from perflint.finding import Confidence

#: What is worth to be known of one object: what holds tensors.
_HOLDING = (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.SEQUENCE, Tag.MAPPING, Tag.UNKNOWN)


class Field(NamedTuple):
    """An attribute that a constructor leaves to a parameter, at a place. It `varies` where others store there, too."""

    attribute: str
    parameter: str
    place: int
    varies: bool


class GivenFields:
    """Answers for one file's inference, remembered by class."""

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference
        self._fields: dict[Ref, tuple[Field, ...]] = {}

    def of(self, cls: Ref, arguments: Arguments) -> tuple[tuple[int | str, Kind], ...]:
        """The attributes that the constructor leaves to what this call gives it, where there are tensors in that."""
        fields = self._fields.get(cls)
        if fields is None:
            fields = self._fields[cls] = tuple(self._stored(cls))
        found: list[tuple[int | str, Kind]] = []
        for item in fields if arguments.exact else ():
            kind = arguments.at(item.place, item.parameter)
            if kind is None or kind.tag not in _HOLDING or _place_of(kind) is Place.UNKNOWN:
                continue
            kind = kind.but(fresh=False).at_most(Confidence.MEDIUM)
            # What a method puts there later is in the same place, and may be anything else.
            found.append((item.attribute, kind.but(rank=None, dtype=None, items=()) if item.varies else kind))
        return tuple(found)

    def _stored(self, cls: Ref) -> Iterator[Field]:
        program = self._inference.program
        made = program.resolver.method(Ref(INSTANCE, cls.path, cls.name), "__init__")
        summary = program.summaries.get(made.path) if made is not None else None
        if made is None or summary is None:
            return
        owner, facts = summary.classes.get(made.name.rpartition(".")[0]), summary.functions[made.name]
        names = [param.name for param in facts.params]
        for attribute, values in owner.attributes.items() if owner is not None else ():
            stored = [value for value, where in values if where == made.name]
            if len(stored) == 1 and isinstance(stored[0], str) and stored[0] in names[1:]:
                if stored[0] not in facts.binds:
                    yield Field(attribute, stored[0], names.index(stored[0]) - 1, len(values) > 1)


def _place_of(kind: Kind) -> Place:
    return kind.place if kind.tag is Tag.UNKNOWN else leaf_place(kind)
