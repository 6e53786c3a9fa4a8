"""Which definitions reach a use.

Everything is asked on demand: a scope's bindings are collected when one of its names is first looked up. Branches
are joined, mutually exclusive arms excluded, loops may run any number of times, and a definition hides the ones
that come before it on every path. Knows Python only: nothing of PyTorch, nothing of other files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from perflint.source.bindings import Binding, Definition, ScopeBindings, ScopeLike, collect, key_of, prefixes
from perflint.source.tree import LoopNode, Tree
from perflint.source.walk import children, walk

#: Whether a file may hold a `global` statement at all; docstrings like the word.
_GLOBAL = re.compile(r"^\s*global\s+\w", re.MULTILINE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_FOR = (ast.For, ast.AsyncFor)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_TRIES: tuple[type[ast.AST], ...] = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else (ast.Try,)


@dataclass(slots=True)
class _Query:
    """One search: the keys that count, and the statements that hold a definition of one of them."""

    keys: frozenset[str]
    scope: ScopeBindings
    holders: set[int]
    found: dict[int, Definition] = field(default_factory=dict)

    def direct(self, node: ast.AST) -> list[Definition]:
        return [item for item in self.scope.direct.get(id(node), ()) if item.name in self.keys]

    def add(self, definitions: Iterable[Definition]) -> None:
        for item in definitions:
            self.found[id(item)] = item


_Found = tuple[list[Definition], bool]
_Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Reaching:
    """Definitions of one file's names. The tree must be linked where it is asked about."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._walrus = ":=" in tree.source.text
        self._scopes: dict[int, ScopeBindings] = {}
        self._known: dict[int, tuple[Definition, ...]] = {}
        self._jumps: dict[int, list[ast.stmt]] = {}
        self._generators: dict[tuple[int, str], Definition | None] = {}

    def definitions(self, use: ast.Name) -> tuple[Definition, ...]:
        """The definitions that may give the name its value here; empty for builtins and names of star imports."""
        known = self._known.get(id(use))
        if known is None:
            if self.tree.parent(use) is None:
                self._link_around(use)
            known = self._known[id(use)] = self._definitions(use)
        return known

    def _link_around(self, use: ast.Name) -> None:
        """A name met on the way through a whole module may stand in a statement that nobody has looked at yet."""
        for top in self.tree.module.body:
            decorators = getattr(top, "decorator_list", ())
            first = min([top.lineno, *(item.lineno for item in decorators)])
            if first <= use.lineno <= (top.end_lineno or top.lineno):
                self.tree.link(top)

    def definition_at(self, target: ast.Name) -> Definition | None:
        """The definition that a bound name (a target, not a use) stands for."""
        scope = self.bindings(self._scope_node(target))
        for item in scope.by_key.get(target.id, ()):
            if item.target is target:
                return item
        child: ast.AST = target
        for outer in self.tree.ancestors(target):
            if isinstance(outer, ast.comprehension) and child is outer.target:
                return self._in_generator(outer, target.id)
            child = outer
        return None

    def definitions_of(self, use: ast.expr) -> tuple[tuple[Definition, ...], bool]:
        """The stores that may give a path (`self.h`, `batch["x"]`) its value here, in the same function, and whether
        it may also have the value it had before the function or before its base was last bound.
        """
        key = key_of(use)
        root = use
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if key is None or not isinstance(root, ast.Name):
            return (), True
        scope = self._scope_binding(root, any_scope=True)
        wild = _wildcards(key)
        if scope is None or not any(name in scope.by_key for name in (key, *wild)):
            return (), True
        query = self._query(scope, (key, *prefixes(key), *wild))
        through = self._from_use(root, query)
        stores = tuple(item for item in query.found.values() if item.name == key or item.name in wild)
        return stores, through or len(stores) < len(query.found)

    def item_stores(self, use: ast.Name) -> tuple[tuple[Definition, ...], bool]:
        """The stores to `use[...]` under an index that is not constant, and whether the value may also be as it was."""
        scope = self._scope_binding(use, any_scope=True)
        key = f"{use.id}[*]"
        if scope is None or key not in scope.by_key:
            return (), True
        query = self._query(scope, (key, use.id))
        through = self._from_use(use, query)
        stores = tuple(item for item in query.found.values() if item.name == key)
        return stores, through or len(stores) < len(query.found)

    def definitions_before(self, key: str, statement: ast.stmt) -> tuple[tuple[Definition, ...], bool]:
        """The definitions of a key that reach the start of `statement`, and whether none of them may have run."""
        scope = self.bindings(self._scope_node(statement))
        query = self._query(scope, (key,))
        through = self._before(statement, query, None)
        if through and key in scope.params:
            query.add([scope.params[key]])
            through = False
        return tuple(query.found.values()), through

    def bindings(self, node: ScopeLike) -> ScopeBindings:
        known = self._scopes.get(id(node))
        if known is None:
            known = self._scopes[id(node)] = collect(node, walrus=self._walrus)
            if isinstance(node, ast.Module) and "global " in self.tree.source.text:
                self._globals(known)
        return known

    def module_definitions(self, name: str) -> tuple[Definition, ...]:
        """Every definition of a module-level name, wherever it stands."""
        scope = self.bindings(self.tree.module)
        found = scope.all_of(name)
        for item in found:
            self._link(scope, item)
        return found

    def _globals(self, module: ScopeBindings) -> None:
        """Functions that declare `global x` define x of the module."""
        if not _GLOBAL.search(self.tree.source.text):
            return
        for top in module.node.body if isinstance(module.node, ast.Module) else ():
            for node in walk(top):
                if isinstance(node, _FUNCTIONS) and any(isinstance(part, ast.Global) for part in node.body):
                    inner = self.bindings(node)
                    for name in inner.outer:
                        for item in inner.by_key.get(name, ()):
                            module.by_key[name].append(item)
                            module.top[id(item)] = top

    def _definitions(self, use: ast.Name) -> tuple[Definition, ...]:
        found = self._comprehension_target(use)
        if found is not None:
            return (found,)
        scope = self._scope_binding(use)
        if scope is None:
            return ()
        if scope.node is not self._scope_node(use):
            # Seen from a nested function, or a module name from a function: it may run at any time.
            definitions = scope.all_of(use.id)
        elif isinstance(scope.node, ast.Lambda):
            definitions = (scope.params[use.id],)
        else:
            query = self._query(scope, (use.id,))
            if self._from_use(use, query) and use.id in scope.params:
                query.add([scope.params[use.id]])
            definitions = tuple(query.found.values())
        if isinstance(scope.node, ast.Module):
            for item in definitions:
                self._link(scope, item)
        return definitions

    def _link(self, scope: ScopeBindings, definition: Definition) -> None:
        top = scope.top.get(id(definition))
        if top is not None:
            self.tree.link(top)

    def _scope_node(self, node: ast.AST) -> ScopeLike:
        """The innermost scope whose names a node sees directly, a class body included."""
        child = node
        for outer in self.tree.ancestors(node):
            if isinstance(outer, _SCOPES) and _inside(outer, child):
                return outer
            if isinstance(outer, ast.ClassDef) and child in outer.body:
                return outer
            child = outer
        return self.tree.module

    def _scope_binding(self, use: ast.Name, *, any_scope: bool = False) -> ScopeBindings | None:
        """The scope that binds a name, looked for as Python does. With `any_scope`, the one a use stands in."""
        node: ast.AST = use
        innermost = True
        child: ast.AST = use
        for outer in self.tree.ancestors(node):
            scoped = isinstance(outer, _SCOPES) and _inside(outer, child)
            if scoped or (innermost and isinstance(outer, ast.ClassDef) and child in outer.body):
                scope = self.bindings(outer)  # type: ignore[arg-type]
                if any_scope and not isinstance(outer, ast.Lambda):
                    return scope
                if use.id in scope.outer:
                    if any(isinstance(part, ast.Global) and use.id in part.names for part in walk(outer)):
                        break
                elif scope.binds(use.id):
                    return scope
                innermost = False
            child = outer
        module = self.bindings(self.tree.module)
        return module if any_scope or module.binds(use.id) else None

    def _comprehension_target(self, use: ast.Name) -> Definition | None:
        child: ast.AST = use
        for outer in self.tree.ancestors(use):
            if isinstance(outer, _COMPREHENSIONS):
                found = self._target_of(outer, child, use)
                if found is not None:
                    return found
            elif isinstance(outer, ast.comprehension):
                # The step from a generator to its comprehension is judged with the generator as the child.
                if child is outer.iter:
                    child = outer
                    comp = self.tree.parent(outer)
                    if isinstance(comp, _COMPREHENSIONS):
                        found = self._bound_by(comp.generators[: comp.generators.index(outer)], use.id)
                        if found is not None:
                            return found
                    continue
            elif isinstance(outer, ast.stmt):
                return None
            elif isinstance(outer, ast.Lambda) and use.id in self.bindings(outer).params:
                return None
            child = outer
        return None

    def _target_of(self, comp: _Comprehension, child: ast.AST, use: ast.Name) -> Definition | None:
        """The generator of `comp` that binds `use`, when `use` stands in `child` of it."""
        generators = comp.generators
        if isinstance(child, ast.comprehension):
            generators = generators[: generators.index(child) + 1]
        return self._bound_by(generators, use.id)

    def _bound_by(self, generators: list[ast.comprehension], name: str) -> Definition | None:
        for generator in reversed(generators):
            found = self._in_generator(generator, name)
            if found is not None:
                return found
        return None

    def _in_generator(self, generator: ast.comprehension, name: str) -> Definition | None:
        key = (id(generator), name)
        if key not in self._generators:
            self._generators[key] = None
            for path, target in _names(generator.target, ()):
                if target.id == name:
                    made = Definition(name, Binding.COMPREHENSION, generator, generator.iter, path, target)
                    self._generators[key] = made
        return self._generators[key]

    def _query(self, scope: ScopeBindings, keys: Iterable[str]) -> _Query:
        wanted = frozenset(keys)
        holders: set[int] = set()
        for key in wanted:
            holders |= scope.holders.get(key, set())
        return _Query(wanted, scope, holders)

    def _from_use(self, use: ast.expr, query: _Query) -> bool:
        """Collect what reaches the statement of `use`; whether the scope's start is reached as well."""
        statement = self._statement_in(use, query.scope.node)
        if statement is None:
            return True
        if id(statement) in query.holders:
            here = (use.lineno, use.col_offset)
            for item in query.direct(statement):
                early = item.binding is Binding.WALRUS or (
                    item.binding is Binding.WITH and not isinstance(self.tree.parent(use), ast.withitem)
                )
                if early and item.target is not None and (item.target.lineno, item.target.col_offset) < here:
                    query.add([item])
                    return False
        if isinstance(statement, ast.While):
            through = self._loop_start(statement, query, header=True)
            return through and self._before(statement, query, None)
        return self._before(statement, query, None)

    def _statement_in(self, use: ast.AST, scope: ScopeLike) -> ast.stmt | None:
        """The statement of `scope` itself that holds `use`: a nested function counts as one statement."""
        found: ast.stmt | None = None
        for node in (use, *self.tree.ancestors(use)):
            if node is scope:
                return found
            if isinstance(node, ast.stmt) and (found is None or isinstance(node, (*_FUNCTIONS, ast.ClassDef))):
                found = node
        return found

    def _before(self, statement: ast.AST, query: _Query, limit: ast.AST | None) -> bool:
        """Collect definitions on the way back from `statement` to the start of its scope, or of the body of `limit`.
        Whether a path without any gets there.
        """
        child: ast.AST = statement
        while True:
            parent = self.tree.parent(child)
            if parent is None:
                return True
            block = _block_of(parent, child)
            for earlier in reversed(block[: block.index(child)] if block else []):  # type: ignore[arg-type]
                found, through = self._scan(earlier, query)
                query.add(found)
                if not through:
                    return False
            if parent is limit or parent is query.scope.node:
                return True
            if not self._enter(parent, child, query):
                return False
            child = parent

    def _enter(self, parent: ast.AST, child: ast.AST, query: _Query) -> bool:
        """Collect what may happen between the start of `parent` and the start of the block that holds `child`."""
        if isinstance(parent, _LOOPS):
            if child in parent.body:
                return self._loop_start(parent, query, header=False)
            if id(parent) in query.holders:
                query.add(self._loop_end(parent, query)[0])
            return True
        if isinstance(parent, ast.ExceptHandler):
            query.add(query.direct(parent))
            return not query.direct(parent)
        if isinstance(parent, _TRIES) and id(parent) in query.holders:
            if isinstance(child, ast.ExceptHandler):
                query.add(self._every(parent.body, query))  # type: ignore[attr-defined]
            elif child in parent.orelse:  # type: ignore[attr-defined]
                found, through = self._block(parent.body, query)  # type: ignore[attr-defined]
                query.add(found)
                return through
            elif child in parent.finalbody:  # type: ignore[attr-defined]
                query.add(self._every([parent], query))
            return True
        own = query.direct(parent)
        if isinstance(parent, ast.match_case):
            own = [item for item in self._match_targets(parent, query) if item.node is parent]
        query.add(own)
        return not own

    def _match_targets(self, case: ast.match_case, query: _Query) -> list[Definition]:
        match = self.tree.parent(case)
        return query.direct(match) if match is not None else []

    def _loop_start(self, loop: LoopNode, query: _Query, *, header: bool) -> bool:
        """Collect what reaches the top of a loop's body on a later turn; whether the first turn's past matters."""
        if id(loop) not in query.holders:
            return True
        own = query.direct(loop)
        if own and not header:
            query.add(own)
            return False
        found, _ = self._block(loop.body, query)
        query.add(found)
        for jump in self._jumps_of(loop):
            if isinstance(jump, ast.Continue):
                self._jump(jump, loop, query)
        return True

    def _jump(self, jump: ast.stmt, loop: LoopNode, query: _Query) -> bool:
        inner = _Query(query.keys, query.scope, query.holders)
        through = self._before(jump, inner, loop)
        query.add(inner.found.values())
        return through

    def _scan(self, node: ast.stmt, query: _Query) -> _Found:
        """The definitions in a statement that may hold after it, and whether earlier ones may still hold too."""
        if id(node) not in query.holders:
            return [], True
        own = query.direct(node)
        if isinstance(node, ast.If):
            arms = [self._arm(node.body, query), self._arm(node.orelse, query)]
            found = [item for arm in arms if arm for item in arm[0]]
            through = any(arm[1] for arm in arms if arm)
            return (found + own, False) if through and own else (found, through)
        if isinstance(node, _LOOPS):
            return self._loop_end(node, query)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            found, through = self._block(node.body, query)
            return (found + own, False) if through and own else (found, through)
        if isinstance(node, _TRIES):
            return self._try_end(node, query)
        if isinstance(node, ast.Match):
            arms = [self._arm(case.body, query) for case in node.cases]
            found = own + [item for arm in arms if arm for item in arm[0]]
            return found, True
        return own, not own

    def _arm(self, body: list[ast.stmt], query: _Query) -> _Found | None:
        return self._block(body, query) if _falls_through(body) else None

    def _block(self, body: list[ast.stmt], query: _Query) -> _Found:
        found: list[Definition] = []
        if body and not _falls_through(body):
            return found, False
        for statement in reversed(body):
            inner, through = self._scan(statement, query)
            found += inner
            if not through:
                return found, False
        return found, True

    def _loop_end(self, loop: LoopNode, query: _Query) -> _Found:
        own = query.direct(loop)
        found, _ = self._block(loop.body, query)
        inner = _Query(query.keys, query.scope, query.holders)
        endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
        through = not endless
        for jump in self._jumps_of(loop):
            passed = self._jump(jump, loop, inner)
            through = through or (passed and isinstance(jump, ast.Break))
        found += [*inner.found.values(), *own]
        # `for k in batch: batch[k] = ...` gives every item a new value, however many there are.
        if isinstance(loop, _FOR) and any(item.name.endswith("[*]") for item in found):
            source = _iterated(loop.iter)
            if source is not None and f"{source}[*]" in query.keys and not self._jumps_of(loop):
                through = not all(_unconditional(item, loop) for item in found if item.name == f"{source}[*]")
        if loop.orelse:
            extra, _ = self._block(loop.orelse, query)
            found += extra
        return found, through

    def _jumps_of(self, loop: LoopNode) -> list[ast.stmt]:
        """`break` and `continue` statements that belong to this loop."""
        known = self._jumps.get(id(loop))
        if known is None:
            known = []
            stack: list[ast.AST] = list(loop.body)
            while stack:
                node = stack.pop()
                if isinstance(node, (ast.Break, ast.Continue)):
                    known.append(node)
                elif isinstance(node, _LOOPS):
                    stack.extend(node.orelse)
                elif isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.expr)):
                    continue
                else:
                    stack.extend(child for child in children(node) if not isinstance(child, ast.expr))
            self._jumps[id(loop)] = known
        return known

    def _try_end(self, node: ast.AST, query: _Query) -> _Found:
        body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
        found: list[Definition] = []
        through = False
        main = self._block([*body, *node.orelse], query) if _falls_through([*body, *node.orelse]) else None  # type: ignore[attr-defined]
        if main is not None:
            found += main[0]
            through = main[1]
        for handler in node.handlers:  # type: ignore[attr-defined]
            arm = self._arm(handler.body, query)
            if arm is not None:
                found += arm[0]
                if arm[1]:
                    # The failing statement may stand before or after a definition of the body.
                    found += self._every(body, query)
                    through = True
        last, passed = self._block(node.finalbody, query)  # type: ignore[attr-defined]
        return (found + last, through) if passed else (last, False)

    def _every(self, body: Iterable[ast.AST], query: _Query) -> list[Definition]:
        """All definitions in some statements, in whatever order they run."""
        found: list[Definition] = []
        stack = list(body)
        while stack:
            node = stack.pop()
            if id(node) in query.holders:
                found += query.direct(node)
                stack.extend(child for child in children(node) if not isinstance(child, ast.expr))
        return found


