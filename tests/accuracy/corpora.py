"""The libraries whose models are observed: what there is to run, and how one of them is made with small inputs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import first_looks
import later_looks
import packages
import small_modules
import unseen_looks
import vision_operators


class Library(Protocol):
    """A corpus. `folder` is the package's own, whose lines count."""

    folder: Path

    def names(self) -> list[str]: ...

    def make(self, name: str) -> tuple[Any, Any]: ...

    def call(self, model: Any, inputs: Any) -> Any: ...


def _folder(package: str) -> Path:
    # Of a package without an `__init__` as well.
    return Path(next(iter(importlib.import_module(package).__path__)))


class Timm:
    """A model of each module of `timm.models`: the one whose name says that it is small."""

    _SMALL = (
        "test",
        "atto",
        "femto",
        "pico",
        "nano",
        "xxs",
        "tiny",
        "mini",
        "xs",
        "t0",
        "b0",
        "s0",
        "_s",
        "18",
        "050",
        "small",
    )

    def __init__(self) -> None:
        vision_operators.install()
        import timm

        self.timm = timm
        self.folder = _folder("timm")

    def names(self) -> list[str]:
        return [name for module in self.timm.list_modules() for name in self._smallest(module)]

    def _smallest(self, module: str) -> list[str]:
        names = self.timm.list_models(module=module)
        ranked = sorted(
            names,
            key=lambda name: (min((at for at, word in enumerate(self._SMALL) if word in name), default=99), len(name)),
        )
        return ranked[:1]

    def make(self, name: str) -> tuple[Any, Any]:
        import torch

        model = self.timm.create_model(name, num_classes=10)
        return model, torch.randn(2, *model.default_cfg["input_size"])

    def call(self, model: Any, inputs: Any) -> Any:
        return model(inputs)


class Torchvision:
    """Each builder of `torchvision.models` of which a smaller brother is not there, with its own inputs."""

    def __init__(self) -> None:
        vision_operators.install()
        import torchvision

        self.models = torchvision.models
        self.folder = _folder("torchvision")

    def names(self) -> list[str]:
        smallest: dict[str, str] = {}
        for name in self.models.list_models():
            module = self.models.get_model_builder(name).__module__
            if module not in smallest or len(name) < len(smallest[module]):
                smallest[module] = name
        return sorted(smallest.values())

    def make(self, name: str) -> tuple[Any, Any]:
        import torch

        kind = self.models.get_model_builder(name).__module__.split(".")[2]
        if kind == "detection":
            few = {"rpn_post_nms_top_n_train": 40, "box_batch_size_per_image": 16} if "rcnn" in name else {}
            model = self.models.get_model(name, weights=None, weights_backbone=None, num_classes=3, **few)
            return model, self._detection(name)
        if kind == "optical_flow":
            return self.models.get_model(name), (torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128))
        if kind == "video":
            frames = 16 if name.startswith(("mvit", "swin", "s3d")) else 4
            return self.models.get_model(name, num_classes=5), (torch.rand(1, 3, frames, 224, 224),)
        if kind == "segmentation":
            model = self.models.get_model(name, weights=None, weights_backbone=None, num_classes=3)
            return model, (torch.rand(2, 3, 64, 64),)
        size = 299 if "inception" in name else 224
        return self.models.get_model(name, num_classes=10), (torch.rand(2, 3, size, size),)

    def _detection(self, name: str) -> tuple[Any, Any]:
        import torch

        boxes = torch.tensor([[10.0, 10.0, 60.0, 60.0], [30.0, 20.0, 90.0, 80.0]])
        target: dict[str, Any] = {"boxes": boxes, "labels": torch.tensor([1, 2])}
        if name.startswith("maskrcnn"):
            target["masks"] = torch.zeros(2, 128, 128, dtype=torch.uint8)
        if name.startswith("keypointrcnn"):
            target["labels"] = torch.tensor([1, 1])
            target["keypoints"] = torch.rand(2, 17, 3) * 50 + 20
        # Batch normalization over a single position needs two pictures.
        count = 2 if name.startswith("ssdlite") else 1
        return ([torch.rand(3, 128, 128) for _ in range(count)], [target] * count)

    def call(self, model: Any, inputs: Any) -> Any:
        return model(*inputs)


class Transformers:
    """The plain model of each type, from its default configuration made small."""

    def __init__(self) -> None:
        vision_operators.install()
        import transformers

        # What every model imports, before there are children that each would.
        for module in ("modeling_utils", "models.bert.modeling_bert", "models.llava.modeling_llava"):
            importlib.import_module(f"transformers.{module}")
        self.transformers = transformers
        self.folder = _folder("transformers")

    def names(self) -> list[str]:
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        return sorted(MODEL_MAPPING_NAMES)

    def make(self, name: str) -> tuple[Any, Any]:
        from small_configurations import small

        return small(name)

    def call(self, model: Any, inputs: Any) -> Any:
        return model(**inputs)


class Classes:
    """Each class of a package that can be made with small arguments and runs on small inputs, losses among them."""

    def __init__(self, package: str, of: small_modules.Package) -> None:
        # Before what imports torchvision.
        vision_operators.install()
        self.package, self.of = package, of
        self.folder = _folder(package)

    def names(self) -> list[str]:
        return small_modules.names(self.package, self.of)

    def make(self, name: str) -> tuple[Any, Any]:
        return small_modules.make(self.package, name, self.of)

    def call(self, model: Any, inputs: Any) -> Any:
        return model(*inputs)


LIBRARIES: dict[str, Callable[[], Library]] = {
    "timm": Timm,
    "torchvision": Torchvision,
    "transformers": Transformers,
    **{
        name: functools.partial(Classes, package, of)
        for name, (package, of) in {
            **packages.PACKAGES,
            **first_looks.FIRST_LOOKS,
            **later_looks.LATER_LOOKS,
            **unseen_looks.UNSEEN_LOOKS,
        }.items()
    },
}
