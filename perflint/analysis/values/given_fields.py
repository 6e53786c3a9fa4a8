"""What an object of the project holds of what its constructor was given: `self.tensors = tensors`, by the one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.names.refs import INSTANCE, Ref
from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Kind, Place, Tag, leaf_place
from perflint.finding import Confidence
from perflint.ir.summary import FunctionFacts, Value

#: What is worth to be known of one object: what holds tensors, or gives batches.
_HOLDING = (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.SEQUENCE, Tag.MAPPING, Tag.LOADER, Tag.UNKNOWN)
#: What names a device: `Memory(device="cpu")`.
_DEVICES = (Tag.DEVICE, Tag.STRING)
#: All that a constructor is given, and how its attributes are reached as a dictionary.
_LOCALS: Value = ("call", "locals", (), ())
_ATTRIBUTES: tuple[Value, ...] = ("self.__dict__.update", ("attr", ("call", "vars", ("self",), ()), "update"))


class Field(NamedTuple):
    """An attribute that a constructor leaves to a parameter, at a place. It `varies` where others store there, too."""

    attribute: str
    parameter: str
    place: int
    varies: bool
    is_device: bool = False


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
        if arguments.exact and self._takes_options(cls):
            named = (Field(name, name, -1, varies=False) for name in arguments.keywords)
            fields = (*fields, *(item for item in named if item not in fields))
        for item in fields if arguments.exact else ():
            kind = arguments.at(item.place, item.parameter)
            if kind is not None and kind.tag in _DEVICES and kind.device is not None and not item.varies:
                found.append((item.attribute, kind.but(tag=Tag.DEVICE, fresh=False)))
            if kind is None or kind.tag not in _HOLDING or _place_of(kind) is Place.UNKNOWN or item.is_device:
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
        if _LOCALS in _written(facts):
            plain = [name.lstrip("=") for name in names[1:]]
            yield from (Field(name, name, at, varies=False) for at, name in enumerate(plain))
            return
        for attribute, values in owner.attributes.items() if owner is not None else ():
            stored = [value for value, where in values if where == made.name]
            given, is_device = _parameter_in(stored[0]) if len(stored) == 1 else ("", False)
            if given in names[1:] and given not in facts.binds:
                yield Field(attribute, given, names.index(given) - 1, len(values) > 1, is_device)

    def _takes_options(self, cls: Ref) -> bool:
        """`def __init__(self, **options): self.__dict__.update(options)`"""
        made = self._inference.program.resolver.method(Ref(INSTANCE, cls.path, cls.name), "__init__")
        summary = self._inference.program.summaries.get(made.path) if made is not None else None
        if made is None or summary is None or not summary.functions[made.name].params[-1:]:
            return False
        facts = summary.functions[made.name]
        last = facts.params[-1].name
        return last.startswith("**") and last.lstrip("*") in _written(facts)


def _parameter_in(value: Value) -> tuple[str, bool]:
    """The name that a value is, and whether it stands in `torch.device(name)`; "" where it is no name."""
    if type(value) is tuple and value[0] == "call" and value[1] in ("torch.device", "device") and len(value[2]) == 1:
        value, is_device = value[2][0], True
    else:
        is_device = False
    return (value, is_device) if type(value) is str else ("", False)


def _written(facts: FunctionFacts) -> Iterator[Value]:
    """What a constructor puts among its attributes at once: `self.__dict__.update(locals())`."""
    for call in facts.calls:
        if call.func in _ATTRIBUTES:
            yield from call.args


def _place_of(kind: Kind) -> Place:
    return kind.place if kind.tag in (Tag.UNKNOWN, Tag.LOADER) else leaf_place(kind)
