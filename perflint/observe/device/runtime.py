"""Makes PyTorch's C++ take this process for one with an accelerator: a guard for CUDA devices, and CUDA as built.

A build without CUDA has neither, and autograd's engine asks for both. Each is one entry of a table in PyTorch's
libraries; both are put back when the device goes away. `install` checks that PyTorch sees what it should.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from perflint.errors import PerflintError

#: Numbers of c10::DeviceType.
_CUDA, _PRIVATE, _TYPES = 1, 20, 22
_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"
_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
#: Words of the hooks' table of functions that are copied, those before its first function, and the places of
#: `isBuilt`, `isAvailable` and `hasPrimaryContext` after the two destructors.
_WORDS, _BEFORE, _ANSWER_YES = 96, 2, (2, 3, 4)


class _Guard(torch._C._acc.DeviceGuard):  # type: ignore[misc]
    """Says which device is current: `cuda:0`, always. Its queue has run all that was put into it."""

    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.CUDA


#: C++ keeps pointers into both: the guard with its address, the copied table of functions.
_guard: list[Any] = []
_table: list[Any] = []


def install() -> Callable[[], None]:
    """Do it, and get what undoes it. Raises PerflintError where PyTorch's libraries are built otherwise."""
    try:
        reset_guard = _set_guard()
        reset_hooks = _set_built()
    except (OSError, ValueError, AttributeError, StopIteration) as error:
        raise PerflintError(_unsupported(str(error))) from error

    def undo() -> None:
        reset_hooks()
        reset_guard()

    found = torch._C._accelerator_getAccelerator()
    if found is None or found.type != "cuda":
        undo()
        raise PerflintError(_unsupported(f"the accelerator is {found}"))
    return undo


def _unsupported(reason: str) -> str:
    return (
        f"the simulated device does not support this build of PyTorch ({torch.__version__}): {reason}. "
        "Use --device cuda on a machine with a GPU, or a release of PyTorch from its own index"
    )


def _library(name: str) -> Any:
    folder = Path(torch.__file__).parent / "lib"
    names = (f"lib{name}.so", f"lib{name}.dylib", f"{name}.dll")
    return ctypes.CDLL(str(next(folder / one for one in names if (folder / one).exists())))


def _set_guard() -> Callable[[], None]:
    """PyTorch takes guards written in Python for its private-use device only: the entry is moved to CUDA's place."""
    guards = (ctypes.c_void_p * _TYPES).in_dll(_library("c10"), _GUARDS)
    if not _guard:
        taken = guards[_PRIVATE]
        guards[_PRIVATE] = None
        made = _Guard()
        torch._C._acc.register_python_privateuseone_device_guard(made)
        _guard.extend((made, guards[_PRIVATE]))
        guards[_PRIVATE] = taken
    before = guards[_CUDA]
    guards[_CUDA] = _guard[1]

    def reset() -> None:
        guards[_CUDA] = before

    return reset


def _set_built() -> Callable[[], None]:
    """Let CUDA's hooks answer that they are there: give them a table of functions with those questions replaced by a
    function of Python's that answers 1.
    """
    get = getattr(_library("torch_cpu"), _HOOKS)
    get.restype = ctypes.c_void_p
    hooks = ctypes.c_size_t.from_address(get())
    before = hooks.value
    size = ctypes.sizeof(ctypes.c_size_t)
    if not _table:
        table = (ctypes.c_size_t * _WORDS)()
        ctypes.memmove(table, before - _BEFORE * size, _WORDS * size)
        for place in _ANSWER_YES:
            table[_BEFORE + place] = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value or 0
        _table.append(table)
    hooks.value = ctypes.addressof(_table[0]) + _BEFORE * size

    def reset() -> None:
        hooks.value = before

    return reset
