"""Modules of kornia, made with small arguments, and inputs with which they run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

_PARTS = "augmentation color contrib enhance feature filters geometry losses metrics morphology".split()
#: Arguments that have no default, by their names. Modules that need others are left out.
_ARGUMENTS: dict[str, Any] = {
    **dict.fromkeys(("size", "window_size", "patch_size"), (16, 16)),
    **dict.fromkeys(("mean", "std"), (0.5, 0.5, 0.5)),
    **dict.fromkeys(("degrees", "shear"), 20.0),
    **dict.fromkeys(("max_size", "num_classes"), 16),
    **dict.fromkeys(("brightness_factor", "contrast_factor", "gamma", "hue_factor", "saturation_factor"), 0.5),
    **dict.fromkeys(("factor", "thresh", "alpha", "beta", "k", "alpha_val", "sigma_color"), 0.5),
    "kernel_size": (3, 3),
    "times": (1, 2),
    "eps": 1e-6,
    "num_features": 3,
    "reduction": "mean",
}
#: Those differ by class.
_OF_CLASS: dict[str, dict[str, Any]] = {
    "RandomGaussianBlur": {"sigma": (0.5, 1.5)},
    "RandomMotionBlur": {"kernel_size": 3, "angle": 20.0, "direction": 0.5},
    "RandomMotionBlur3D": {"kernel_size": 3, "angle": 20.0, "direction": 0.5},
    "RandomCrop3D": {"size": (4, 16, 16)},
    "CenterCrop3D": {"size": (4, 16, 16)},
    "MotionBlur": {"kernel_size": 3, "angle": 20.0, "direction": 0.5},
    "GaussianBlur2d": {"sigma": (1.0, 1.0)},
    "BilateralBlur": {"sigma_color": 0.1, "sigma_space": (1.0, 1.0)},
    "UnsharpMask": {"sigma": (1.0, 1.0)},
    "SSIMLoss": {"window_size": 5},
    "SSIM": {"window_size": 5},
    "MS_SSIMLoss": {"sigmas": [0.5, 1.0]},
}


def names() -> list[str]:
    """`part.Class`, those of augmentation by their class alone."""
    import importlib

    found = {}
    for part in _PARTS:
        try:
            module = importlib.import_module(f"kornia.{part}")
        except ImportError:
            continue
        for name, kind in vars(module).items():
            if _is_module(name, kind) and kind not in found and _arguments(name, kind) is not None:
                found[kind] = name if part == "augmentation" else f"{part}.{name}"
    return sorted(found.values())


def _is_module(name: str, kind: Any) -> bool:
    import torch

    return inspect.isclass(kind) and issubclass(kind, torch.nn.Module) and "Base" not in name and name[0] != "_"


def _arguments(name: str, kind: Any) -> dict[str, Any] | None:
    """What to make it with, None where something needed is not known."""
    taken = inspect.signature(kind.__init__).parameters
    given: dict[str, Any] = {"p": 1.0} if "p" in taken else {}
    if "pretrained" in taken:
        given["pretrained"] = False
    known = _ARGUMENTS | _OF_CLASS.get(name, {})
    for one in list(taken.values())[1:]:
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD and one.name not in given:
            if one.name not in known:
                return None
            given[one.name] = known[one.name]
    return given


def make(name: str) -> tuple[Any, Any]:
    """The module, with a parameter before it, and inputs. Raises what the first inputs met."""
    import importlib

    import torch

    part, _, kind = name.rpartition(".")
    found = getattr(importlib.import_module(f"kornia.{part or 'augmentation'}"), kind)
    arguments = _arguments(kind, found)
    assert arguments is not None
    model = _with_parameter(found(**arguments))
    met: list[Exception] = []
    for inputs in _inputs():
        torch.manual_seed(0)
        try:
            with torch.no_grad():
                model(*inputs)
        except Exception as error:  # noqa: BLE001 - other inputs may do
            met.append(error)
            continue
        return model, inputs
    raise met[0]


def _inputs() -> Iterator[tuple[Any, ...]]:
    import torch

    picture, grey = torch.rand(4, 3, 32, 32), torch.rand(4, 1, 32, 32)
    scores = torch.randn(2, 4, 16, 16)
    yield (picture,)
    yield (grey,)
    yield (torch.rand(2, 4, 32, 32),)
    yield (torch.rand(2, 3, 8, 32, 32),)
    yield picture, picture.flip(0)
    yield scores, torch.randint(0, 4, (2, 16, 16))
    yield grey, (grey > 0.5).float()
    yield picture, torch.ones(3, 3)
    yield (torch.rand(2, 5, 2),)
    yield (torch.rand(2, 5, 3),)
    yield torch.rand(6, 128), torch.rand(6, 128)


def _with_parameter(found: Any) -> Any:
    import torch

    class Scaled(torch.nn.Module):  # type: ignore[misc]
        """Most modules of kornia have no parameters, and an optimizer needs one."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = found
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, first: Any, *others: Any) -> Any:
            return self.inner(first * self.scale, *others)

    return Scaled()
