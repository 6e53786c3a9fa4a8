"""What two runs of the same code may be told apart by: values, types, gradients, and which tensors share memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["differences"]


def differences(before: object, after: object, *, exact: bool) -> list[tuple[str, str]]:
    """Path and description of each difference; none when the two results are the same.

    `exact` asks for the same bits; otherwise floating point values may differ as `torch.testing` lets them by default.
    """
    left, right = dict(_leaves("", before)), dict(_leaves("", after))
    found = [(path, "only after" if path in right else "only before") for path in sorted(left.keys() ^ right.keys())]
    for path in left.keys() & right.keys():
        unlike = _unlike(left[path], right[path], exact=exact)
        if unlike:
            found.append((path, unlike))
    return [*found, *_sharing(left, right)]


def _leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Everything without parts below `value`, by its path."""
    if isinstance(value, nn.Module):
        yield f"{path}.training", value.training
        yield from _leaves(path, dict(value.state_dict(keep_vars=True)))
    elif isinstance(value, torch.optim.Optimizer):
        yield from _leaves(path, value.state_dict())
    elif isinstance(value, torch.Tensor):
        yield path, value
        if value.is_leaf and value.grad is not None:
            yield f"{path}.grad", value.grad
    elif isinstance(value, Mapping):
        yield f"{path}.type", type(value).__name__
        yield f"{path}.keys", list(map(str, value))
        for key, part in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), part)
    elif isinstance(value, (list, tuple)):
        yield f"{path}.type", type(value).__name__
        for number, part in enumerate(value):
            yield from _leaves(f"{path}.{number}", part)
    else:
        yield path, value


def _unlike(left: Any, right: Any, *, exact: bool) -> str:
    if type(left) is not type(right):
        return f"{type(left).__name__} became {type(right).__name__}"
    if isinstance(left, torch.Tensor):
        for aspect in ("dtype", "shape", "requires_grad", "is_leaf"):
            if getattr(left, aspect) != getattr(right, aspect):
                return f"{aspect} {getattr(left, aspect)} became {getattr(right, aspect)}"
        return "" if _close(left.detach(), right.detach(), exact=exact) else f"{left} became {right}"
    if isinstance(left, np.ndarray):
        same = left.dtype == right.dtype and np.array_equal(left, right)
    elif isinstance(left, float):
        same = _close(torch.tensor(left, dtype=torch.float64), torch.tensor(right, dtype=torch.float64), exact=exact)
    else:
        same = left == right
    return "" if same else f"{left!r} became {right!r}"


def _close(left: torch.Tensor, right: torch.Tensor, *, exact: bool) -> bool:
    try:
        if exact:
            torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)
        else:
            # Python's numbers come from float32 as a rule: they are held to its tolerance.
            torch.testing.assert_close(left.float(), right.float(), equal_nan=True)
    except AssertionError:
        return False
    return True


def _sharing(left: Mapping[str, object], right: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Tensors that share memory with another in one of the two only."""
    shared = [_shared(side) for side in (left, right)]
    for path in sorted(left.keys() & right.keys()):
        if shared[0].get(path, set()) != shared[1].get(path, set()):
            lost, won = shared[0].get(path, set()), shared[1].get(path, set())
            yield f"{path}.memory", f"shared with {sorted(lost) or 'none'} before, with {sorted(won) or 'none'} after"


def _shared(leaves: Mapping[str, object]) -> dict[str, set[str]]:
    owners: dict[int, set[str]] = {}
    for path, leaf in leaves.items():
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            owners.setdefault(leaf.untyped_storage().data_ptr(), set()).add(path)
    return {path: paths - {path} for paths in owners.values() for path in paths if len(paths) > 1}
