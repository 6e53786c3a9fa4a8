"""Devices and moves between them."""

from __future__ import annotations

from perflint.analysis.values import dtypes
from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.kind import NUMBER, STRING, UNKNOWN, Device, Kind, Place, Tag
from perflint.analysis.values.origin import Origin, Provenance
from perflint.finding import Confidence
from perflint.torch_model import devices, tensors

#: What torch takes for a dtype as well.
_TYPES_OF_PYTHON = frozenset({"float", "int", "bool", "complex"})


def device_named(text: str) -> Device | None:
    """The device a string such as `cuda:0` names, None when it names none."""
    name = text.partition(":")[0].lower()
    if name == "cuda":
        return Device.CUDA
    if name == "cpu":
        return Device.CPU
    if name == "mps":
        return Device.MPS
    if name == "auto":
        return Device.MAYBE
    return Device.ACCELERATOR if name in devices.ACCELERATORS else None


def device_of(kind: Kind | None) -> Device:
    """The device that a value given as a device stands for."""
    if kind is None or kind.tag not in (Tag.DEVICE, Tag.STRING) or kind.device is None:
        return Device.MAYBE
    return kind.device


def target_of(arguments: Arguments, written: str) -> Device | None:
    """Where `.to(...)` moves its receiver; None when it only changes the type or cannot be told. `written` is the
    text of the first argument: `device` says what it is even where its kind is not known.
    """
    if arguments.has("device"):
        return device_of(arguments.at(-1, "device"))
    if not len(arguments):
        return None
    first = arguments.at(0)
    if first is None or first.tag is Tag.DTYPE:
        return None
    if first.tag is Tag.DEVICE:
        return first.device or Device.MAYBE
    if first.tag is Tag.STRING:
        return first.device or Device.MAYBE
    if first.tag is Tag.NUMBER:
        return Device.MAYBE
    if first.tag is Tag.TENSOR:
        return device_at(first)
    return Device.MAYBE if looks_like_device(written) else None


def device_at(kind: Kind) -> Device | None:
    """The device a tensor is on, as a target for others."""
    if kind.place is Place.HOST:
        return Device.CPU
    if kind.place is Place.DEVICE:
        return kind.device or Device.CUDA
    return kind.device or (Device.MAYBE if kind.on_accelerator else Device.GIVEN)


def looks_like_device(written: str) -> bool:
    last = written.rpartition(".")[2].lower()
    return "device" in last or last in ("dev", "rank", "local_rank", "gpu", "gpu_id")


def looks_like_dtype(written: str) -> bool:
    return "dtype" in written.rpartition(".")[2].lower() or written in _TYPES_OF_PYTHON


def moved(kind: Kind, target: Device, origin: Origin) -> Kind:
    """The value after a move. Containers move with all they hold."""
    if kind.tag in (Tag.SEQUENCE, Tag.MAPPING):
        element = moved(kind.element, target, origin) if kind.element is not None else None
        items = tuple((key, moved(item, target, origin)) for key, item in kind.items)
        return kind.but(element=element, items=items, origin=origin)
    if kind.tag in (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.MODULE, Tag.STATE_DICT):
        items = tuple((key, moved(item, target, origin)) for key, item in kind.items)
        element = moved(kind.element, target, origin) if kind.element is not None else None
        return kind.but(
            place=target.place,
            device=target,
            pinned=False,
            fresh=False,
            element=element,
            items=items,
            origin=origin,
        )
    if kind.tag is Tag.UNKNOWN:
        return UNKNOWN.but(place=target.place, device=target, origin=origin)
    return kind


def transfer(receiver: Kind, method: str, arguments: Arguments, written: str) -> Kind:
    """`receiver.to(...)`, `.cuda()`, `.cpu()`, `.pin_memory()`: the receiver where it is afterwards."""
    if method == "cpu":
        return moved(receiver, Device.CPU, Origin(Provenance.MOVE, "cpu"))
    if method == "pin_memory":
        return receiver.but(pinned=True, fresh=True)
    if method in tensors.TO_DEVICE_METHODS:
        named = Device.CUDA if method == "cuda" else Device.ACCELERATOR
        return moved(receiver, named, Origin(Provenance.MOVE, method))
    target = target_of(arguments, written)
    if target is not None:
        made = moved(receiver, target, Origin(Provenance.MOVE, "to"))
        made = _converted(made, receiver, arguments)
        first = arguments.at(0)
        if first is not None and not arguments.has("device"):
            return made.at_most(first.certainty if first.known else Confidence.MEDIUM)
        return made
    first = arguments.at(0)
    only_type = first is None or first.tag is Tag.DTYPE or looks_like_dtype(written)
    if only_type:
        return receiver.but(fresh=False, pinned=False, dtype=receiver.dtype if first is None else named_by(first))
    return receiver.but(place=Place.UNKNOWN, device=None, fresh=False, pinned=False)


