"""What a parameter is by how its function uses it, where nothing else tells: a device, a loader, a tokenizer."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.analysis.names.refs import Scope
from perflint.analysis.names.used_as import sources_of_batches
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import NAMED_LOADER, UNKNOWN, Device, Kind, Tag
from perflint.analysis.values.origin import Origin, Provenance
from perflint.analysis.values.transfers import looks_like_dtype
from perflint.finding import Confidence
from perflint.ir.notation import last_name, source_of
from perflint.syntax.bindings import Definition
from perflint.syntax.tree import FunctionNode

_DEVICE = Kind(Tag.DEVICE, device=Device.MAYBE, certainty=Confidence.MEDIUM, origin=Origin(Provenance.USE))
#: What is told the device that it works on.
_TAKING_DEVICE = frozenset("device set_device synchronize current_stream get_device_properties autocast".split())
#: What only devices and strings have: types and tensors do not.
_OF_DEVICES = frozenset({"type", "index"})


class UsedAs:
    """Parameters of one file, by the places that read them."""

    def __init__(self, inference: Evaluating) -> None:
        self.inference = inference
        self._sources: dict[Scope, frozenset[str]] = {}

    def kind(self, definition: Definition, function: FunctionNode) -> Kind:
        """What only that can be which is used so; `UNKNOWN` where several things are."""
        inference = self.inference
        if definition.name in self._sources_of(function):
            return NAMED_LOADER
        uses = inference.flow.uses_of(definition)
        if self._is_device(uses, may_be_weak=not looks_like_dtype(definition.name)):
            return _DEVICE
        return UNKNOWN

    def _sources_of(self, function: FunctionNode) -> frozenset[str]:
        scope = Scope(self.inference.path, self.inference.tree.qualname(function))
        known = self._sources.get(scope)
        if known is None:
            summary = self.inference.program.summaries.get(scope.path)
            facts = summary.functions.get(scope.function) if summary is not None else None
            known = self._sources[scope] = sources_of_batches(facts) if facts is not None else frozenset()
        return known

    def _is_device(self, uses: Iterable[ast.Name], *, may_be_weak: bool) -> bool:
        """Whether names are given as devices: by name, with `non_blocking`, or to several things that all go there.

        A type is given as `dtype` somewhere, or to one thing; a tensor that others follow is computed with, too.
        """
        tree = self.inference.tree
        followers: set[str] = set()
        for use in uses:
            parent = tree.parent(use)
            if isinstance(parent, ast.keyword):
                if parent.arg in ("device", "device_type", "map_location"):
                    return True
                if parent.arg == "dtype":
                    return False
            elif isinstance(parent, ast.Call) and use in parent.args:
                moved = _moved_to(parent, use)
                if moved is None:
                    if last_name(parent.func) in _TAKING_DEVICE:
                        return True
                elif len(parent.args) > 1 or any(item.arg == "non_blocking" for item in parent.keywords):
                    return True
                else:
                    followers.add(source_of(moved))
            elif isinstance(parent, (ast.BinOp, ast.Subscript, ast.For, ast.comprehension)):
                return False
            elif isinstance(parent, ast.Attribute) and parent.attr not in _OF_DEVICES:
                return False
        return may_be_weak and len(followers) > 1


def _moved_to(call: ast.Call, target: ast.expr) -> ast.expr | None:
    """What `x.to(target)` moves."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("to", "cuda") and call.args[0] is target:
        return func.value
    return None
