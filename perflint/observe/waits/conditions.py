"""When an operation waits: what its arguments must be, as it got them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perflint.observe.waits.row import Arguments, Condition, Keywords


def _argument(position: int, name: str, default: Any = None) -> Callable[[Arguments, Keywords], Any]:
    def of(arguments: Arguments, keywords: Keywords) -> Any:
        return arguments[position] if position < len(arguments) else keywords.get(name, default)

    return of


def given(position: int, name: str) -> Condition:
    of = _argument(position, name)
    return lambda arguments, keywords: of(arguments, keywords) is not None


def asked(name: str) -> Condition:
    """An option that is given by name only, and that is off otherwise."""
    return lambda _arguments, keywords: bool(keywords.get(name, False))


def checks_lengths(_arguments: Arguments, keywords: Keywords) -> bool:
    """`segment_reduce` checks lengths, and neither offsets nor what is said to be safe."""
    return keywords.get("lengths") is not None and keywords.get("offsets") is None and not keywords.get("unsafe", False)


def _is_mask(index: Any) -> bool:
    return index is not None and str(index.dtype) in {"torch.bool", "torch.uint8"}


def has_mask(arguments: Arguments, _keywords: Keywords) -> bool:
    """One of the indices is a mask on the device."""
    return any(_is_mask(index) and index.device.type == "cuda" for index in arguments[1])


def fills_by_mask(arguments: Arguments, keywords: Keywords) -> bool:
    """One mask and one number that is on the host: PyTorch makes it `masked_fill_`, which needs no positions."""
    value = arguments[2]
    accumulate = arguments[3] if len(arguments) > 3 else keywords.get("accumulate", False)
    if accumulate or value.numel() != 1 or value.device.type != "cpu":
        return False
    indices = [index for index in arguments[1] if index is not None]
    return len(indices) == 1 and _is_mask(indices[0])


def sorts(arguments: Arguments, _keywords: Keywords) -> bool:
    """`isin` compares each with each for few test elements, and sorts for many."""
    elements, tests = arguments[0], arguments[1]
    if not (hasattr(elements, "numel") and hasattr(tests, "numel")):
        return False
    assumed = arguments[2] if len(arguments) > 2 else _keywords.get("assume_unique", False)
    return not assumed and bool(tests.numel() >= 10.0 * elements.numel() ** 0.145)


def no_range(arguments: Arguments, keywords: Keywords) -> bool:
    return bool(_argument(2, "min", 0)(arguments, keywords) == _argument(3, "max", 0)(arguments, keywords))
