"""The contract of `fixtures/<CODE>-<name>/run.py`, which runs the cases of its folder that have a fixed form.

A `run.py` defines for every case with a `.fixed` or `.unsafe` form either
- a function named as the case, which is called with the module made from the case's text, before and after the fixes,
  and returns what can be seen of it: a dict of numbers, texts, tensors, modules, optimizers, lists and dicts of them.
  For a case that is a folder it gets an object whose attributes are the folder's modules; or
- an entry in `NOT_RUN`, which says why the case cannot run on a CPU.

It may define
- `ON_PURPOSE`: for a case, the paths of results (joined by dots; a path stands for what is below it too) that differ
  after the unsafe fixes, each with the reason. A result that does not differ may not be listed.
- `STAND_INS`: what takes the place of packages, by their names, while cases are loaded and run.

Both runs begin with the same seeds. Names of accelerators mean the host, and transfers to them are copies. What is
printed is compared too, as the result `printed`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import io
import multiprocessing
import random
import sys
import tempfile
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from on_cpu import OnCpu

from perflint.testing import Case, read_markers

__all__ = ["Driver", "load_driver", "run"]


@dataclass(frozen=True, slots=True)
class Driver:
    """One loaded `run.py`; without the file nothing is known of any case."""

    module: types.ModuleType | None

    def runs(self, case: Case) -> bool:
        return callable(getattr(self.module, case.path.stem, None))

    def reason_not_to(self, case: Case) -> str:
        return str(self._table("NOT_RUN").get(case.path.stem, ""))

    def on_purpose(self, case: Case) -> Mapping[str, str]:
        return dict(self._table("ON_PURPOSE").get(case.path.stem, {}))

    def stand_ins(self) -> Mapping[str, Any]:
        return self._table("STAND_INS")

    def listed(self) -> set[str]:
        """Every case that is named in a table."""
        return {*self._table("NOT_RUN"), *self._table("ON_PURPOSE")}

    def _table(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = getattr(self.module, name, {})
        return found


def load_driver(group: Path) -> Driver:
    path = group / "run.py"
    if not path.is_file():
        return Driver(None)
    spec = importlib.util.spec_from_file_location(f"run_{group.name.partition('-')[0]}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Driver(module)


def run(driver: Driver, case: Case, text: Path) -> dict[str, object]:
    """What the driver of `case` returns for the code in `text`, a file or a folder, and what it prints."""
    with tempfile.TemporaryDirectory(prefix="perflint-run-") as name, _standing_in(driver.stand_ins()):
        names = _copy(text, case.path.stem, Path(name))
        with _importable(Path(name), names), contextlib.redirect_stdout(io.StringIO()) as printed, OnCpu():
            torch.manual_seed(0)
            random.seed(0)
            np.random.seed(0)  # code under test may draw from the global generator
            modules = {each: importlib.import_module(each) for each in names}
            given = types.SimpleNamespace(**modules) if text.is_dir() else modules[names[0]]
            results = dict(getattr(driver.module, case.path.stem)(given))
        result = {**results, "printed": printed.getvalue()}
    # An iterator that the code leaves half used, in the cycles of its module, keeps worker processes and threads.
    del modules, given
    if multiprocessing.active_children():
        gc.collect()
    return result


def _copy(text: Path, stem: str, target: Path) -> list[str]:
    """Copy the code, without markers, and return the names of its modules. A file keeps the case's own name."""
    files = sorted(text.glob("*.py")) if text.is_dir() else [text]
    names = [file.stem for file in files] if text.is_dir() else [f"case_{stem}"]
    for file, name in zip(files, names):
        (target / f"{name}.py").write_text(read_markers(file.read_text(encoding="utf-8")).text, encoding="utf-8")
    return names


@contextlib.contextmanager
def _importable(folder: Path, names: list[str]) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in names:
            sys.modules.pop(name, None)


@contextlib.contextmanager
def _standing_in(stand_ins: Mapping[str, Any]) -> Iterator[None]:
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
