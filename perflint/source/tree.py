"""Syntax trees with parents: what encloses a node, and the exact text and span of it.

Pure: no I/O, no knowledge of PyTorch or of rules. Trees are the standard library's `ast`, because it is an order of
magnitude cheaper than a lossless parser; libcst reads only what is rewritten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from perflint.finding import Span
from perflint.source.file import SourceFile
from perflint.source.walk import APART, parents_below, parents_outside, walk, walk_own

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
ScopeNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
LoopNode: TypeAlias = ast.For | ast.AsyncFor | ast.While

#: The same, to ask nodes for.
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: All classes of statements. That a node is of none of many classes is told faster by a set than by `isinstance`.
STATEMENTS = frozenset(kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.stmt))


class Tree:
    """The syntax tree of one file with parent links, made once per file that is inspected.

    Parents are kept beside the nodes: a link in each node would make every tree a knot that only the garbage collector
    can free, and collecting is what a run puts off.
    """

    def __init__(self, source: SourceFile, module: ast.Module) -> None:
        self.source = source
        self.module = module
        self._parents: dict[int, ast.AST] = {}
        self._nodes: dict[int, list[ast.AST]] = {}
        self._unlinked: dict[int, FunctionNode] = {}
        self._names: dict[int, dict[str, list[ast.Name]]] = {}
        self._loops: dict[int, tuple[LoopNode, ...]] = {}

    def link(self, statement: ast.stmt) -> list[ast.AST]:
        """Give every node below a top-level `statement` its parent; all of them, outer before inner."""
        known = self._nodes.get(id(statement))
        if known is not None:
            return known
        self._parents[id(statement)] = self.module
        nodes = parents_below(statement, self._parents)
        self._nodes[id(statement)] = nodes
        if self._unlinked:
            self._unlinked = {key: item for key, item in self._unlinked.items() if id(item.args) not in self._parents}
        return nodes

    def link_outside(self, statement: ast.stmt) -> tuple[list[ast.AST], list[FunctionNode]]:
        """Give parents to what stands in a top-level statement outside of functions. All of it, and the functions,
        which are linked when `link_function` says so, or when somebody asks what is around a node in them.
        """
        self._parents[id(statement)] = self.module
        nodes, functions = parents_outside(statement, self._parents)
        self._unlinked.update((id(function), function) for function in functions if id(function) not in self._nodes)
        return nodes, functions

    def link_lazily(self, statement: ast.stmt) -> None:
        """As `link_outside`, for who only wants to ask about something in a top-level statement."""
        if id(statement) not in self._parents:
            self.link_outside(statement)

    def link_function(self, function: FunctionNode) -> list[ast.AST]:
        """As `link`, of a function that `link_outside` gave."""
        known = self._nodes.get(id(function))
        if known is None:
            self._unlinked.pop(id(function), None)
            known = self._nodes[id(function)] = parents_below(function, self._parents)
        return known

    def _link_around(self, node: ast.AST) -> None:
        """Link the function that `node` stands in, any that it may stand in where it has no place of its own."""
        line = getattr(node, "lineno", None)
        for function in list(self._unlinked.values()):
            if line is None or _first_line(function) <= line <= (function.end_lineno or function.lineno):
                self.link_function(function)

    def walk(self, node: ast.AST) -> Sequence[ast.AST]:
        """`node` and all below it, without contexts and operators; outer before inner, in the order of the source."""
        known = self._nodes.get(id(node))
        return known if known is not None else walk(node)

    def body(self, function: FunctionNode) -> list[ast.AST]:
        """All that stands in the body of a function and runs when it does: nested functions, lambdas and classes are
        left out, unless they are statements of that body.
        """
        known = self._nodes.get(id(function))
        if known is not None:
            start, end = self.extent(function)
            found = known[start:end]
            if not any(part.__class__ in APART for part in found):
                return found
        return [part for item in function.body for part in walk_own(item)]

    def extent(self, function: FunctionNode) -> tuple[int, int]:
        """Where the body begins and ends in what `link_function` gave: around it stand parameters with their defaults,
        and decorators, which are evaluated once, where the function is made.
        """
        known = self._nodes[id(function)]
        behind = [*function.decorator_list, function.returns, *getattr(function, "type_params", ())]
        after = next((item for item in behind if item is not None), None)
        end = known.index(after) if after is not None else len(known)
        return known.index(function.body[0]), end

    def names(self, region: ast.AST) -> dict[str, list[ast.Name]]:
        """The plain names in a region, a function or the module, in the order of the source."""
        found = self._names.get(id(region))
        if found is None:
            found = self._names[id(region)] = {}
            for part in self.walk(region):
                if part.__class__ is ast.Name:
                    found.setdefault(part.id, []).append(part)
        return found

    def link_all(self) -> None:
        for statement in self.module.body:
            self.link(statement)

    def parent(self, node: ast.AST) -> ast.AST | None:
        found = self._parents.get(id(node))
        if found is None and self._unlinked and node is not self.module:
            self._link_around(node)
            found = self._parents.get(id(node))
        return found

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent of `node` up to the module."""
        current = self.parent(node)
        while current is not None:
            yield current
            current = self.parent(current)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that is or holds `node`."""
        current: ast.AST | None = node
        while current is not None and type(current) not in STATEMENTS:
            current = self.parent(current)
        if current is None:
            raise LookupError("the node belongs to no statement of this tree")
        return current  # type: ignore[return-value]

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost `def` around `node` (lambdas belong to the function they stand in)."""
        for outer in self.ancestors(node):
            if isinstance(outer, FUNCTIONS):
                return outer
        return None

    def scope_of(self, node: ast.AST) -> ScopeNode | ast.Module:
        for outer in self.ancestors(node):
            if isinstance(outer, SCOPES):
                return outer
        return self.module

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose body holds `node`, looked for through functions: `self` in a nested function is its."""
        for outer in self.ancestors(node):
            if isinstance(outer, ast.ClassDef):
                return outer
        return None

    def loops_around(self, node: ast.AST) -> list[LoopNode]:
        """Loops of the same function whose body (not header, not `else`) holds `node`, innermost first."""
        found: list[LoopNode] = []
        child: ast.AST = node
        while type(child) not in STATEMENTS:
            outer = self.parent(child)
            if outer is None or isinstance(outer, SCOPES):
                return found
            # A `while` test is evaluated every turn; a `for` iterable only once.
            if isinstance(outer, ast.While) and child is outer.test:
                found.append(outer)
            child = outer
        return [*found, *self._loops_around(child)]

    def _loops_around(self, statement: ast.AST) -> tuple[LoopNode, ...]:
        # A chain of `elif` may be hundreds long: gone up in a loop, not by recursion.
        passed: list[tuple[ast.AST, ast.AST]] = []
        known = self._loops.get(id(statement))
        while known is None:
            outer = self.parent(statement)
            if outer is None:
                known = ()
            else:
                passed.append((statement, outer))
                known = () if isinstance(outer, SCOPES) else self._loops.get(id(outer))
                statement = outer
        for inner, outer in reversed(passed):
            if isinstance(outer, LOOPS) and inner in outer.body:
                known = (outer, *known)
            self._loops[id(inner)] = known
        return known

    def qualname(self, node: FunctionNode | ast.ClassDef) -> str:
        """`Class.method`, `function.<locals>.inner`: Python's own `__qualname__`."""
        parts = [node.name]
        for outer in self.ancestors(node):
            if isinstance(outer, FUNCTIONS):
                parts += ["<locals>", outer.name]
            elif isinstance(outer, ast.ClassDef):
                parts.append(outer.name)
        return ".".join(reversed(parts))

    def span(self, node: ast.AST) -> Span:
        return self.source.span_of(node)

    def text(self, node: ast.AST) -> str:
        return self.source.text_of(node)


def _first_line(function: FunctionNode) -> int:
    return min([function.lineno, *(item.lineno for item in function.decorator_list)])
