"""The device that new tensors are made on where nothing is given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from perflint.analysis.call_graph.process_defaults import BY_TYPE, SETTERS
from perflint.analysis.values import transfers
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import UNKNOWN, Device, Kind, Tag
from perflint.ir.notation import last_name
from perflint.syntax.tree import FUNCTIONS, Tree


class Defaults:
    """The defaults of one file. `evaluate` gives the kinds of what is written there; `on_card` gives the
    function by which the program that the file is part of has tensors made on a graphics card, if any.
    """

    def __init__(
        self, tree: Tree, evaluate: Callable[[ast.expr, Frame | None], Kind], on_card: Callable[[], str]
    ) -> None:
        self.tree = tree
        self.evaluate = evaluate
        self.on_card = on_card
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
        """`torch.set_default_device(...)` anywhere in the file holds for all of it, or else the program's."""
        if self._calls is None:
            self._calls = list(self._setting())
        if self._calls:
            return self._default_of(self._calls[-1])
        setter = self.on_card()
        return Kind(Tag.DEVICE, device=Device.CUDA, qualified=setter) if setter else None

    def _setting(self) -> Iterator[ast.Call]:
        """The calls that set a default."""
        if any(name in self.tree.source.text for name in SETTERS):
            for top in self.tree.module.body:
                for node in self.tree.walk(top):
                    if isinstance(node, ast.Call) and last_name(node.func) in SETTERS:
                        yield node

    def _default_of(self, node: ast.Call) -> Kind:
        if last_name(node.func) == BY_TYPE:
            written = ast.unparse(node.args[0]) if node.args else ""
            device = Device.CUDA if "cuda" in written else Device.CPU
            return Kind(Tag.DEVICE, device=device, qualified=BY_TYPE)
        given = self.evaluate(node.args[0], None) if node.args else UNKNOWN
        return Kind(Tag.DEVICE, device=transfers.device_of(given))
