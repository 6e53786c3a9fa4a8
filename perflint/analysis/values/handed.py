"""Where what a module is called with lies: moved by a wrapper around the module, or left on the host by the caller."""

from __future__ import annotations

import ast

from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Kind, Place
from perflint.analysis.values.origin import Provenance, is_from
from perflint.syntax.tree import FunctionNode

#: How kinds say that a loader gave a value.
_OF_LOADER = (Provenance.LOADER, Provenance.NAMED_LOADER)
_MOVING_WRAPPERS = frozenset({"DataParallel", "DistributedDataParallel", "DDP"})
_MOST_CALLERS = 8


def is_moved_by_wrapper(given: Kind, function: FunctionNode, cls: ast.ClassDef, inference: Evaluating) -> bool:
    """Whether a batch of the host reaches a forward on the device: `DistributedDataParallel` with `device_ids` and
    `DataParallel` move what a module is called with. A module that moves its input itself may be called bare too, and
    one that only modules call is not the wrapped one.
    """
    if given.place is not Place.HOST or not is_from(given.origin, *_OF_LOADER):
        return False
    if not inference.program.mentions(_MOVING_WRAPPERS) or any(map(_speaks_of_device, inference.tree.walk(cls))):
        return False
    callers = inference.program.callers(Scope(inference.path, inference.tree.qualname(function)))
    owners = [Ref(CLASS, edge.caller.path, edge.caller.function.rpartition(".")[0]) for edge in callers]
    return not owners or not all(owner.name and inference.classes.is_module(owner) for owner in owners)


def is_left_behind(function: FunctionNode, name: str, inference: Evaluating) -> bool:
    """Whether the callers of a forward move another argument and leave this one as the loader gave it, on the host:
    `model(x.cuda(), lengths)`. A step of training does not do that with what it needs on the device.
    """
    if inference.path not in inference.program.summaries:
        return False
    others = [item.arg for item in function.args.args[1:] if item.arg != name]
    found = False
    for edge in inference.program.callers(Scope(inference.path, inference.tree.qualname(function)))[:_MOST_CALLERS]:
        given = None if edge.stands_in else inference.parameters.argument(edge, function, name)
        if given is None or not given.known:
            continue
        if not (given.on_host and is_from(given.origin, *_OF_LOADER)):
            return False
        beside = (inference.parameters.argument(edge, function, other) for other in others)
        if not any(kind is not None and _was_moved(kind) for kind in beside):
            return False
        found = True
    return found


def _was_moved(kind: Kind) -> bool:
    return kind.on_accelerator and is_from(kind.origin, Provenance.MOVE)


def _speaks_of_device(node: ast.AST) -> bool:
    """`x.to(self.device)`, `x.cuda()`, `to_device(batch)`; not `.to(x.device)`, which goes where something else is."""
    if isinstance(node, ast.Attribute):
        if node.attr == "device":
            return isinstance(node.value, ast.Name) and node.value.id == "self"
        return "device" in node.attr or "cuda" in node.attr
    return isinstance(node, ast.Name) and ("device" in node.id or "cuda" in node.id)
