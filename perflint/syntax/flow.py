"""Definitions and uses of one file's names, and what a region of code changes. Knows Python only."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.syntax.bindings import Binding, Definition, ScopeLike, key_of
from perflint.syntax.reaching import Reaching
from perflint.syntax.tree import FUNCTIONS, Tree

__all__ = ["Binding", "Definition", "Flow", "key_of"]


#: Methods of the standard containers that change their receiver.
MUTATING_METHODS = frozenset(
    "append appendleft extend extendleft insert add update pop popleft popitem remove discard clear setdefault sort "
    "reverse write rotate intersection_update difference_update symmetric_difference_update __setitem__".split()
)


class Flow(Reaching):
    """Asked on demand. The tree must be linked where it is asked about."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._written: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
        self._uses: dict[tuple[int, str], list[ast.Name]] = {}
        #: By scope and name, the uses that each definition reaches.
        self._reached: dict[tuple[int, str], dict[int, list[ast.Name]]] = {}

    # Uses.

    def uses(self, scope: ScopeLike, name: str) -> list[ast.Name]:
        """Reads of a name in a scope and in the scopes inside it, in source order; `name += 1` reads it too."""
        found = self._uses.get((id(scope), name))
        if found is None:
            found = [
                use
                for use in self.tree.named(name, scope)
                if type(use.ctx) is ast.Load or type(self.tree.parent(use)) is ast.AugAssign
            ]
            found.sort(key=lambda use: (use.lineno, use.col_offset))
            self._uses[id(scope), name] = found
        return [*found]

    def uses_of(self, definition: Definition) -> list[ast.Name]:
        """The reads that may see this definition. `definition` binds a name, not a path."""
        node = definition.node
        # A parameter is written where its function's defaults are, and seen in the function alone.
        scope = self.tree.scope_of(node) if isinstance(node, ast.arg) else self._scope_node(node)
        reached = self._reached.get((id(scope), definition.name))
        if reached is None:
            # Of all definitions of the name at once: a name may have hundreds, and hundreds of uses.
            reached = self._reached[id(scope), definition.name] = {}
            for use in self.uses(scope, definition.name):
                for item in self.definitions(use):
                    reached.setdefault(id(item), []).append(use)
        return [*reached.get(id(definition), ())]

    def uses_after(self, node: ast.AST, name: str) -> list[ast.Name]:
        """Loads of `name` in the same scope that may run after `node`: those that stand after it, and those of a
        loop around it, which come round again.
        """
        scope = self._scope_node(node)
        end = (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        loops = self.tree.loops_around(node)
        start = (loops[-1].lineno, loops[-1].col_offset) if loops else end
        stop = (loops[-1].end_lineno, loops[-1].end_col_offset) if loops else end
        inside = {id(part) for part in self.tree.walk(node)}
        found = []
        for use in self.uses(scope, name):
            place = (use.lineno, use.col_offset)
            if place >= end or (start <= place < stop and id(use) not in inside):
                found.append(use)
        return found

    # Regions.

    def names_written(self, region: ast.AST) -> frozenset[str]:
        """Names bound anywhere in a region (its own loop target included), and keys of paths stored to."""
        return self._writes(region)[0]

    def names_mutated(self, region: ast.AST) -> frozenset[str]:
        """Names whose object a region may change: items or attributes stored to, `+=`, mutating methods."""
        return self._writes(region)[1]

    def is_mutated(self, name: str, region: ast.AST) -> bool:
        return name in self.names_mutated(region)

    def is_invariant(self, node: ast.expr, loop: ast.AST, pure: Callable[[ast.Call], bool] | None = None) -> bool:
        """Whether an expression has the same value on every turn of `loop`: no name in it is bound or mutated there,
        and every call in it is `pure`. Attributes are taken to change only where the loop stores to them.
        """
        written, mutated = self._writes(loop)
        # Targets of the expression's own comprehensions.
        own = {
            part.id for part in self.tree.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        for part in self.tree.walk(node):
            if isinstance(part, ast.Name) and part.id not in own and (part.id in written or part.id in mutated):
                return False
            if isinstance(part, ast.Attribute):
                key = key_of(part)
                if key is None or key in written:
                    # Attributes of what is not a name are judged by their own base.
                    if key is not None:
                        return False
            elif isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return False
            elif isinstance(part, ast.Call) and (pure is None or not pure(part)):
                return False
        return True

    def _writes(self, region: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
        known = self._written.get(id(region))
        if known is not None:
            return known
        written: set[str] = set()
        mutated: set[str] = set()
        for node in self.tree.walk(region):
            if isinstance(node, ast.Name):
                if not isinstance(node.ctx, ast.Load):
                    written.add(node.id)
            elif isinstance(node, (ast.Attribute, ast.Subscript)):
                if not isinstance(node.ctx, ast.Load):
                    _store(node, written, mutated)
            elif isinstance(node, ast.AugAssign):
                root = _root(node.target)
                if root is not None:
                    mutated.add(root)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                root = _root(node.func.value)
                if root is not None and _mutates(node.func.attr):
                    mutated.add(root)
            elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                written.add(node.name)
            elif isinstance(node, ast.alias):
                written.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.ExceptHandler) and node.name:
                written.add(node.name)
        self._written[id(region)] = (frozenset(written), frozenset(mutated))
        return self._written[id(region)]


def _store(node: ast.Attribute | ast.Subscript, written: set[str], mutated: set[str]) -> None:
    key = key_of(node)
    if key is not None:
        written.add(key)
    root = _root(node)
    # `self.x = ...` changes `self`, but every method stores to it: only the path counts.
    if root is not None and not (root in ("self", "cls") and isinstance(node, ast.Attribute)):
        mutated.add(root)


def _mutates(method: str) -> bool:
    return method in MUTATING_METHODS or (method.endswith("_") and not method.endswith("__"))


def _root(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
