"""Where the attributes of this file's classes are set: stores, those that last, and buffers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.values.evaluating import Evaluating
from perflint.syntax.bindings import Binding, Definition
from perflint.syntax.tree import FUNCTIONS, FunctionNode
from perflint.syntax.walk import block_with
from perflint.torch_model import modules


class ClassStores:
    """What the bodies and methods of classes store under a name, remembered for each class and name."""

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference
        self._stores: dict[tuple[int, str], list[Definition]] = {}
        self._lasting: dict[tuple[int, str], list[Definition]] = {}
        self._methods: dict[int, list[tuple[FunctionNode, str]]] = {}
        self._buffers: dict[int, dict[str, ast.expr | None]] = {}

    def of(self, node: ast.ClassDef, name: str) -> list[Definition]:
        """Definitions of an attribute: `self.x = ...` in methods, `x = ...` in the body of the class."""
        known = self._stores.get((id(node), name))
        if known is not None:
            return known
        flow = self._inference.flow
        own = flow.bindings(node).by_key.get(name, ())
        found = self._stores[id(node), name] = [item for item in own if item.binding is Binding.ASSIGN]
        for method, text in self.methods_of(node):
            # Looking for a word in a text is a hundred times as quick as collecting what the method binds.
            if name in text:
                keys = flow.bindings(method).by_key
                found += keys.get(f"{method.args.args[0].arg}.{name}", ())
                if method.name in modules.MODULE_MOVERS:
                    # `moved = super().to(*args); moved.x = moved.x.to(*args)`
                    found += [
                        item for key in keys if key.endswith(f".{name}") for item in keys[key] if item not in found
                    ]
        return found

    def lasting(self, node: ast.ClassDef, name: str) -> list[Definition]:
        """Those that no later one of the same method replaces: `self.drop = p`, and then `self.drop = Dropout(p)`."""
        known = self._lasting.get((id(node), name))
        if known is None:
            known = self._lasting[id(node), name] = self._not_replaced(self.of(node, name))
        return known

    def _not_replaced(self, stores: list[Definition]) -> list[Definition]:
        if len(stores) < 2:
            return stores
        plain = {id(item.node) for item in stores if item.binding is Binding.ASSIGN}
        around = {id(outer) for item in stores for outer in self._around(item.node)}
        return [item for item in stores if not self._is_replaced(item.node, plain, around)]

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, in its own method."""
        for outer in self._inference.tree.ancestors(node):
            yield outer
            if isinstance(outer, (*FUNCTIONS, ast.ClassDef)):
                return

    def _is_replaced(self, node: ast.AST, stores: set[int], around: set[int]) -> bool:
        """Whether one of the stores always runs after a statement, further on in a block around it."""
        inner = node
        for outer in self._around(node):
            block = block_with(outer, inner) or []
            later = block[block.index(inner) + 1 :] if inner in block else []
            if any(_always_stores(item, stores, around) for item in later):
                return True
            inner = outer
        return False

    def methods_of(self, node: ast.ClassDef) -> list[tuple[FunctionNode, str]]:
        """The methods of a class that take their object, with their texts."""
        known = self._methods.get(id(node))
        if known is None:
            lines = self._inference.tree.source.lines
            known = self._methods[id(node)] = [
                (method, "\n".join(lines[method.lineno - 1 : method.end_lineno]))
                for method in node.body
                if isinstance(method, FUNCTIONS) and method.args.args
            ]
        return known

    def buffers_of(self, node: ast.ClassDef) -> dict[str, ast.expr | None]:
        """Names given to `self.register_buffer` and `register_parameter`, with their first values."""
        known = self._buffers.get(id(node))
        if known is not None:
            return known
        known = self._buffers[id(node)] = {}
        tree, registering = self._inference.tree, ("register_buffer", "register_parameter")
        if not any(name in tree.source.text for name in registering):
            return known
        for part in (part for statement in tree.naming(registering, node) for part in tree.own(statement)):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.args:
                if part.func.attr in registering:
                    first = part.args[0]
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        known[first.value] = part.args[1] if len(part.args) > 1 else None
        return known


def _always_stores(statement: ast.stmt, stores: set[int], around: set[int]) -> bool:
    """Whether a statement is one of the stores, or each way through it takes one or raises."""
    if id(statement) in stores:
        return True
    if id(statement) not in around:
        return False
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return any(_always_stores(item, stores, around) for item in statement.body)
    return isinstance(statement, ast.If) and all(
        any(_always_stores(item, stores, around) or isinstance(item, ast.Raise) for item in arm)
        for arm in (statement.body, statement.orelse)
    )
