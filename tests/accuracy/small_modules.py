"""Modules and metrics of a package: each made with small arguments, and run on the first inputs that fit."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import small_tensors

#: What a class is made with, by the names of its arguments.
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Package:
    """Which classes of a package are made, and what with. Classes that need an argument nobody names are left out."""

    #: Modules below the package, whose public classes are taken; `""` is the package itself.
    parts: tuple[str, ...] = ("",)
    #: `module:Class` that the classes have to derive from.
    base: str = "torch.nn:Module"
    arguments: Arguments = field(default_factory=dict)
    #: What only one class is made with. A function makes the whole object.
    of_class: Mapping[str, Arguments | Callable[[], Any]] = field(default_factory=dict)
    inputs: Callable[[], Iterator[tuple[Any, ...]]] = small_tensors.pictures
    #: How one step uses an object.
    use: Callable[..., Any] = lambda one, *inputs: one(*inputs)


def names(package: str, of: Package) -> list[str]:
    """`part.Class` of each class that can be made."""
    module, _, base = of.base.partition(":")
    root = getattr(importlib.import_module(module), base)
    found: dict[Any, str] = {}
    for part in of.parts:
        for name, kind in _members(importlib.import_module(f"{package}.{part}".rstrip("."))):
            if _is_offered(name, kind, root, package) and kind not in found and arguments(name, kind, of) is not None:
                found[kind] = f"{part}.{name}".lstrip(".")
    made = [name for name, how in of.of_class.items() if callable(how)]
    return sorted({*found.values(), *made})


def _members(module: Any) -> Iterator[tuple[str, Any]]:
    """What a module has, also where it imports it when it is asked for."""
    for name in dir(module):
        try:
            yield name, getattr(module, name)
        except (ImportError, RuntimeError, AttributeError):
            continue


def _is_offered(name: str, kind: Any, root: type, package: str) -> bool:
    is_class = inspect.isclass(kind) and issubclass(kind, root) and kind.__module__.startswith(package)
    return is_class and not inspect.isabstract(kind) and name[0] != "_" and not name.startswith("Base")


def arguments(name: str, kind: Any, of: Package) -> dict[str, Any] | None:
    """What to make it with, None where something needed is not known."""
    special = of.of_class.get(name, {})
    if callable(special):
        return {}
    known = {**of.arguments, **special}
    given = dict(special)
    for one in _taken(kind)[0]:
        if one.name in known:
            given.setdefault(one.name, known[one.name])
        elif one.default is one.empty:
            return None
    return given


def _taken(kind: Any) -> tuple[list[inspect.Parameter], list[inspect.Parameter]]:
    """The arguments of a class, and those that it may hand on to the classes it derives from."""
    found: list[list[inspect.Parameter]] = []
    for one in kind.__mro__:
        if "__init__" not in vars(one):
            continue
        taken = list(inspect.signature(one.__init__).parameters.values())[1:]
        found.append([each for each in taken if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)])
        if all(each.kind is not each.VAR_KEYWORD for each in taken):
            break
    return found[0], [each for more in found[1:] for each in more]


def _made(name: str, kind: Any, of: Package) -> Any:
    """An object; where the classes that it derives from want more, with that, too."""
    given = arguments(name, kind, of) or {}
    try:
        return kind(**given)
    except (TypeError, KeyError):
        more = {one.name: of.arguments[one.name] for one in _taken(kind)[1] if one.name in of.arguments}
        if not more:
            raise
        return kind(**{**more, **given})


def make(package: str, name: str, of: Package) -> tuple[Any, Any]:
    """The module, with a parameter before it, and inputs. Raises what the first inputs met."""
    import torch

    part, _, last = name.rpartition(".")
    how = of.of_class.get(last)

    def new() -> Any:
        torch.manual_seed(0)
        if callable(how):
            return how()
        kind = getattr(importlib.import_module(f"{package}.{part}".rstrip(".")), last)
        return _made(last, kind, of)

    met: list[Exception] = []
    for inputs in of.inputs():
        try:
            # Tried in the order of a real step; and on an object of its own: a metric keeps what it was given.
            model = _with_parameter(new(), of.use)
            model(*inputs)
            return _with_parameter(new(), of.use), inputs
        except Exception as error:  # noqa: BLE001 - other inputs may do
            met.append(error)
    raise met[0]


def _with_parameter(found: Any, use: Callable[..., Any]) -> Any:
    import torch

    class Scaled(torch.nn.Module):  # type: ignore[misc]
        """Many modules have no parameters, and an optimizer needs one."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = found
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, *inputs: Any) -> Any:
            result = use(self.inner, *map(self._scaled, inputs[:1]), *inputs[1:])
            # What a library calls its outputs.
            return vars(result) if hasattr(result, "__dict__") and not isinstance(result, torch.Tensor) else result

        def _scaled(self, value: Any) -> Any:
            is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
            return value * self.scale if is_float else value

    return Scaled()


def update_and_compute(metric: Any, *inputs: Any) -> Any:
    """A step of a metric that is accumulated and logged."""
    metric.update(*(one.detach() if hasattr(one, "detach") else one for one in inputs))
    return metric.compute()


def call_and_aggregate(metric: Any, *inputs: Any) -> Any:
    """The same where metrics are called so."""
    metric(*inputs)
    return metric.aggregate()


def denoise(scheduler: Any, sample: Any, noise: Any, *_: Any) -> Any:
    """Noise, and steps of its removal, as in sampling."""
    scheduler.set_timesteps(6, device=sample.device)
    for step in scheduler.timesteps[:4]:
        scaled = scheduler.scale_model_input(sample, step) if hasattr(scheduler, "scale_model_input") else sample
        sample = scheduler.step(noise, step, scaled).prev_sample
    return sample