def _converted(made: Kind, receiver: Kind, arguments: Arguments) -> Kind:
    """What has been moved, of the type that is given with the device."""
    given = arguments.at(1, "dtype")
    first = arguments.at(0)
    if given is None and first is not None and first.is_tensor:
        return made.but(dtype=first.dtype)
    return made if given is None or not receiver.is_tensor else made.but(dtype=named_by(given))


def named_by(kind: Kind) -> Dtype | None:
    """The type that a value given as a dtype stands for."""
    if kind.tag is Tag.DTYPE:
        return kind.dtype
    return dtypes.named(kind.qualified) if kind.qualified.startswith(("builtins.", "numpy.", "torch.")) else None


def cast_like(receiver: Kind, arguments: Arguments) -> Kind:
    """`x.type_as(y)` goes where `y` is; `x.type(torch.cuda.FloatTensor)` to the device, as the legacy classes say."""
    like = arguments.at(0, "dtype")
    if like is None:
        return receiver
    if like.tag is Tag.NEVER:
        return like  # `self.table = made.type_as(self.table)`: nothing is known of it yet
    if like.tag is Tag.CLASS and like.qualified in tensors.DEVICE_CONSTRUCTORS:
        return moved(receiver, like.device or Device.CUDA, Origin(Provenance.MOVE, "type"))
    written = arguments.constant(0)
    if (like.qualified if like.tag is Tag.CLASS else written) in tensors.LEGACY_DTYPES:
        # These are of the host: what is there is converted, all else is brought down.
        is_there = receiver.place is Place.HOST
        made = receiver if is_there else moved(receiver, Device.CPU, Origin(Provenance.MOVE, "type"))
        return made.but(dtype=dtypes.named(like.qualified or str(written)))
    if like.tag is Tag.STRING and like.device not in (None, Device.GIVEN):
        return moved(receiver, like.device, Origin(Provenance.MOVE, "type"))  # `x.type(y.type())`
    if like.tag is Tag.TENSOR:
        known = like.place if like.certainty is not Confidence.LOW else Place.UNKNOWN
        device = like.device if known is not Place.UNKNOWN else None
        made = receiver.but(place=known, device=device, pinned=False, fresh=False, dtype=like.dtype)
        return made if like.place is receiver.place else made.but(origin=Origin(Provenance.MOVE, "type_as"))
    if not like.known:
        return receiver.but(place=Place.UNKNOWN, device=None, pinned=False, fresh=False, dtype=None)
    return receiver.but(dtype=like.dtype if like.is_tensor else named_by(like))


def make_device(arguments: Arguments) -> Kind:
    """`torch.device(...)`."""
    first = arguments.at(0, "type")
    device = device_of(first)
    return Kind(Tag.DEVICE, device=device, origin=Origin(Provenance.CONSTRUCTOR, "torch.device"))


def device_attribute(kind: Kind) -> Kind:
    """`.device` of a tensor, or of a structure of them."""
    if kind.device is Device.CPU_OR_GIVEN:
        return Kind(Tag.DEVICE, device=kind.device, certainty=kind.certainty)
    found = {
        Place.HOST: Device.CPU,
        Place.DEVICE: kind.device or Device.CUDA,
        Place.TARGET: kind.device or Device.MAYBE,
        Place.UNKNOWN: Device.GIVEN if kind.is_tensor else Device.MAYBE,
    }.get(kind.place, Device.MAYBE)
    return Kind(Tag.DEVICE, device=found, certainty=kind.certainty)


def part_of_device(name: str) -> Kind:
    """Attributes of a `torch.device`."""
    return STRING if name == "type" else NUMBER if name == "index" else UNKNOWN
