"""The types of a tensor's numbers: what constructors, casts and operations give, by their names."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from perflint.torch_model import results, tensors


class Dtype(enum.Enum):
    """A type of numbers; `FLOATING` is one of the floating types or the complex one. What is not known is None."""

    BOOL = "bool"
    INT = "int"
    HALF = "half"  # float16 and bfloat16
    FLOAT = "float"
    DOUBLE = "double"
    FLOATING = "floating"
    COMPLEX = "complex"

    __hash__ = object.__hash__

    @property
    def is_floating(self) -> bool:
        return self in _FLOATS


_FLOATS = frozenset({Dtype.HALF, Dtype.FLOAT, Dtype.DOUBLE, Dtype.FLOATING})
_INEXACT = _FLOATS | {Dtype.COMPLEX}
_NAMES: Mapping[str, Dtype] = {
    **dict.fromkeys(("bool", "bool_", "BoolTensor"), Dtype.BOOL),
    **dict.fromkeys(
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64 int long short char byte LongTensor IntTensor ShortTensor "
        "ByteTensor CharTensor intp".split(),
        Dtype.INT,
    ),
    **dict.fromkeys("float16 bfloat16 half HalfTensor BFloat16Tensor".split(), Dtype.HALF),
    **dict.fromkeys("float32 float FloatTensor single".split(), Dtype.FLOAT),
    **dict.fromkeys("float64 double DoubleTensor float_".split(), Dtype.DOUBLE),
    **dict.fromkeys("complex64 complex128 cfloat cdouble complex".split(), Dtype.COMPLEX),
}


def named(name: str) -> Dtype | None:
    """The type that a dotted name says: `torch.int64`, `torch.FloatTensor`, `builtins.bool`, `numpy.float64`."""
    head, _, last = name.rpartition(".")
    if head == "builtins" and last == "float":
        return Dtype.DOUBLE
    return _NAMES.get(last)


def join_dtypes(left: Dtype | None, right: Dtype | None) -> Dtype | None:
    """The least type that covers both."""
    if left is right:
        return left
    return Dtype.FLOATING if left in _INEXACT and right in _INEXACT else None


def promoted(kinds: Iterable[Dtype | None]) -> Dtype | None:
    """The type of an arithmetic result on tensors of these types, where no rule of dimensions can tell otherwise: the
    same for all of one type, floating for a floating one among others.
    """
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    if None in found:
        return None if found.isdisjoint(_INEXACT) else Dtype.FLOATING
    if Dtype.COMPLEX in found:
        return Dtype.COMPLEX
    floats = found & _FLOATS
    if not floats:
        return Dtype.INT if found == {Dtype.BOOL, Dtype.INT} else None
    return floats.pop() if len(floats) == 1 else Dtype.FLOATING


def of_operation(name: str, given: Iterable[Dtype | None]) -> Dtype | None:
    """The type of what an operation of torch gives, by its last name and the types of its tensors."""
    plain = name.rstrip("_")
    if plain in results.BOOLEAN:
        return Dtype.BOOL
    if plain in results.INTEGER:
        return Dtype.INT
    if name in tensors.CAST_METHODS:
        return _NAMES.get(name)
    found = promoted(given)
    if plain in results.FLOATING:
        is_told = found is not None or plain not in results.ROUNDED
        return found if found in _FLOATS else Dtype.FLOATING if is_told else None
    if plain in results.SUMMING and found is Dtype.BOOL:
        return Dtype.INT
    return found if plain in results.KEEPING else None
