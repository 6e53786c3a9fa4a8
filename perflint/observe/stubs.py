"""Stands in for what cannot run without a GPU: kernels of Triton, CUDA extensions, packages that are not installed.

`--stub package.kernel=package.reference` replaces `package.kernel` by the reference when `package` is imported, and
makes the package where there is none. `--stub namespace::name=package.reference` gives an operation of PyTorch's
dispatcher an implementation for host tensors.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perflint.errors import PerflintError

#: Packages whose code runs on a GPU only.
_GPU_ONLY = frozenset(
    "triton flash_attn xformers apex transformer_engine mamba_ssm causal_conv1d bitsandbytes cupy numba".split()
)
_advice: list[str] = []


class Stub:
    """Calls the reference. `stub[grid](...)`, as Triton's kernels are launched, is `stub(...)`."""

    def __init__(self, name: str, reference: str) -> None:
        self.__name__ = self.__qualname__ = name
        self._reference = reference
        self._found: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if self._found is None:
            self._found = _resolve(self._reference)
        return self._found(*arguments, **keywords)

    def __getitem__(self, _grid: Any) -> Stub:
        return self


def _resolve(reference: str) -> Callable[..., Any]:
    module, _, name = reference.replace(":", ".").rpartition(".")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PerflintError(f"--stub ...={reference}: {error}") from error
    return found


def parse(given: Sequence[str]) -> dict[str, str]:
    """`NAME=REFERENCE` each. Raises PerflintError."""
    found = {}
    for one in given:
        name, separator, reference = one.partition("=")
        if not separator or not reference or not ("." in name or "::" in name):
            raise PerflintError(
                f"--stub {one}: write package.kernel=package.reference, or namespace::operation=package.reference"
            )
        found[name] = reference
    return found


def install(given: Mapping[str, str]) -> dict[str, Callable[..., object]]:
    """Replace attributes when their modules are imported. Gives the stubs of operations."""
    modules: dict[str, dict[str, Stub]] = {}
    operations: dict[str, Callable[..., object]] = {}
    for name, reference in given.items():
        if "::" in name:
            operations[name] = Stub(name, reference)
        else:
            module, _, attribute = name.rpartition(".")
            modules.setdefault(module, {})[attribute] = Stub(attribute, reference)
    if modules:
        sys.meta_path.insert(0, _Finder(modules))
    return operations


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as usual, and fills in the stubs after they ran; makes those that are not there."""

    def __init__(self, modules: Mapping[str, Mapping[str, Stub]]) -> None:
        self.modules = modules
        self._looking: set[str] = set()

    def find_spec(self, name: str, _path: Any, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        wanted = self.modules.get(name)
        above = any(module.startswith(f"{name}.") for module in self.modules)
        if name in self._looking or (wanted is None and not above):
            return None
        self._looking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        finally:
            self._looking.discard(name)
        if spec is None:
            spec = importlib.machinery.ModuleSpec(name, _Loader(None, wanted or {}), is_package=True)
        elif wanted is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, wanted)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: Any, stubs: Mapping[str, Stub]) -> None:
        self.inner = inner
        self.stubs = stubs

    def create_module(self, spec: Any) -> types.ModuleType | None:
        made: types.ModuleType | None = self.inner.create_module(spec) if self.inner is not None else None
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        if self.inner is not None:
            self.inner.exec_module(module)
        for name, stub in self.stubs.items():
            setattr(module, name, stub)


def explain(error: BaseException) -> None:
    """Where the program failed for want of a GPU, keep what to do about it for the report."""
    operation = getattr(error, "operation", None)
    line = _line_of(error)
    if operation is not None and "::" in str(operation):
        _advice.append(
            f"{line}: {operation} has no implementation for the host: --stub {operation}=package.reference gives one"
        )
    elif isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in _GPU_ONLY:
        _advice.append(
            f"{line}: {error.name} is not installed and needs a GPU: --stub {error.name}.NAME=package.reference "
            "stands in for each name that is used"
        )
    else:
        kernel = _kernel_of(error)
        if kernel is not None:
            _advice.append(f"{line}: {kernel} runs on a GPU only: --stub {kernel}=package.reference stands in for it")


def advice() -> list[str]:
    """What was kept."""
    return list(_advice)


def _line_of(error: BaseException) -> str:
    """The innermost line that is not a library's."""
    found = "the program"
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if (
            not name.startswith("<")
            and "site-packages" not in name
            and "/perflint/observe/" not in name.replace("\\", "/")
        ):
            with contextlib.suppress(ValueError):
                name = Path(name).resolve().relative_to(Path.cwd()).as_posix()
            found = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _kernel_of(error: BaseException) -> str | None:
    """The function of the program's that went into Triton, `module.name`."""
    caller: str | None = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == "triton":
            kernel = frame.f_locals.get("self")
            function = getattr(kernel, "fn", None)
            if function is not None and hasattr(function, "__module__"):
                return f"{function.__module__}.{function.__qualname__}"
            return caller
        caller = f"{module}.{frame.f_code.co_name}"
        trace = trace.tb_next
    return None
