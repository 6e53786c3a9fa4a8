"""The way back from a statement to the start of its scope: the definitions that are met on it.

Branches are joined, mutually exclusive arms excluded, loops may run any number of times, and a definition hides the
ones that come before it on every path.
"""

from __future__ import annotations

import ast
import sys
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from perflint.syntax.bindings import Definition, ScopeBindings, key_of
from perflint.syntax.tree import FUNCTIONS, LOOPS, LoopNode, Tree
from perflint.syntax.walk import block_with, children

_FOR = (ast.For, ast.AsyncFor)
_JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: How far up what is met on the way back is not worth remembering, and how short a block not worth an index.
_DEEP = 16
_LONG = 32
_TRIES: tuple[type[ast.AST], ...] = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else (ast.Try,)


@dataclass(slots=True)
class Query:
    """One search: the keys that count, and the statements that hold a definition of one of them."""

    keys: frozenset[str]
    scope: ScopeBindings
    holders: set[int]
    found: dict[int, Definition] = field(default_factory=dict)

    @classmethod
    def of(cls, scope: ScopeBindings, keys: Iterable[str]) -> Query:
        wanted = frozenset(keys)
        return cls(wanted, scope, set().union(*map(scope.holders, wanted)))

    def direct(self, node: ast.AST) -> list[Definition]:
        return [item for item in self.scope.direct.get(id(node), ()) if item.name in self.keys]

    def add(self, definitions: Iterable[Definition]) -> None:
        for item in definitions:
            self.found[id(item)] = item


#: Definitions, and whether a path without any is there too.
_Found = tuple[list[Definition], bool]


class Backwards:
    """Goes back through the statements of one file. They must be linked."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._jumps: dict[int, list[ast.stmt]] = {}
        #: What is met on the way back from statements that stand deep.
        self._met: dict[tuple[frozenset[str], int, int], tuple[tuple[Definition, ...], bool]] = {}
        #: By long block, the places of its statements; and by what is searched for as well, of those that hold it.
        self._places: dict[int, dict[int, int]] = {}
        self._holding: dict[tuple[frozenset[str], int, int], list[int]] = {}

    def before(self, statement: ast.AST, query: Query, limit: ast.AST | None) -> bool:
        """Collect definitions on the way back from `statement` to the start of its scope, or of the body of `limit`.
        Whether a path without any gets there.
        """
        child: ast.AST = statement
        for _ in range(_DEEP if limit is None else sys.maxsize):
            parent = self._tree.parent(child)
            if parent is None:
                return True
            holders = query.holders
            for earlier in self._earlier(block_with(parent, child), child, query):
                if id(earlier) not in holders:
                    continue
                found, through = self._scan(earlier, query)
                query.add(found)
                if not through:
                    return False
            if parent is limit or parent is query.scope.node:
                return True
            if not self._enter(parent, child, query):
                return False
            child = parent
        return self._further(child, query)

    def _further(self, statement: ast.AST, query: Query) -> bool:
        """`before`, of a statement that others stand deep in: what is met from there on is the same for all of them."""
        key = query.keys, id(query.scope), id(statement)
        known = self._met.get(key)
        if known is None:
            inner = Query(query.keys, query.scope, query.holders)
            through = self.before(statement, inner, None)
            known = self._met[key] = tuple(inner.found.values()), through
        query.add(known[0])
        return known[1]

    def _earlier(self, block: list[ast.stmt], child: ast.AST, query: Query) -> Iterable[ast.stmt]:
        """The statements of a block before one of them, last first, at least those that hold what is searched for."""
        if len(block) <= _LONG:
            return reversed(block[: block.index(child)]) if block else ()  # type: ignore[arg-type]
        places = self._places.get(id(block))
        if places is None:
            places = self._places[id(block)] = {id(item): place for place, item in enumerate(block)}
        key = query.keys, id(query.scope), id(block)
        holding = self._holding.get(key)
        if holding is None:
            holding = [place for place, item in enumerate(block) if id(item) in query.holders]
            self._holding[key] = holding
        end = bisect_left(holding, places[id(child)])
        return (block[holding[at]] for at in range(end - 1, -1, -1))

    def _enter(self, parent: ast.AST, child: ast.AST, query: Query) -> bool:
        """Collect what may happen between the start of `parent` and the start of the block that holds `child`."""
        if isinstance(parent, LOOPS):
            if child in parent.body:
                return self.loop_start(parent, query, header=False)
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

    def _match_targets(self, case: ast.match_case, query: Query) -> list[Definition]:
        match = self._tree.parent(case)
        return query.direct(match) if match is not None else []

    def loop_start(self, loop: LoopNode, query: Query, *, header: bool) -> bool:
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

    def _jump(self, jump: ast.stmt, loop: LoopNode, query: Query) -> bool:
        inner = Query(query.keys, query.scope, query.holders)
        through = self.before(jump, inner, loop)
        query.add(inner.found.values())
        return through

    def _scan(self, node: ast.stmt, query: Query) -> _Found:
        """The definitions in a statement that may hold after it, and whether earlier ones may still hold too."""
        if id(node) not in query.holders:
            return [], True
        own = query.direct(node)
        if isinstance(node, ast.If):
            arms = [self._arm(node.body, query), self._arm(node.orelse, query)]
            found = [item for arm in arms if arm for item in arm[0]]
            through = any(arm[1] for arm in arms if arm)
            return (found + own, False) if through and own else (found, through)
        if isinstance(node, LOOPS):
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

    def _arm(self, body: list[ast.stmt], query: Query) -> _Found | None:
        return self._block(body, query) if _falls_through(body) else None

    def _block(self, body: list[ast.stmt], query: Query) -> _Found:
        found: list[Definition] = []
        if body and not _falls_through(body):
            return found, False
        holders = query.holders
        for statement in reversed(body):
            if id(statement) not in holders:
                continue
            inner, through = self._scan(statement, query)
            found += inner
            if not through:
                return found, False
        return found, True

    def _loop_end(self, loop: LoopNode, query: Query) -> _Found:
        own = query.direct(loop)
        found, _ = self._block(loop.body, query)
        inner = Query(query.keys, query.scope, query.holders)
        endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
        through = not endless
        for jump in self._jumps_of(loop):
            passed = self._jump(jump, loop, inner)
            through = through or (passed and isinstance(jump, ast.Break))
        found += [*inner.found.values(), *own]
        # `for k in batch: batch[k] = ...` gives every item a new value, however many there are.
        if isinstance(loop, _FOR) and any(item.name.endswith("[*]") for item in found):
            source = iterated_key(loop.iter)
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
                elif isinstance(node, LOOPS):
                    stack.extend(node.orelse)
                elif isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.expr)):
                    continue
                else:
                    stack.extend(child for child in children(node) if not isinstance(child, ast.expr))
            self._jumps[id(loop)] = known
        return known

    def _try_end(self, node: ast.AST, query: Query) -> _Found:
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

    def _every(self, body: Iterable[ast.AST], query: Query) -> list[Definition]:
        """All definitions in some statements, in whatever order they run."""
        found: list[Definition] = []
        stack = list(body)
        while stack:
            node = stack.pop()
            if id(node) in query.holders:
                found += query.direct(node)
                stack.extend(child for child in children(node) if not isinstance(child, ast.expr))
        return found


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


def iterated_key(node: ast.expr) -> str | None:
    """The key of what a loop runs over: `batch` in `for k in batch`, `batch.items()`, `range(len(batch))`."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items"):
            return key_of(node.func.value)
        if isinstance(node.func, ast.Name) and node.args:
            return (
                iterated_key(node.args[0]) if node.func.id in ("list", "range", "len", "enumerate", "tuple") else None
            )
        return None
    return key_of(node)


