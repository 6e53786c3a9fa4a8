"""Work with a slow-down of known size, to measure the measuring by. Keeps the contract of a `measure.py`."""

from __future__ import annotations

from typing import Any

#: The second side does this many more products than the first.
SIZES = {"10 % more": 11, "no more": 10}
EQUAL = None


def setup(size: int, device: str) -> tuple[int, Any]:
    import torch

    return size, torch.randn(96, 96, device=device)


def before(state: tuple[int, Any]) -> None:
    _products(10, state[1])


def after(state: tuple[int, Any]) -> None:
    _products(*state)


def _products(times: int, matrix: Any) -> None:
    for _ in range(times):
        matrix @ matrix
