"""Which definitions reach a use.

Everything is asked on demand: a scope's bindings are collected when one of its names is first looked up, and the way
back from a use is gone (`backwards`) when it is asked about. Knows Python only: nothing of PyTorch, nothing of other
files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeAlias

from perflint.syntax.backwards import Backwards, Query, is_left_out, keys_left_out
from perflint.syntax.bindings import Binding, Definition, ScopeBindings, ScopeLike, collect, key_of, prefixes
from perflint.syntax.tree import FUNCTIONS, Tree
from perflint.syntax.walk import STATEMENTS, walk
from perflint.system.patterns import pattern

#: Whether a file may hold a `global` statement at all; docstrings like the word.
_GLOBAL = pattern(r"^\s*global\s+\w", re.MULTILINE)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
#: Expressions that bind names, and parts of such.
_BINDING = frozenset({*_COMPREHENSIONS, ast.comprehension, ast.Lambda})
_Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Reaching:
    """Definitions of one file's names. The tree must be linked where it is asked about."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._back = Backwards(tree)
        self._walrus = ":=" in tree.source.text
        self._scopes: dict[int, ScopeBindings] = {}
        self._known: dict[int, tuple[Definition, ...]] = {}
        self._stores: dict[int, tuple[tuple[Definition, ...], bool]] = {}
        self._generators: dict[tuple[int, str], Definition | None] = {}
        #: By statement, the scopes around it whose names it sees, innermost first.
        self._around: dict[int, tuple[ScopeLike, ...]] = {}
        #: By innermost scope and name: its definitions, where they are the same for all uses, else the scope that binds
        #: it, which has to be asked what reaches each of them.
        self._names: dict[int, dict[str, tuple[Definition, ...] | ScopeBindings]] = {}

    def definitions(self, use: ast.Name) -> tuple[Definition, ...]:
        """The definitions that may give the name its value here; empty for builtins and names of star imports."""
        key = id(use)
        if key in self._known:
            return self._known[key]
        found = self._known[key] = self._definitions(use)
        return found

    def definition_at(self, target: ast.Name) -> Definition | None:
        """The definition that a bound name (a target, not a use) stands for."""
        found = self.bindings(self._scope_node(target)).binding_of(target)
        if found is not None:
            return found
        child: ast.AST = target
        for outer in self.tree.ancestors(target):
            if isinstance(outer, ast.comprehension) and child is outer.target:
                return self._in_generator(outer, target.id)
            if type(outer) in STATEMENTS:
                return None
            child = outer
        return None

    def definitions_of(self, use: ast.expr) -> tuple[tuple[Definition, ...], bool]:
        """The stores that may give a path (`self.h`, `batch["x"]`) its value here, in the same function, and whether
        it may also have the value it had before the function or before its base was last bound.
        """
        key = id(use)
        if key in self._stores:
            return self._stores[key]
        found = self._stores[key] = self._definitions_of(use)
        return found

    def _definitions_of(self, use: ast.expr) -> tuple[tuple[Definition, ...], bool]:
        key = key_of(use)
        root = use
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if key is None or not isinstance(root, ast.Name):
            return (), True
        scope = self._stands_in(root)
        wild = _wildcards(key)
        if key not in scope.by_key and (not wild or wild[0] not in scope.by_key):
            return (), True
        query = Query.of(scope, (key, *prefixes(key), *wild))
        through = self._from_use(root, query)
        stores = tuple(item for item in query.found.values() if item.name == key or item.name in wild)
        if wild and isinstance(use, ast.Subscript) and isinstance(use.slice, ast.Constant):
            index = use.slice.value
            stores = tuple(
                item for item in stores if item.name == key or not is_left_out(index, self.keys_left_out(item))
            )
        return stores, through or len(stores) < len(query.found)

    def keys_left_out(self, store: Definition) -> tuple[str, ...]:
        """The keys of what stays as it was: `"meta"` of `if key != "meta": batch[key] = ...`."""
        return keys_left_out(store, self.tree.parent(store.node))

    def item_stores(self, use: ast.Name) -> tuple[tuple[Definition, ...], bool]:
        """The stores to `use[...]` under an index that is not constant, and whether the value may also be as it was."""
        scope = self._stands_in(use)
        key = f"{use.id}[*]"
        if key not in scope.by_key:
            return (), True
        query = Query.of(scope, (key, use.id))
        through = self._from_use(use, query)
        stores = tuple(item for item in query.found.values() if item.name == key)
        return stores, through or len(stores) < len(query.found)

    def key_stores(self, use: ast.Name) -> dict[int | str, tuple[Definition, ...]]:
        """The stores to `use[...]` under constant indices that the value may have had since it was bound."""
        scope = self._stands_in(use)
        found: dict[int | str, tuple[Definition, ...]] = {}
        for key in [key for key in scope.by_key if key.startswith(f"{use.id}[") and not key.endswith("[*]")]:
            target = scope.by_key[key][0].target
            if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
                continue  # an item of an item, an attribute of one
            query = Query.of(scope, (key, use.id))
            self._from_use(use, query)
            stores = tuple(item for item in query.found.values() if item.name == key)
            if stores and isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, (int, str)):
                found[target.slice.value] = stores
        return found

    def attribute_stores(self, use: ast.Name) -> dict[str, tuple[tuple[Definition, ...], bool]]:
        """The stores to `use.name`, by name, that the object may have had since the name was bound to it, and whether
        the attribute may also be as it was.
        """
        scope = self._stands_in(use)
        found: dict[str, tuple[tuple[Definition, ...], bool]] = {}
        for key in [key for key in scope.by_key if key.startswith(f"{use.id}.")]:
            target = scope.by_key[key][0].target
            if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
                continue
            query = Query.of(scope, (key, use.id))
            through = self._from_use(use, query)
            stores = tuple(item for item in query.found.values() if item.name == key)
            if stores:
                found[target.attr] = stores, through or len(stores) < len(query.found)
        return found

    def definitions_before(self, key: str, statement: ast.stmt) -> tuple[tuple[Definition, ...], bool]:
        """The definitions of a key that reach the start of `statement`, and whether none of them may have run."""
        scope = self.bindings(self._scope_node(statement))
        query = Query.of(scope, (key,))
        through = self._back.before(statement, query, None)
        if through and key in scope.params:
            query.add([scope.params[key]])
            through = False
        return tuple(query.found.values()), through

    def bindings(self, node: ScopeLike) -> ScopeBindings:
        """What a scope binds, by name."""
        key = id(node)
        if key in self._scopes:
            return self._scopes[key]
        found = self._scopes[key] = collect(node, walrus=self._walrus and self._may_hold_walrus(node))
        if isinstance(node, ast.Module) and "global " in self.tree.source.text:
            self._globals(found)
        return found

    def _may_hold_walrus(self, scope: ScopeLike) -> bool:
        if isinstance(scope, ast.Module):
            return True
        return any(":=" in line for line in self.tree.source.lines[scope.lineno - 1 : scope.end_lineno])

    def _globals(self, module: ScopeBindings) -> None:
        """Functions that declare `global x` define x of the module."""
        if not _GLOBAL.search(self.tree.source.text):
            return
        for top in module.node.body if isinstance(module.node, ast.Module) else ():
            for node in walk(top):
                if isinstance(node, FUNCTIONS) and any(isinstance(part, ast.Global) for part in node.body):
                    inner = self.bindings(node)
                    for name in inner.outer:
                        for item in inner.by_key.get(name, ()):
                            module.by_key[name].append(item)

    def _definitions(self, use: ast.Name) -> tuple[Definition, ...]:
        name = use.id
        statement, always = self.tree.standing(use)
        if always:
            scopes = self._scopes_around(statement)
            names = self._names.setdefault(id(scopes[0] if scopes else self.tree.module), {})
            found = names.get(name)
            if found is None:
                found = names[name] = self._defined_in(name, scopes)
        else:
            scopes, is_simple = self._scopes_of(use)
            target = None if is_simple else self._comprehension_target(use)
            found = self._defined_in(name, scopes) if target is None else (target,)
        if isinstance(found, tuple):
            return found
        query = Query.of(found, (name,))
        if self._from_use(use, query) and name in found.params:
            query.add([found.params[name]])
        return tuple(query.found.values())

    def _defined_in(self, name: str, scopes: tuple[ScopeLike, ...]) -> tuple[Definition, ...] | ScopeBindings:
        """The definitions of a name that stands in some scopes, innermost first, where they are the same wherever it
        stands there; else the scope that binds it.
        """
        scope = self._binding(name, scopes)
        if scope is None:
            return ()
        if scope.node is not (scopes[0] if scopes else self.tree.module):
            # Seen from a nested function, or a module name from a function: it may run at any time.
            return scope.all_of(name)
        if isinstance(scope.node, ast.Lambda):
            return (scope.params[name],)
        if isinstance(scope.node, FUNCTIONS) and scope.is_bound_once(name):
            return scope.all_of(name)  # without it there would be no value at all
        return scope

    def _scope_node(self, node: ast.AST) -> ScopeLike:
        """The innermost scope whose names a node sees directly, a class body included."""
        scopes, _ = self._scopes_of(node)
        return scopes[0] if scopes else self.tree.module

    def _binding(self, name: str, scopes: tuple[ScopeLike, ...]) -> ScopeBindings | None:
        """The one of the scopes around a use that binds a name, looked for as Python does."""
        for outer in scopes:
            scope = self.bindings(outer)
            if name in scope.outer:
                if any(isinstance(part, ast.Global) and name in part.names for part in walk(outer)):
                    break
            elif scope.binds(name):
                return scope
        module = self.bindings(self.tree.module)
        return module if module.binds(name) else None

    def _stands_in(self, use: ast.Name) -> ScopeBindings:
        """The scope around a use in which paths such as `self.x` may be stored to, whatever binds the name: a lambda
        that has it for a parameter, else the innermost function or class.
        """
        scopes, _ = self._scopes_of(use)
        for outer in scopes:
            scope = self.bindings(outer)
            if not isinstance(outer, ast.Lambda) or (use.id not in scope.outer and scope.binds(use.id)):
                return scope
        return self.bindings(self.tree.module)

    def _scopes_of(self, node: ast.AST) -> tuple[tuple[ScopeLike, ...], bool]:
        """The scopes around a node whose names it sees, innermost first, without the module; and whether neither a
        comprehension nor a lambda stands between it and its statement.
        """
        statement, always = self.tree.standing(node)
        if always:
            return self._scopes_around(statement), True
        lambdas: list[ScopeLike] = []
        is_simple = True
        child, parent = node, self.tree.parent
        outer = parent(node)
        while outer is not None and type(child) not in STATEMENTS:
            if type(outer) in _BINDING:
                is_simple = False
                if isinstance(outer, ast.Lambda) and child is outer.body:
                    lambdas.append(outer)
            child, outer = outer, parent(outer)
        around = self._scopes_around(child)
        if lambdas:
            # A lambda in the body of a class does not see the names of that body.
            return (*lambdas, *(scope for scope in around if not isinstance(scope, ast.ClassDef))), False
        return around, is_simple

    def _scopes_around(self, statement: ast.AST) -> tuple[ScopeLike, ...]:
        # A chain of `elif` may be hundreds long: gone up in a loop, not by recursion.
        key = id(statement)
        if key in self._around:
            return self._around[key]
        passed: list[ast.AST] = []
        found: tuple[ScopeLike, ...] | None = None
        while found is None:
            outer = self.tree.parent(statement)
            if outer is None:
                found = ()
            else:
                passed.append(statement)
                if isinstance(outer, (*FUNCTIONS, ast.ClassDef)):
                    seen = (scope for scope in self._scopes_around(outer) if not isinstance(scope, ast.ClassDef))
                    found = (outer, *seen)
                else:
                    found = self._around.get(id(outer))
                    statement = outer
        for inner in passed:
            self._around[id(inner)] = found
        return found

    def _comprehension_target(self, use: ast.Name) -> Definition | None:
        child: ast.AST = use
        for outer in self.tree.ancestors(use):
            kind = type(outer)
            if kind in STATEMENTS:
                return None
            if kind in _BINDING:
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
                elif use.id in self.bindings(outer).params:  # type: ignore[arg-type]
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

    def _from_use(self, use: ast.expr, query: Query) -> bool:
        """Collect what reaches the statement of `use`; whether the scope's start is reached as well."""
        if not query.holders:
            return True
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
            through = self._back.loop_start(statement, query, header=True)
            return through and self._back.before(statement, query, None)
        return self._back.before(statement, query, None)

    def _statement_in(self, use: ast.AST, scope: ScopeLike) -> ast.stmt | None:
        """The statement of `scope` itself that holds `use`: a nested function counts as one statement."""
        child: ast.AST | None = use
        while child is not None and child.__class__ not in STATEMENTS:
            if child is scope:
                return None
            child = self.tree.parent(child)
        found = None
        while isinstance(child, ast.stmt) and child is not scope:
            found = child
            around = self._scopes_around(child)
            child = around[0] if around else None
        return found


def _wildcards(key: str) -> tuple[str, ...]:
    """`batch['x']` may be given its value by a store to `batch[*]`."""
    base, bracket, _ = key.rpartition("[")
    return (f"{base}[*]",) if bracket and key.endswith("]") and not key.endswith("[*]") else ()


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
