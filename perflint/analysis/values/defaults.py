"""The device that new tensors are made on where nothing is given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from perflint.analysis.values import transfers
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import UNKNOWN, Device, Kind, Tag
from perflint.ir.notation import last_name
from perflint.syntax.tree import FUNCTIONS, Tree

_SETTERS = ("set_default_device", "set_default_tensor_type")


class Defaults:
    """The defaults of one file. `evaluate` gives the kinds of what is written there."""

    def __init__(self, tree: Tree, evaluate: Callable[[ast.expr, Frame | None], Kind]) -> None:
        self.tree = tree
        self.evaluate = evaluate
        self._calls: list[ast.Call] | None = None

    def at(self, node: ast.AST, frame: Frame | None = None) -> Kind | None:
        """The device that new tensors are made on at `node`, when `with torch.device(...)` or a default says so."""
        for outer in self.tree.ancestors(node):
            if isinstance(outer, (ast.With, ast.AsyncWith)):
                for item in outer.items:
                    if item.context_expr is node:
                        return None
                    if isinstance(item.context_expr, (ast.Call, ast.Name, ast.Attribute)):
                        entered = self._device_entered(item.context_expr, frame)
                        if entered is not None:
                            return entered
            elif isinstance(outer, FUNCTIONS):
                break
        return self._file_default()

    def _device_entered(self, node: ast.expr, frame: Frame | None) -> Kind | None:
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name != "device":
                return None
        found = self.evaluate(node, frame)
        return found if found.tag is Tag.DEVICE else None

    def _file_default(self) -> Kind | None:
        """`torch.set_default_device(...)` anywhere in the file holds for all of it."""
        if self._calls is None:
            self._calls = list(self._setting())
        return self._default_of(self._calls[-1]) if self._calls else None

    def _setting(self) -> Iterator[ast.Call]:
        """The calls that set a default."""
        if any(name in self.tree.source.text for name in _SETTERS):
            for top in self.tree.module.body:
                for node in self.tree.walk(top):
                    if isinstance(node, ast.Call) and last_name(node.func) in _SETTERS:
                        yield node

    def _default_of(self, node: ast.Call) -> Kind:
        if last_name(node.func) == "set_default_tensor_type":
            written = ast.unparse(node.args[0]) if node.args else ""
            return Kind(Tag.DEVICE, device=Device.CUDA if "cuda" in written else Device.CPU)
        given = self.evaluate(node.args[0], None) if node.args else UNKNOWN
        return Kind(Tag.DEVICE, device=transfers.device_of(given))
