"""Results of workloads: kept on disk between two trials, and compared. For the processes of trials.

A snapshot of a result is its parts by place: tensors and plain values, and by name what cannot be read. What is kept is
read back with torch's weights-only reader: tensors and plain containers, never code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from perflint.verify.contract import Equality
from perflint.verify.parts import OPAQUE, Reader

#: Parts of one result by place.
Snapshot: TypeAlias = "dict[str, Any]"
#: Unread parts that are named; more of them are counted.
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Comparison:
    """`difference` is the first one, in words, empty for none. `unread` are parts that could not be compared."""

    difference: str
    unread: list[str]


def snapshot(value: Any, tree: str = "") -> Snapshot:
    """All that can be read of `value`, as it is now. Paths below `tree` are told relative to it."""
    return Reader(tree).read(value)


def keep(snapshots: Sequence[Snapshot], file: Path) -> None:
    """Write the results of calls in order."""
    import torch

    torch.save(list(snapshots), file)


def count(file: Path) -> int:
    """Number of calls whose results were kept."""
    return len(_load(file))


def compare(file: Path, snapshots: Sequence[Snapshot], equal: Equality) -> Comparison:
    """Hold results against those that were kept, call by call."""
    kept = _load(file)
    for number, (wanted, found) in enumerate(zip(kept, snapshots), 1):
        text = _difference(wanted, found, equal)
        if text:
            return Comparison(text if number == 1 else f"in call {number} {text}", [])
    if len(kept) != len(snapshots):
        return Comparison("", [f"{abs(len(kept) - len(snapshots))} of the calls"])
    return Comparison("", unread([*kept, *snapshots]))


def unread(snapshots: Sequence[Snapshot]) -> list[str]:
    """Parts that cannot be compared, as `result['model'] (Model)`; the first few by name."""
    places = {place: leaf for one in snapshots for place, leaf in one.items() if _is_opaque(leaf)}
    names = [f"{place} ({leaf[len(OPAQUE) :]})" for place, leaf in places.items()]
    more = len(names) - _MOST_NAMED
    return [*names[:_MOST_NAMED], *([f"{more} more parts"] if more > 0 else [])]


def _load(file: Path) -> list[Snapshot]:
    import torch

    kept: list[Snapshot] = torch.load(file, weights_only=True, map_location="cpu")
    return kept


def _is_opaque(leaf: Any) -> bool:
    return isinstance(leaf, str) and leaf.startswith(OPAQUE)


def _difference(kept: Snapshot, found: Snapshot, equal: Equality) -> str:
    for place in [*kept, *(place for place in found if place not in kept)]:
        if place not in found:
            return f"{place} is missing"
        if place not in kept:
            return f"{place} is new"
        text = _leaf_difference(kept[place], found[place], equal)
        if text:
            return f"{place} {text}"
    return ""


def _leaf_difference(one: Any, other: Any, equal: Equality) -> str:
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _tensor_difference(one, other, equal)
    is_same = type(one) is type(other) and _is_same(one, other, equal)
    return "" if is_same else f"is {_shown(other)} instead of {_shown(one)}"


def _is_same(one: Any, other: Any, equal: Equality) -> bool:
    if isinstance(one, complex):
        return _is_same(one.real, other.real, equal) and _is_same(one.imag, other.imag, equal)
    if not isinstance(one, float):
        return bool(one == other)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if isinstance(equal, tuple):
        return math.isclose(one, other, rel_tol=equal[0], abs_tol=equal[1])
    return one == other and math.copysign(1, one) == math.copysign(1, other)


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
        return _gap(one, other)
    if equal is True and one.is_floating_point() and not torch.equal(*(_signs(part) for part in (one, other))):
        return "differs in the sign of a zero"
    return ""


def _signs(part: Any) -> Any:
    """Where the sign is negative; NaN has none."""
    return part.signbit() & ~part.isnan()


def _gap(one: Any, other: Any) -> str:
    import torch

    if one.is_complex() or not one.numel():
        return "differs"
    gap = (other.to(torch.float64) - one.to(torch.float64)).abs().nan_to_num(0.0).max().item()
    return f"differs by up to {gap:.3g}" if gap else "differs"


def _shown(value: Any) -> str:
    text = f"{value[len(OPAQUE) :]}" if _is_opaque(value) else f"{value!r}"
    if not isinstance(value, (bool, int, float, complex, str, bytes)):
        text = type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."