def _unconditional(definition: Definition, loop: LoopNode) -> bool:
    """Whether a store runs on every turn, or is left out only for what is no tensor or goes by a name of its own."""
    node = definition.node
    if node in loop.body:
        return True
    for statement in loop.body:
        if isinstance(statement, ast.If) and node in statement.body:
            if _asks_for_tensors(statement.test) or keys_left_out(definition, statement):
                return True
    return False


def keys_left_out(store: Definition, branch: ast.AST | None) -> tuple[str, ...]:
    """The keys for which a store to `batch[key]` is left out by the `branch` around it, or stores what was there:
    `if key != "meta"`, `if key not in ("meta", "path")`, `value if key == "meta" else value.cpu()`; empty for any other
    test.
    """
    target, value = store.target, store.value
    if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name)):
        return ()
    if isinstance(branch, ast.If) and store.node in branch.body:
        return keys_where(branch.test, target.slice.id, truth=False)
    if isinstance(value, ast.IfExp) and isinstance(value.body, ast.Name):
        return keys_where(value.test, target.slice.id, truth=True)
    if isinstance(value, ast.IfExp) and isinstance(value.orelse, ast.Name):
        return keys_where(value.test, target.slice.id, truth=False)
    return ()


def keys_where(test: ast.expr, name: str, *, truth: bool) -> tuple[str, ...]:
    """The texts for which alone a test of `name` is true, or false; empty where it is no such test. `"raw*"` stands for
    all that begin so: `name.startswith("raw")`.
    """
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) is truth:
        each = [keys_where(part, name, truth=truth) for part in test.values]
        return tuple(key for keys in each for key in keys) if all(each) else ()
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return keys_where(test.operand, name, truth=not truth)
    if isinstance(test, ast.Call):
        return _beginning(test, name) if truth else ()
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)):
        return ()
    if test.left.id != name:
        return ()
    op, named = test.ops[0], test.comparators[0]
    if isinstance(op, ast.In if truth else ast.NotIn) and isinstance(named, (ast.Tuple, ast.List, ast.Set)):
        values = named.elts
    else:
        values = [named] if isinstance(op, ast.Eq if truth else ast.NotEq) else []
    keys = [item.value for item in values if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return tuple(keys) if len(keys) == len(values) else ()


def _beginning(call: ast.Call, name: str) -> tuple[str, ...]:
    func = call.func
    if not (isinstance(func, ast.Attribute) and func.attr == "startswith" and isinstance(func.value, ast.Name)):
        return ()
    text = call.args[0] if len(call.args) == 1 else None
    if func.value.id != name or not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        return ()
    return (f"{text.value}*",)


def is_left_out(key: object, left: tuple[str, ...]) -> bool:
    """Whether a key is one of those that are left out, or begins as one does."""
    return any(key == item or (item[-1:] == "*" and str(key).startswith(item[:-1])) for item in left)


def _asks_for_tensors(test: ast.expr) -> bool:
    if not isinstance(test, ast.Call):
        return False
    name = test.func.attr if isinstance(test.func, ast.Attribute) else getattr(test.func, "id", "")
    return name in ("isinstance", "is_tensor", "hasattr", "torch_is_tensor")
