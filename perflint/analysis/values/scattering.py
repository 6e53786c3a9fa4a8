"""Wrappers around modules that move what the module is called with: inside of it, what was on the host is not."""

from __future__ import annotations

import ast

from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.kind import UNKNOWN, Kind, Place, Tag
from perflint.analysis.values.origin import Origin, Provenance, is_from
from perflint.syntax.tree import FunctionNode
from perflint.syntax.walk import walk
from perflint.torch_model import distributed, wrappers

#: Calls by which a function takes a tensor to a device itself.
_MOVES = frozenset({"to", "cuda"})


def handed_back(name: str, arguments: Arguments) -> Kind:
    """What a library's function gives back of what it is given, wrapped or not."""
    inner = arguments.at(wrappers.IDENTITIES[name], "module")
    if inner is None:
        return UNKNOWN
    if name == "copy.deepcopy":
        return inner.but(fresh=True) if inner.known else UNKNOWN
    moves = name in distributed.DATA_PARALLEL or (
        name in distributed.DISTRIBUTED_DATA_PARALLEL and _names_devices(arguments)
    )
    return inner.but(origin=Origin(Provenance.SCATTERED)) if moves and inner.tag is Tag.MODULE else inner


def _names_devices(arguments: Arguments) -> bool:
    """`device_ids=[rank]`: only then `DistributedDataParallel` moves anything."""
    return arguments.constant(1, "device_ids", ...) is not None and arguments.at(1, "device_ids") is not None


def is_scattering(module: Kind) -> bool:
    """Whether such a wrapper may be around a module."""
    return is_from(module.origin, Provenance.SCATTERED)


def unwrapped(module: Kind) -> Kind:
    """The module itself: `model.module`."""
    return module.but(origin=None) if is_scattering(module) else module


def scattered(kind: Kind) -> Kind:
    """What the wrapped module gets of what the wrapper is given: tensors of lists, tuples and dicts are moved, too."""
    if kind.holds_tensors:
        return kind.but(place=Place.MODULE, device=None, pinned=False) if kind.on_host else kind
    if kind.tag not in (Tag.SEQUENCE, Tag.MAPPING):
        return kind
    items = tuple((key, scattered(item)) for key, item in kind.items)
    return kind.but(element=None if kind.element is None else scattered(kind.element), items=items)


def moves_itself(function: FunctionNode, name: str) -> bool:
    """Whether a function takes a parameter to the device itself: then it may be called bare as well."""
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in _MOVES
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id == name
        for part in walk(function)
    )
