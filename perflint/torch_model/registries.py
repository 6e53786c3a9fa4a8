"""Registries of classes and functions, as mmengine, mmcv, fvcore and projects have them: the names of their methods."""

from __future__ import annotations

from collections.abc import Mapping

from perflint.torch_model.names import words

#: Methods of library registries that put a class or function in: https://mmengine.readthedocs.io/en/latest/api/registry.html
REGISTERING = words("register register_module")
#: Methods that give what was registered.
LOOKING_UP = words("get lookup __getitem__")
#: Methods that call what was registered and give the result.
BUILDING = words("build create make instantiate")
#: Methods of Python's containers that put an item in, with its position among the arguments.
PUTTING: Mapping[str, int] = {"append": 0, "add": 0, "appendleft": 0, "insert": 1, "setdefault": 1}
