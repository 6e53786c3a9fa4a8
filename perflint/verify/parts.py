"""The parts of a result, by place: what `outcome` keeps and compares. For the processes of trials.

Read are numbers, text, tensors with what belongs to them, arrays, containers, modules, optimizers, and objects of
classes that are written in Python, attribute by attribute. Whatever else there is, is told by its type and marked as
not read: that it looks the same says nothing.

Of a tensor the values, shape, type, layout, kind of device, `requires_grad` and gradient are read. How it is strided is
not: no value depends on it.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import fractions
import pathlib
import struct
import types
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Begins the text that stands for what cannot be read.
OPAQUE = "\0"
_POINTER = struct.calcsize("P")
#: Deeper than any result that is one, and more parts than one has.
_DEPTH, _MOST_PARTS = 50, 300_000
#: A sparse tensor with more elements than this is not made dense.
_MOST_ELEMENTS = 50_000_000
_SCALARS = (bool, int, float, complex, str, bytes)
#: Immutable, and their text is all they are.
_BY_TEXT = (
    dt.date,
    dt.time,
    dt.timedelta,
    dt.timezone,
    decimal.Decimal,
    fractions.Fraction,
    pathlib.PurePath,
    range,
    slice,
    uuid.UUID,
)
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
_SEQUENCES = (list, tuple, collections.deque)


@dataclass
class Reader:
    """Reads one result. Paths below `tree` are told relative to it: each side has a copy of its own."""

    tree: str = ""
    _parts: dict[str, Any] = field(default_factory=dict)
    #: Objects that are being read, by identity.
    _above: set[int] = field(default_factory=set)

    def read(self, value: Any) -> dict[str, Any]:
        """Plain values and tensors by place, and text that begins with OPAQUE for what cannot be read."""
        if value is None:
            self._not_read("result", "the workload returns nothing")
        else:
            self._read(value, "result")
        return self._parts

    def _read(self, value: Any, place: str) -> None:
        if len(self._parts) >= _MOST_PARTS:
            self._not_read("result", f"more than {_MOST_PARTS:,} parts")
        elif id(value) in self._above:
            self._parts[place] = f"a part that holds itself: {type(value).__qualname__}"
        elif len(self._above) > _DEPTH:
            self._not_read(place, _class_name(value))
        elif not self._read_plain(value, place):
            self._above.add(id(value))
            try:
                self._read_whole(value, place)
            except Exception as error:  # noqa: BLE001 - reading runs what the user's classes say
                self._not_read(place, f"{_class_name(value)}, reading which raises {type(error).__name__}")
            finally:
                self._above.discard(id(value))

    def _not_read(self, place: str, what: str) -> None:
        self._parts[place] = f"{OPAQUE}{what}"

    def _read_plain(self, value: Any, place: str) -> bool:
        """Whether it was a value without parts."""
        if value is None:
            self._parts[place] = "None"
        elif type(value) in _SCALARS:
            self._parts[place] = self._text(value)
        elif isinstance(value, enum.Enum):
            self._parts[place] = f"{_class_name(value)}.{value.name}"
        elif isinstance(value, (bool, int, float, complex)) and not hasattr(value, "dtype"):
            self._parts[place] = _plain(value)
        elif isinstance(value, (str, bytes, bytearray, memoryview)):
            self._parts[place] = self._text(str(value)) if isinstance(value, str) else bytes(value)
        elif isinstance(value, _BY_TEXT):
            self._parts[place] = self._text(f"{type(value).__name__} {value}")
        elif isinstance(value, _NAMED):
            name = getattr(value, "__qualname__", value.__name__)
            is_unlike = "<lambda>" in name or "<locals>" in name
            full = f"{getattr(value, '__module__', '')}.{name}"
            self._parts[place] = f"{OPAQUE}{full}" if is_unlike else full
        else:
            return False
        return True

    def _text(self, value: Any) -> Any:
        """The two sides lie in folders of different names."""
        return value.replace(self.tree, "") if isinstance(value, str) and self.tree else value

    def _read_whole(self, value: Any, place: str) -> None:
        import torch

        if isinstance(value, torch.Tensor):
            self._read_tensor(value, place)
        elif isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            self._parts[place] = str(value)
        elif isinstance(value, torch.Generator):
            self._read(value.get_state(), f"{place}.get_state()")
        elif isinstance(value, torch.nn.Module):
            self._read_module(value, place)
        elif isinstance(value, Mapping):
            self._read_mapping(value, place)
        elif isinstance(value, _SEQUENCES):
            self._class(value, place)
            self._read_items(value, place)
            self._read_own(value, place)
        elif isinstance(value, (set, frozenset)):
            self._class(value, place)
            self._read_set(value, place)
        elif isinstance(value, torch.optim.Optimizer):
            self._class(value, place)
            self._read(value.state_dict(), f"{place}.state_dict()")
        elif hasattr(value, "__array__") and hasattr(value, "dtype"):
            self._read_array(value, place)
            if type(value).__module__.partition(".")[0] != "numpy":
                self._not_read(f"all but the values of {place}", _class_name(value))
        else:
            self._read_object(value, place)

    def _class(self, value: Any, place: str) -> None:
        self._parts[f"type({place})"] = _class_name(value)

    # Tensors and arrays

    def _read_tensor(self, value: Any, place: str) -> None:
        import torch

        if type(value) is not torch.Tensor:
            self._class(value, place)
        self._parts[f"{place}.layout"] = str(value.layout)
        self._parts[f"{place}.device"] = value.device.type
        self._parts[f"{place}.requires_grad"] = value.requires_grad
        self._read_own(value, place)
        plain = value.detach()
        if plain.device.type == "meta":
            self._not_read(place, f"a meta tensor of shape {tuple(plain.shape)}")
            return
        if plain.is_nested:
            self._read_items(plain.unbind(), place)
            return
        if plain.is_quantized:
            plain = plain.dequantize()
        if plain.layout != torch.strided:
            if plain.numel() > _MOST_ELEMENTS:
                self._not_read(place, "a sparse tensor too large to be compared")
                return
            plain = plain.to_dense()
        # `.clone()`: a view would be kept with all of its storage.
        self._parts[place] = plain.to("cpu").clone().resolve_conj().resolve_neg()
        if value.is_leaf and value.grad is not None:
            self._read(value.grad, f"{place}.grad")

    def _read_array(self, value: Any, place: str) -> None:
        """An array, or what converts to one, by the kind of its elements."""
        import numpy as np
        import torch

        self._class(value, place)
        array = np.asarray(value)
        self._parts[f"dtype({place})"] = str(array.dtype)
        if isinstance(value, np.ma.MaskedArray):
            self._read(np.ma.getmaskarray(value), f"{place}.mask")
            array = np.ma.getdata(value)
        native = array.astype(array.dtype.newbyteorder("="))
        if native.dtype.kind in "biufc" and native.dtype.itemsize <= (16 if native.dtype.kind == "c" else 8):
            if native.dtype.kind == "u" and native.dtype.itemsize > 1:
                native = native.view(f"i{native.dtype.itemsize}")  # the same bits in a type of every torch
            self._parts[place] = torch.from_numpy(native.copy())
        elif native.dtype.kind in "mM":
            self._parts[place] = torch.from_numpy(native.view("i8").copy())
        elif native.dtype.names is not None:
            for name in native.dtype.names:
                self._read_array(native[name], f"{place}[{name!r}]")
        elif native.dtype.kind in "OUS":
            self._read(native.tolist(), f"{place}.tolist()")
        else:
            self._not_read(place, f"an array of {array.dtype}")

    # Containers

    def _read_mapping(self, value: Mapping[Any, Any], place: str) -> None:
        self._class(value, place)
        if isinstance(value, collections.OrderedDict):
            self._parts[f"order of {place}"] = ", ".join(_key(key) or "?" for key in value)
        self._parts[f"len({place})"] = len(value)
        for number, (key, item) in enumerate(value.items()):
            name = _key(key)
            inside = f"{place}[{name}]" if name else f"{place}[key {number}]"
            if not name:
                self._not_read(f"key {number} of {place}", _class_name(key))
            self._read(item, inside)
        self._read_own(value, place)

    def _read_items(self, items: Iterable[Any], place: str) -> None:
        items = list(items)
        self._parts[f"len({place})"] = len(items)
        for number, item in enumerate(items):
            self._read(item, f"{place}[{number}]")

    def _read_set(self, value: Iterable[Any], place: str) -> None:
        names = [_key(item) for item in value]
        self._parts[f"len({place})"] = len(names)
        if all(names):
            self._parts[place] = self._text("{" + ", ".join(sorted(names)) + "}")
        else:
            strange = next(item for item, name in zip(value, names) if not name)
            self._not_read(place, f"a set of {_class_name(strange)}")

    # Objects

    def _read_module(self, value: Any, place: str) -> None:
        self._class(value, place)
        for name, parameter in value.named_parameters():
            self._read(parameter, f"{place}.{name}")
        for name, buffer in value.named_buffers():
            self._read(buffer, f"{place}.{name}")
        for name, module in value.named_modules():
            inside = f"{place}.{name}" if name else place
            for key, item in vars(module).items():
                if not key.startswith("_"):
                    self._read(item, f"{inside}.{key}")

    def _read_object(self, value: Any, place: str) -> None:
        """By its attributes, where that is all there is to it."""
        if _hides_state(type(value)) and not isinstance(value, BaseException):
            self._not_read(place, _class_name(value))
            return
        self._class(value, place)
        if isinstance(value, BaseException):
            self._read(value.args, f"{place}.args")
            self._read_own(value, place)
        elif not self._read_own(value, place):
            # An object without a single attribute is there for its identity, or hides what it is in a closure.
            self._not_read(place, _class_name(value))

    def _read_own(self, value: Any, place: str) -> bool:
        """The attributes of the object itself; whether there are any."""
        slots = [
            name
            for kind in type(value).__mro__
            if kind.__module__ not in {"builtins", "collections"}
            for name in _slots(kind)
            if not isinstance(value, tuple)
        ]
        own = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        own |= getattr(value, "__dict__", {})
        for name in sorted(own):
            self._read(own[name], f"{place}.{name}")
        return bool(own)


def _plain(value: Any) -> Any:
    """A number of a class derived from Python's, as Python's."""
    kind: Any = next(kind for kind in _SCALARS if isinstance(value, kind))
    return kind(value)


def _hides_state(kind: type) -> bool:
    """Whether objects hold more than attributes: they are larger than their attributes need, as those of C are."""
    while kind is not object:
        base = kind.__base__ or object
        own = len(_slots(kind)) + ("__dict__" in vars(kind)) + ("__weakref__" in vars(kind))
        if kind.__itemsize__ or kind.__basicsize__ - base.__basicsize__ > _POINTER * own:
            return True
        kind = base
    return False


def _slots(kind: type) -> list[str]:
    """Attributes that have a place of their own, by the name that finds them."""
    slots = vars(kind).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    hidden = {"__dict__", "__weakref__"}
    return [
        f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in hidden
    ]


def _key(value: Any) -> str:
    """Text that is the same for equal keys and for no others; empty where there is none such."""
    if value is None or type(value) in _SCALARS:
        return repr(value)
    if isinstance(value, enum.Enum):
        return f"{_class_name(value)}.{value.name}"
    if isinstance(value, (tuple, frozenset)):
        parts = [_key(part) for part in value]
        ordered = parts if isinstance(value, tuple) else sorted(parts)
        return f"{type(value).__name__}({', '.join(ordered)})" if all(parts) else ""
    if isinstance(value, _BY_TEXT):
        return f"{type(value).__name__} {value}"
    if isinstance(value, type):
        return _class_name_of(value)
    import torch

    return str(value) if isinstance(value, (torch.dtype, torch.device)) else ""


def _class_name(value: Any) -> str:
    return _class_name_of(type(value))


def _class_name_of(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
