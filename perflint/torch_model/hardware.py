"""Tests of the hardware and of torch's version: what they come to where a program trains on a CUDA device."""

from __future__ import annotations

from typing import Any

#: Whether the calls, by the ends of their names, hold on the machine that findings are about: one with a CUDA device.
_HOLDS = {
    "torch.cuda.is_available": True,
    "cuda.is_available": True,
    "torch.backends.mps.is_available": False,
    "backends.mps.is_available": False,
    "torch.backends.mps.is_built": False,
}
_ATTRIBUTES = {"torch.version.cuda": "12"}
#: Since which torch something is there: `hasattr(torch, "compile")`.
_SINCE = {
    "compile": (2, 0),
    "vmap": (2, 0),
    "func": (2, 0),
    "scaled_dot_product_attention": (2, 0),
    "inference_mode": (1, 9),
    "amp": (1, 6),
    "rms_norm": (2, 4),
}
_MODULES = frozenset({"torch", "F", "torch.nn.functional", "nn.functional"})


def answer(func: str, args: tuple[Any, ...], oldest: tuple[int, int] | None) -> bool | None:
    """What a call that asks for hardware, or for a part of torch, gives; None for any other. `oldest` is the lowest
    torch that the program requires, None where nothing says: then it is taken to be a newer one.
    """
    if func == "hasattr" and len(args) == 2 and args[0] in _MODULES:
        name = args[1][2] if isinstance(args[1], tuple) and args[1][:2] == ("const", "str") else None
        since = _SINCE.get(name) if isinstance(name, str) else None
        return True if since is not None and (oldest is None or oldest >= since) else None
    return _HOLDS.get(func)


def value_of(dotted: str) -> str | None:
    """What an attribute of torch holds where there is a CUDA device."""
    return _ATTRIBUTES.get(dotted)
