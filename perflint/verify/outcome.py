"""Results of workloads: kept on disk between two trials, and compared. For the processes of trials.

What is kept is read back with torch's weights-only reader: tensors and plain containers, never code.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perflint.verify.contract import Equality

_SCALARS = (bool, int, float, complex, str, bytes)
#: Deeper than any result that is one; a structure that holds itself ends here.
_DEPTH = 50


def keep(value: Any, file: Path) -> None:
    """Write what can be compared of `value`."""
    import torch

    torch.save(dict(_leaves(value, "result", 0)), file)


def difference(file: Path, value: Any, equal: Equality) -> str:
    """The first difference of `value` from what was kept in `file`, in words; empty when there is none."""
    import torch

    kept: dict[str, Any] = torch.load(file, weights_only=True, map_location="cpu")
    found = dict(_leaves(value, "result", 0))
    for place in [*kept, *(place for place in found if place not in kept)]:
        if place not in found:
            return f"{place} is missing"
        if place not in kept:
            return f"{place} is new"
        text = _leaf_difference(kept[place], found[place], equal)
        if text:
            return f"{place} {text}"
    return ""


def is_comparable(file: Path) -> bool:
    """Whether what was kept says anything."""
    import torch

    kept: dict[str, Any] = torch.load(file, weights_only=True, map_location="cpu")
    return any(not (isinstance(leaf, str) and leaf.startswith(_OPAQUE)) for leaf in kept.values())


_OPAQUE = "\0object of type "


def _leaves(value: Any, place: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Every tensor and plain value with where it stands. What is neither is told by its type alone."""
    import torch

    if isinstance(value, torch.Tensor):
        yield place, _plain_tensor(value)
    elif value is None:
        yield place, f"{_OPAQUE}NoneType"
    elif isinstance(value, _SCALARS):
        yield place, _plain_scalar(value)
    elif depth > _DEPTH:
        yield place, f"{_OPAQUE}{type(value).__name__}"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{place}[{key!r}]", depth + 1)
    elif isinstance(value, (list, tuple)):
        yield f"len({place})", len(value)
        for number, item in enumerate(value):
            yield from _leaves(item, f"{place}[{number}]", depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _leaves(getattr(value, field.name), f"{place}.{field.name}", depth + 1)
    elif hasattr(value, "__array__") and hasattr(value, "dtype"):
        yield from _array_leaf(value, place)
    else:
        yield place, f"{_OPAQUE}{type(value).__name__}"


def _plain_scalar(value: Any) -> Any:
    """A subclass of a number or text, such as numpy's, as the plain value it is."""
    plain: Any = next(kind for kind in _SCALARS if isinstance(value, kind))
    return plain(value)


def _plain_tensor(value: Any) -> Any:
    plain = value.detach()
    if plain.layout.__str__() != "torch.strided":
        plain = plain.to_dense()
    # `.clone()`: a view would be kept with all of its storage.
    return plain.to("cpu").clone()


def _array_leaf(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    import numpy as np
    import torch

    array = np.asarray(value)
    if array.dtype.kind in "biufc":
        yield place, torch.from_numpy(array.copy())
    else:
        yield place, str(array.tolist())


def _leaf_difference(one: Any, other: Any, equal: Equality) -> str:
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _tensor_difference(one, other, equal)
    if type(one) is not type(other):
        return f"is {_shown(other)} instead of {_shown(one)}"
    if isinstance(one, float) and isinstance(equal, tuple):
        is_same = math.isclose(one, other, rel_tol=equal[0], abs_tol=equal[1]) or (
            math.isnan(one) and math.isnan(other)
        )
    else:
        # Text, so that NaN is NaN.
        is_same = one == other or repr(one) == repr(other)
    return "" if is_same else f"is {_shown(other)} instead of {_shown(one)}"


def _tensor_difference(one: Any, other: Any, equal: Equality) -> str:
    import torch

    if one.shape != other.shape:
        return f"has the shape {tuple(other.shape)} instead of {tuple(one.shape)}"
    if one.dtype != other.dtype:
        return f"has the type {other.dtype} instead of {one.dtype}"
    rtol, atol = equal if isinstance(equal, tuple) else (0.0, 0.0)
    try:
        torch.testing.assert_close(other, one, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError:
        if not one.numel():
            return "differs"
        gap = (other.to(torch.float64) - one.to(torch.float64)).abs().max().item() if not one.is_complex() else None
        return "differs" if gap is None else f"differs by up to {gap:.3g}"
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, str) and value.startswith(_OPAQUE):
        return value[1:]
    text = f"{value!r}" if isinstance(value, _SCALARS) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."
