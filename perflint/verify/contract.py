"""The contract of `fixtures/<CODE>-<name>/measure.py`: a rule's micro-benchmark. Read in the processes of trials only.

A `measure.py` is a module that defines

    SIZES: dict[str, Any]            what to measure, by the name shown: {"100 tensors x 1k": (100, 1000)};
                                     the first is the smallest, and the tests run it
    def setup(size, device) -> S     everything the two sides need, made afresh in every process; device is a string
    def before(state: S) -> R        the code that the rule finds
    def after(state: S) -> R         the code that the fix or the advice gives
    EQUAL                            how the two results must agree: True for the same bits, (rtol, atol) for
                                     tolerances, None where there is nothing to compare

and may define

    DEVICES = ("cuda",)              the only kinds of device on which the effect shows (default: any)
    NEEDS = ("fork",)                what the platform must have besides (see `PLATFORM`)
    THREADS = 1                      torch threads while measuring (default: what verify pins, see `--threads`)
    STARTUP = True                   the first call does work of its own, such as compiling: it is timed by itself
    ONCE = True                      a call changes what the next one costs: every sample gets a state of its own
    def teardown(state: S)           ends what setup began, such as worker processes

A rule whose advice has no effect on speed or memory says so: its `measure.py` has nothing but a docstring and

    UNMEASURABLE = "why"

Its docstring's first line says what is measured. `before` and `after` are called many times on one state, with the
random seeds set alike. A state is never shared by the two sides.
"""

from __future__ import annotations

import importlib.util
import inspect
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

#: Results agree: to the same bits (True), within (rtol, atol), or are not compared (None).
Equality: TypeAlias = "bool | tuple[float, float] | None"

#: What a platform may lack, and how to tell.
PLATFORM: Mapping[str, Callable[[], bool]] = {
    "fork": lambda: "fork" in multiprocessing.get_all_start_methods(),
    "two processors": lambda: len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0, 1]) > 1,
}


class ContractError(Exception):
    """A `measure.py` that does not keep the contract; the message says how."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One loaded `measure.py`."""

    caption: str
    sizes: Mapping[str, Any]
    setup: Callable[[Any, str], Any]
    sides: Mapping[str, Callable[[Any], Any]]
    equal: Equality
    devices: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    threads: int | None = None
    once: bool = False
    startup: bool = False
    teardown: Callable[[Any], Any] | None = None
    #: Whether its code compiles: the compiler is imported before anything is timed.
    compiles: bool = False
    unmeasurable: str = ""

    def lacking(self, kind: str) -> str:
        """Why it cannot be measured on a device of this kind; empty when it can."""
        if self.unmeasurable:
            return self.unmeasurable
        if self.devices and kind not in self.devices:
            return f"needs {' or '.join(_SPOKEN.get(device, device) for device in self.devices)}"
        missing = [need for need in self.needs if not PLATFORM[need]()]
        return f"needs {', '.join(missing)}" if missing else ""


_SPOKEN = {"cuda": "CUDA", "mps": "MPS", "xpu": "XPU", "cpu": "a CPU"}


def load_workload(file: Path) -> Workload:
    """Import `file`. Raises ContractError; what the module itself raises goes through."""
    module = load_module(file, f"perflint_measure_{file.parent.name.replace('-', '_')}")
    values = vars(module)
    caption = (inspect.getdoc(module) or "").partition("\n")[0]
    if "UNMEASURABLE" in values:
        return Workload(caption, {}, _nothing, {}, None, unmeasurable=str(values["UNMEASURABLE"]))
    missing = [name for name in ("SIZES", "setup", "before", "after", "EQUAL") if name not in values]
    if missing:
        raise ContractError(f"{file} lacks {', '.join(missing)}")
    workload = Workload(
        caption=caption,
        sizes=values["SIZES"],
        setup=values["setup"],
        sides={"before": values["before"], "after": values["after"]},
        equal=values["EQUAL"],
        devices=tuple(values.get("DEVICES", ())),
        needs=tuple(values.get("NEEDS", ())),
        threads=values.get("THREADS"),
        once=values.get("ONCE", False),
        startup=values.get("STARTUP", False),
        teardown=values.get("teardown"),
        compiles="torch.compile(" in file.read_text(encoding="utf-8"),
    )
    fault = next(_faults(workload), None)
    if fault:
        raise ContractError(f"{file}: {fault}")
    return workload


def _nothing(_size: Any, _device: str) -> None:
    """The set-up of what cannot be measured."""


def load_module(file: Path, name: str) -> Any:
    """Run a file as a module of that name. Raises what it raises, and ContractError for what is no Python file."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ContractError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Classes of the module must be found again by name where worker processes are given them.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _faults(workload: Workload) -> Iterator[str]:
    sizes: object = workload.sizes
    if not isinstance(sizes, Mapping) or not sizes:
        yield "SIZES must map at least one name to a size"
    elif not all(isinstance(name, str) for name in sizes):
        yield "the names in SIZES must be strings"
    if not _is_equality(workload.equal):
        yield "EQUAL must be True, None or (rtol, atol)"
    unknown = [need for need in workload.needs if need not in PLATFORM]
    if unknown:
        yield f"NEEDS names {unknown[0]!r}; known are {', '.join(PLATFORM)}"
    functions: tuple[object, ...] = (workload.setup, workload.teardown, *workload.sides.values())
    for function in functions:
        if function is not None and not callable(function):
            yield f"{function!r} is no function"


def _is_equality(value: object) -> bool:
    if value is None or value is True:
        return True
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, (int, float)) for part in value)
