"""Registries of classes and functions: the methods that mmengine, mmcv, fvcore and projects give theirs, and those that
libraries keep themselves, which projects put their models into and get them out of again.
"""

from __future__ import annotations

from collections.abc import Mapping

from perflint.torch_model.names import last, root, words

#: Methods of library registries that put a class or function in: https://mmengine.readthedocs.io/en/latest/api/registry.html
REGISTERING = words("register register_module")
#: Methods that give what was registered.
LOOKING_UP = words("get lookup __getitem__")
#: Methods that call what was registered and give the result.
BUILDING = words("build create make instantiate")
#: Methods of Python's containers that put an item in, with its position among the arguments.
PUTTING: Mapping[str, int] = {"append": 0, "add": 0, "appendleft": 0, "insert": 1, "setdefault": 1}
#: Functions that put what they decorate or are given into a registry of their library, by its name:
#: https://huggingface.co/docs/timm/reference/models, https://docs.pytorch.org/vision/stable/models.html
_PUT_BY: Mapping[tuple[str, str], str] = {
    ("timm", "register_model"): "timm",
    ("torchvision", "register_model"): "torchvision",
}
#: Functions that make what such a registry holds, by the library's root and their last names. Registries that a library
#: hands out as objects, `META_ARCH_REGISTRY.register()`, go by the object's name:
#: https://detectron2.readthedocs.io/en/latest/modules/modeling.html
_MADE_BY: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("timm", "create_model"): ("timm",),
    ("torchvision", "get_model"): ("torchvision",),
    ("detectron2", "build_model"): ("META_ARCH_REGISTRY",),
    ("detectron2", "build_backbone"): ("BACKBONE_REGISTRY",),
    ("detectron2", "build_roi_heads"): ("ROI_HEADS_REGISTRY",),
    ("detectron2", "build_sem_seg_head"): ("SEM_SEG_HEADS_REGISTRY",),
    **{
        (library, f"build_{part}"): (name, "MODELS")
        for library in ("mmcv", "mmdet", "mmdet3d", "mmseg", "mmpose", "mmcls", "mmaction", "mmengine")
        for part, name in {
            "backbone": "BACKBONES",
            "neck": "NECKS",
            "head": "HEADS",
            "loss": "LOSSES",
            "detector": "DETECTORS",
            "segmentor": "SEGMENTORS",
            "classifier": "CLASSIFIERS",
            "posenet": "POSENETS",
            "model": "MODELS",
        }.items()
    },
}


def put_by(function: str) -> str:
    """The registry that a library's function puts something into; empty for any other function."""
    return _PUT_BY.get((root(function), last(function)), "")


def made_by(function: str) -> tuple[str, ...]:
    """The registries whose items a library's function calls; none for any other function."""
    return _MADE_BY.get((root(function), last(function)), ())
