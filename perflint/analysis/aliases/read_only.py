"""Whether all that is done with a part of a batch is known to only read it: what is not known may write into it, now or
when nobody looks, by another name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

_READING = frozenset("get items keys values index count copy issubset issuperset isdisjoint".split())
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: Attributes that are no memory.
_FACTS = frozenset("shape dtype device ndim is_cuda layout names __class__".split())
_MOVES = frozenset({"to", "cuda"})
_READERS = tensors.FRESH_METHODS | tensors.NUMBER_METHODS | _MOVES | {"item", "tolist", "size", "cpu", "keys"}
#: What hands on its receiver, or a view of it: what is done with that counts.
_ALIASES = tensors.VIEW_METHODS | tensors.CAST_METHODS
_THROUGH = frozenset({"items", "values"})
_BUILTINS = frozenset("len print isinstance type str repr float int bool id hasattr".split())
_FROM_TORCH = tensors.FRESH_METHODS | {"cat", "stack", "zeros_like", "ones_like", "empty_like", "rand_like", "where"}


def unread(value: ast.expr, node: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """The first use of what is moved, of what it is a part of or of a part of it, that is not known to only read it."""
    root = _root(value)
    if root is None:
        return None
    uses = ctx.once(_Uses, ctx.tree.outermost_scope(node))
    return uses.first(root.id, node, _key(root, ctx))


def _key(root: ast.Name, ctx: FileFacts) -> object:
    """`"image"` of `sample["image"]`, None where there is no key, or none that is plain to see."""
    outer = ctx.tree.parent(root)
    if isinstance(outer, ast.Subscript) and outer.value is root and isinstance(outer.slice, ast.Constant):
        return outer.slice.value
    return None


def _root(value: ast.expr) -> ast.Name | None:
    while isinstance(value, (ast.Subscript, ast.Attribute)):
        value = value.value
    return value if isinstance(value, ast.Name) else None


class _Uses:
    """The uses of every name in a region, each looked at once for all moves in it."""

    def __init__(self, region: ast.AST, ctx: FileFacts) -> None:
        self.ctx = ctx
        self.by_name: dict[str, list[ast.Name]] = {}
        for part in walk(region):
            if isinstance(part, ast.Name):
                self.by_name.setdefault(part.id, []).append(part)
        self.known: dict[int, list[tuple[str, object]] | None] = {}
        self.suspects: dict[tuple[str, type, object], list[ast.Name]] = {}

    def first(self, root: str, node: ast.Call, key: object) -> ast.expr | None:
        place = root, type(key), key
        if place not in self.suspects:
            self.suspects[place] = list(self._suspects(root, key))
        # What is moved is only read there, whatever it is a part of.
        moved = {id(part) for part in walk(node)} if self.suspects[place] else set[int]()
        return next(
            (use for use in self.suspects[place] if id(use) not in moved and not self._holds_copy(use, node)), None
        )

    def _suspects(self, root: str, key: object) -> Iterator[ast.Name]:
        """The uses of `root`, and of every name that may share its memory, that may do more than read it."""
        waiting, seen = [(root, key)], set[tuple[str, object]]()
        while waiting:
            name, of = waiting.pop()
            if (name, of) in seen:
                continue
            seen.add((name, of))
            for use in self.by_name.get(name, ()):
                if self._is_apart(use, of):
                    continue
                others = self._names_given(use)
                if others is None:
                    yield use
                else:
                    waiting += others

    def _names_given(self, use: ast.Name) -> list[tuple[str, object]] | None:
        """The names whose memory is affected by what happens to `use`, with the key of the part of it that is; None
        where anything may happen to it.
        """
        if id(use) not in self.known:
            if isinstance(use.ctx, ast.Store):
                self.known[id(use)] = self._whole_of(use)
            else:
                names = [] if self._is_moved(use) else self._aliases(use)
                self.known[id(use)] = None if names is None else [(name, None) for name in names]
        return self.known[id(use)]

    def _whole_of(self, store: ast.Name) -> list[tuple[str, object]]:
        """`batch` of `images, labels = batch`: what is done with the whole is done with its parts; of `images =
        batch["image"]` with that part.
        """
        statement = self.ctx.tree.statement_of(store)
        if isinstance(statement, ast.Assign):
            root = _root(statement.value)
            if root is not None and not any(root.id == part.id for part in self._imported(root)):
                return [(root.id, _key(root, self.ctx))]
        return []

    def _imported(self, root: ast.Name) -> list[ast.Name]:
        return [root] if root.id in self.ctx.summary.imports or root.id == "self" else []

    def _is_moved(self, use: ast.Name) -> bool:
        """Whether a name holds a copy on the device there, wherever the copy was made."""
        definitions = self.ctx.inference.flow.definitions(use)
        return bool(definitions) and all(
            isinstance(item.value, ast.Call) and callee_name(item.value) in _MOVES for item in definitions
        )

    def _holds_copy(self, use: ast.Name, node: ast.Call) -> bool:
        """Whether a name may hold the copy that `node` makes."""
        values = (item.value for item in self.ctx.inference.flow.definitions(use) if item.value is not None)
        return any(part is node for value in values for part in walk(value))

    def _is_apart(self, use: ast.Name, key: object) -> bool:
        """Whether another part is meant: `sample["label"]` beside `sample["image"]`."""
        other = _key(use, self.ctx)
        return key is not None and other is not None and type(other) is type(key) and other != key

    def _aliases(self, use: ast.expr) -> list[str] | None:
        """The names that a use gives the same memory; None for one that may do anything."""
        child: ast.AST = use
        for outer in self.ctx.tree.ancestors(use):
            if isinstance(outer, ast.Attribute):
                called = self.ctx.tree.parent(outer)
                if outer.attr in _FACTS:
                    return []
                if not (isinstance(called, ast.Call) and called.func is outer):
                    return None
                if outer.attr in _READERS and not any(item.arg == "out" for item in called.keywords):
                    return []
                if outer.attr not in _ALIASES | _THROUGH:
                    return None
            elif isinstance(outer, ast.Call):
                if child is not outer.func:
                    return [] if self._reads(outer) else None
            elif isinstance(outer, ast.Subscript):
                if child is outer.slice or not isinstance(outer.ctx, ast.Load):
                    return []
            elif isinstance(outer, (ast.For, ast.comprehension)):
                return self._targets(outer.target) if child is outer.iter else []
            elif isinstance(outer, ast.Assign):
                found = [name for target in outer.targets for name in self._targets(target) or [""]]
                return None if "" in found else found
            elif isinstance(outer, (ast.BinOp, ast.Compare, ast.FormattedValue, ast.UnaryOp, ast.If, ast.Delete)):
                return []
            elif isinstance(outer, ast.Expr):
                return []
            elif not isinstance(outer, (ast.Tuple, ast.List)) or not self._is_taken_apart(outer):
                return None
            child = outer
        return None

    def _is_taken_apart(self, display: ast.Tuple | ast.List) -> bool:
        """`a, b = images.cuda(), labels`: each has its name."""
        return isinstance(self.ctx.tree.parent(display), ast.Assign)

    def _targets(self, target: ast.expr) -> list[str] | None:
        if isinstance(target, ast.Name):
            return [target.id]
        if isinstance(target, (ast.Tuple, ast.List)) and all(isinstance(item, ast.Name) for item in target.elts):
            return [item.id for item in target.elts if isinstance(item, ast.Name)]
        return None

    def _reads(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Name) and call.func.id in _BUILTINS:
            return True
        target = self.ctx.target(call.func) or ""
        return target.startswith("torch.") and target.removeprefix("torch.") in _FROM_TORCH and not call.keywords


def is_mutated_within(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a list in the table is taken out of it under a name by which it is changed."""
    values = [*getattr(node, "values", []), *getattr(node, "elts", [])]
    statement, function = ctx.tree.statement_of(node), ctx.tree.function_of(node)
    if function is None or not any(isinstance(item, (ast.List, ast.Dict, ast.Set)) for item in values):
        return False
    tables = {part.id for part in walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    taken: set[str] = set()
    for part in walk(function):
        if isinstance(part, (ast.Assign, ast.NamedExpr)):
            source, targets = part.value, part.targets if isinstance(part, ast.Assign) else [part.target]
        elif isinstance(part, (ast.For, ast.comprehension)):
            source, targets = part.iter, [part.target]
        else:
            continue
        if any(isinstance(item, ast.Name) and item.id in tables for item in walk(source)):
            taken |= {item.id for target in targets for item in walk(target) if isinstance(item, ast.Name)}
    return not taken.isdisjoint(ctx.inference.flow.names_mutated(function))


def stays_here(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether the container is only read, and only in this function."""
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.Subscript):
        return parent.value is node
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READING - {"copy"}
    if not (isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name)):
        return False
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    name = parent.targets[0].id
    flow = ctx.inference.flow
    uses = flow.uses_after(parent, name)
    return bool(uses) and not flow.is_mutated(name, function) and all(_only_reads(use, ctx) for use in uses)


def _only_reads(use: ast.Name, ctx: FileFacts) -> bool:
    parent = ctx.tree.parent(use)
    if isinstance(parent, ast.Subscript):
        return parent.value is use and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READING
    if isinstance(parent, ast.Compare):
        return True
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is use
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in ("len", "enumerate")