def _wildcards(key: str) -> tuple[str, ...]:
    """`batch['x']` may be given its value by a store to `batch[*]`."""
    base, bracket, _ = key.rpartition("[")
    return (f"{base}[*]",) if bracket and key.endswith("]") and not key.endswith("[*]") else ()


def _inside(scope: ast.AST, child: ast.AST) -> bool:
    """Whether `child`, a direct child of a function, is evaluated in its scope: defaults and decorators are not."""
    if isinstance(scope, ast.Lambda):
        return child is scope.body
    return child in scope.body  # type: ignore[attr-defined]


def _names(target: ast.expr, path: tuple[int | str, ...]) -> Iterator[tuple[tuple[int | str, ...], ast.Name]]:
    if isinstance(target, ast.Name):
        yield path, target
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = False
        for index, part in enumerate(target.elts):
            if isinstance(part, ast.Starred):
                starred = True
                yield from _names(part.value, (*path, "*"))
            else:
                yield from _names(part, (*path, index - len(target.elts) if starred else index))


def _block_of(parent: ast.AST, child: ast.AST) -> list[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            return block
    return []


def _falls_through(body: list[ast.stmt]) -> bool:
    """Whether control can reach the end of a block."""
    if not body:
        return True
    last = body[-1]
    if isinstance(last, _JUMPS):
        return False
    if isinstance(last, ast.If):
        return _falls_through(last.body) or not last.orelse or _falls_through(last.orelse)
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return _falls_through(last.body)
    return True


def _iterated(node: ast.expr) -> str | None:
    """The key of what a loop runs over: `batch` in `for k in batch`, `batch.items()`, `range(len(batch))`."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items"):
            return key_of(node.func.value)
        if isinstance(node.func, ast.Name) and node.args:
            return _iterated(node.args[0]) if node.func.id in ("list", "range", "len", "enumerate", "tuple") else None
        return None
    return key_of(node)


def _unconditional(definition: Definition, loop: LoopNode) -> bool:
    """Whether a store runs on every turn, or is left out only for what is no tensor."""
    node = definition.node
    if node in loop.body:
        return True
    for statement in loop.body:
        if isinstance(statement, ast.If) and node in statement.body and _asks_for_tensors(statement.test):
            return True
    return False


def _asks_for_tensors(test: ast.expr) -> bool:
    if not isinstance(test, ast.Call):
        return False
    name = test.func.attr if isinstance(test.func, ast.Attribute) else getattr(test.func, "id", "")
    return name in ("isinstance", "is_tensor", "hasattr", "torch_is_tensor")
