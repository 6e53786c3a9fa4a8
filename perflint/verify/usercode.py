"""Importing the user's callable from a copy of the tree, and making sure that it came from there."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from perflint.project.settings import nearest
from perflint.verify.contract import ContractError, load_module


def redirect_imports(origin: Path, tree: Path, folder: Path) -> None:
    """Whatever Python would import from below `origin` comes from the copy in `tree`; `folder` is searched first."""
    sys.path.insert(0, str(folder))
    for number, entry in enumerate(sys.path):
        below = _below(entry, origin)
        if below is not None and (tree / below).is_dir():
            sys.path[number] = str(tree / below)
    if (tree / "src").is_dir():
        # An editable installation finds its packages by a finder of its own, after the folders of the path.
        sys.path.insert(1, str(tree / "src"))


def resolve(target: str) -> Callable[[], Any]:
    """`package.module:name` or `file.py:name`. Raises ContractError, and whatever importing raises."""
    where, _, name = target.rpartition(":")
    if not where or not name:
        raise ContractError(f"{target!r} is neither package.module:name nor file.py:name")
    if where.endswith(".py"):
        file = Path(where).absolute()
        if not file.is_file():
            raise ContractError(f"there is no file {where} in the copy of the tree")
        sys.path.insert(0, str(file.parent))
        value: Any = load_module(file, file.stem)
    else:
        value = _module(where)
    for part in name.split("."):
        if not hasattr(value, part):
            raise ContractError(f"{where} has no {name}{nearest(part, _callables(value))}")
        value = getattr(value, part)
    fault = _uncallable(value)
    if fault:
        raise ContractError(f"{target} {fault}")
    function: Callable[[], Any] = value
    return function


def _module(where: str) -> Any:
    """Raises ContractError for a module that is not there, and whatever importing it raises."""
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        # One that the module itself misses is told by its own traceback.
        if error.name is None or not (where == error.name or where.startswith(f"{error.name}.")):
            raise
        found = {entry.stem for folder in sys.path[:2] for entry in _entries(Path(folder or "."))}
        hint = nearest(error.name, sorted(found)) if "." not in error.name else ""
        raise ContractError(f"there is no module {error.name}{hint}") from error


def _entries(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.suffix in {"", ".py"}]
    except OSError:
        return []


def _callables(holder: Any) -> list[str]:
    return [name for name, value in vars(holder).items() if callable(value) and not name.startswith("_")]


def _uncallable(value: Any) -> str:
    """Why a call without arguments would not run it; empty when it would."""
    if not callable(value):
        return "is not callable"
    if inspect.isgeneratorfunction(value):
        return "is a generator function: calling it runs nothing; name a function that iterates over it"
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        return "is asynchronous: calling it runs nothing; name a function that runs it, as by asyncio.run"
    try:
        inspect.signature(value).bind()
    except ValueError:  # it tells no signature
        return ""
    except TypeError as error:
        return f"cannot be called without arguments ({error}); name a function that creates its own inputs"
    return ""


def from_elsewhere(origin: Path, tree: Path, changed: Sequence[str]) -> str:
    """The first changed file that was imported from `origin` although there is a copy in `tree`; empty for none."""
    ours, original = loaded(tree), loaded(origin)
    return next((path for path in changed if path in original and path not in ours), "")


def loaded(root: Path) -> set[str]:
    """Paths, relative to `root`, of the modules that were loaded from below it."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    found = (_below(file, root) for file in files if isinstance(file, str))
    return {path.as_posix() for path in found if path is not None}


def _below(path: str, root: Path) -> Path | None:
    # Folder by folder: there are thousands of modules, in some hundred folders.
    folder, name = os.path.split(path or ".")
    real = os.path.join(_real(folder or "."), name)  # noqa: PTH118
    try:
        return Path(os.path.realpath(real) if os.path.islink(real) else real).relative_to(_real(str(root)))  # noqa: PTH114
    except ValueError:
        return None


@functools.cache
def _real(folder: str) -> str:
    return os.path.realpath(folder)
