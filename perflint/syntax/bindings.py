"""What binds names in a scope: one `Definition` for each, indexed by the statements that hold it.

Keys are names (`x`), and paths of attributes and constant items from a name (`self.h`, `batch['x']`). A store under
an index that is not constant has the key `batch[*]`.
"""

from __future__ import annotations

import ast
import enum
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from perflint.syntax.walk import children, walk

ScopeLike: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
#: Statements that bind names by assignment expressions alone.
_BIND_NOTHING = frozenset({ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Pass, ast.Break, ast.Continue})
_TAKEN_APART = frozenset({ast.Tuple, ast.List})
_LOOPS = (ast.For, ast.AsyncFor)
_WITHS = (ast.With, ast.AsyncWith)


class Binding(enum.Enum):
    """How a name gets its value."""

    ASSIGN = "assignment"
    AUGMENTED = "augmented assignment"
    FOR = "loop target"
    WITH = "with target"
    EXCEPT = "except target"
    WALRUS = "assignment expression"
    PARAM = "parameter"
    COMPREHENSION = "comprehension target"
    IMPORT = "import"
    FUNCTION = "function"
    CLASS = "class"
    DELETE = "del"
    MATCH = "pattern"


# Not frozen: there are a hundred thousand of them in a large run, and setting the fields of a frozen one takes twice as
# long. Nobody changes one.
@dataclass(slots=True, eq=False)
class Definition:
    """One place that gives `name` (a key) a value.

    `node` is the statement, parameter, handler or comprehension that binds. `value` is the expression the value comes
    from: what is assigned, iterated over (FOR, COMPREHENSION), entered (WITH) or matched. `path` leads from that value
    (from its element, for loops) to this target when it is taken apart: indices from the front or, after a starred
    target, from the back; "*" for the starred target itself. `target` is the expression bound, where there is one.
    """

    name: str
    binding: Binding
    node: ast.AST
    value: ast.expr | None = None
    path: tuple[int | str, ...] = ()
    target: ast.expr | None = None
    annotation: ast.expr | None = None
    imported: str = ""


@dataclass(slots=True)
class ScopeBindings:
    """All definitions of one scope, without those of the scopes inside it.

    `direct` maps ids of statements (and handlers) to the definitions of their own header or, for simple statements,
    of all of them. `chains` maps a key to the statements around each definition of it, outermost first.
    """

    node: ScopeLike
    by_key: dict[str, list[Definition]] = field(default_factory=lambda: defaultdict(list))
    direct: dict[int, list[Definition]] = field(default_factory=lambda: defaultdict(list))
    chains: dict[str, list[tuple[ast.AST, ...]]] = field(default_factory=lambda: defaultdict(list))
    params: dict[str, Definition] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)
    #: By key, what `x: Tensor` without a value declares: it binds nothing, and holds for what other places bind.
    declared: dict[str, ast.expr] = field(default_factory=dict)
    _holders: dict[str, set[int]] = field(default_factory=dict)
    _targets: dict[str, dict[int, Definition]] = field(default_factory=dict)

    def holders(self, key: str) -> set[int]:
        """The ids of all statements that hold a definition of a key. Most keys are never asked about."""
        if key in self._holders:
            return self._holders[key]
        found = self._holders[key] = {id(item) for chain in self.chains.get(key, ()) for item in chain}
        return found

    def binding_of(self, target: ast.Name) -> Definition | None:
        """The definition whose target is this node."""
        known = self._targets.get(target.id)
        if known is None:
            made = self.by_key.get(target.id, ())
            known = self._targets[target.id] = {id(item.target): item for item in made if item.target is not None}
        return known.get(id(target))

    def binds(self, name: str) -> bool:
        return name not in self.outer and (name in self.params or name in self.by_key or name in self.declared)

    def is_bound_once(self, name: str) -> bool:
        return name not in self.params and len(self.by_key.get(name, ())) == 1

    def all_of(self, name: str) -> tuple[Definition, ...]:
        """Every definition of a name, in source order, the parameter first."""
        own = self.by_key.get(name, [])
        return (self.params[name], *own) if name in self.params else tuple(own)


def key_of(node: ast.expr) -> str | None:
    """The key of a name, or of a path of attributes and items that starts at one; None for anything else."""
    if node.__class__ is ast.Name:
        return node.id
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Name):
            parts.append(node.id)
            return "".join(reversed(parts))
        if isinstance(node, ast.Attribute):
            parts.append(f".{node.attr}")
        elif isinstance(node, ast.Subscript):
            index = node.slice
            constant = isinstance(index, ast.Constant) and isinstance(index.value, (int, str))
            parts.append(f"[{index.value!r}]" if constant else "[*]")  # type: ignore[attr-defined]
        else:
            return None
        node = node.value


class SetAttribute(NamedTuple):
    """What `setattr(holder, "name", value)` sets."""

    holder: ast.Name
    name: str
    value: ast.expr


def set_attribute(call: ast.Call) -> SetAttribute | None:
    """What a call sets by a name that is written out, of what goes by a name itself."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3):
        return None
    holder, name, value = call.args
    if not (isinstance(holder, ast.Name) and isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    return SetAttribute(holder, name.value, value) if name.value.isidentifier() else None


def prefixes(key: str) -> Iterator[str]:
    """The keys whose rebinding makes a key mean something else: `a.b['c']` has `a` and `a.b`."""
    for index, letter in enumerate(key):
        if letter in ".[" and index:
            yield key[:index]


def collect(node: ScopeLike, *, walrus: bool) -> ScopeBindings:
    """The bindings of one scope. `walrus` says whether the file has assignment expressions at all."""
    scope = ScopeBindings(node)
    collector = _Collector(scope, walrus=walrus)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        for argument in _arguments(node.args):
            scope.params[argument.arg] = Definition(
                argument.arg, Binding.PARAM, argument, annotation=argument.annotation
            )
    if isinstance(node, ast.Lambda):
        return scope
    collector.block(node.body, ())
    for key, annotation in scope.declared.items():
        for made in scope.by_key.get(key, ()):
            made.annotation = made.annotation or annotation
    return scope


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from arguments.posonlyargs
    yield from arguments.args
    if arguments.vararg is not None:
        yield arguments.vararg
    yield from arguments.kwonlyargs
    if arguments.kwarg is not None:
        yield arguments.kwarg


class _Collector:
    def __init__(self, scope: ScopeBindings, *, walrus: bool) -> None:
        self.scope = scope
        self.walrus = walrus

    def block(self, body: list[ast.stmt], chain: tuple[ast.AST, ...]) -> None:
        for statement in body:
            kind = statement.__class__
            if kind in _BIND_NOTHING and not self.walrus:
                if kind is ast.Expr:
                    self.set_by_name(statement, chain)  # type: ignore[arg-type]
                continue
            inner = (*chain, statement)
            # Most statements are one of these two.
            if kind is ast.Assign and not self.walrus:
                for target in statement.targets:  # type: ignore[attr-defined]
                    self.target(target, Binding.ASSIGN, statement, statement.value, inner)  # type: ignore[attr-defined]
            elif kind is ast.If and not self.walrus:
                self.block(statement.body, inner)  # type: ignore[attr-defined]
                self.block(statement.orelse, inner)  # type: ignore[attr-defined]
            else:
                self.statement(statement, inner)

    def statement(self, node: ast.stmt, chain: tuple[ast.AST, ...]) -> None:
        if node.__class__ is ast.Assign:
            for target in node.targets:
                self.target(target, Binding.ASSIGN, node, node.value, chain)
        elif node.__class__ is ast.Expr:
            self.set_by_name(node, chain[:-1])
        elif node.__class__ in _BIND_NOTHING:
            pass
        elif isinstance(node, ast.AnnAssign):
            self.annotated(node, chain)
        elif isinstance(node, ast.AugAssign):
            key = key_of(node.target)
            if key is not None:
                self.record(Definition(key, Binding.AUGMENTED, node, node.value, target=node.target), chain)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.record(Definition(node.name, Binding.FUNCTION, node), chain)
        elif isinstance(node, ast.ClassDef):
            self.record(Definition(node.name, Binding.CLASS, node), chain)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node, chain)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self.scope.outer.update(node.names)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                key = key_of(target)
                if key is not None:
                    self.record(Definition(key, Binding.DELETE, node, target=target), chain)
        else:
            self.compound(node, chain)
        if self.walrus and not isinstance(node, _NESTED):
            self.walruses(node, chain)

    def set_by_name(self, node: ast.Expr, chain: tuple[ast.AST, ...]) -> None:
        """`setattr(self, "source", source)` is `self.source = source`."""
        if node.value.__class__ is ast.Call and (made := set_attribute(node.value)) is not None:
            self.record(Definition(f"{made.holder.id}.{made.name}", Binding.ASSIGN, node, made.value), (*chain, node))

    def annotated(self, node: ast.AnnAssign, chain: tuple[ast.AST, ...]) -> None:
        key = key_of(node.target)
        if key is None:
            return
        if node.value is not None:
            made = Definition(key, Binding.ASSIGN, node, node.value, target=node.target, annotation=node.annotation)
            self.record(made, chain)
        elif not isinstance(self.scope.node, ast.ClassDef):
            self.scope.declared.setdefault(key, node.annotation)

    def compound(self, node: ast.stmt, chain: tuple[ast.AST, ...]) -> None:
        if isinstance(node, _LOOPS):
            self.target(node.target, Binding.FOR, node, node.iter, chain)
        elif isinstance(node, _WITHS):
            for item in node.items:
                if item.optional_vars is not None:
                    self.target(item.optional_vars, Binding.WITH, node, item.context_expr, chain)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self.pattern(case, node.subject, chain)
                self.block(case.body, chain)
        for handler in getattr(node, "handlers", ()):
            inner = (*chain, handler)
            if handler.name:
                self.record(Definition(handler.name, Binding.EXCEPT, handler, handler.type), inner)
            self.block(handler.body, inner)
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                self.block(body, chain)

    def pattern(self, case: ast.match_case, subject: ast.expr, chain: tuple[ast.AST, ...]) -> None:
        for part in walk(case.pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                whole = part is case.pattern
                self.record(Definition(name, Binding.MATCH, case, subject if whole else None), chain)

    def imports(self, node: ast.Import | ast.ImportFrom, chain: tuple[ast.AST, ...]) -> None:
        module = ""
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            module = module if module.endswith(".") else f"{module}."
        for alias in node.names:
            if alias.name == "*":
                continue
            if module:
                bound, target = alias.asname or alias.name, f"{module}{alias.name}"
            elif alias.asname:
                bound, target = alias.asname, alias.name
            else:
                bound = target = alias.name.partition(".")[0]
            self.record(Definition(bound, Binding.IMPORT, node, imported=target), chain)

    def target(
        self,
        target: ast.expr,
        binding: Binding,
        node: ast.AST,
        value: ast.expr,
        chain: tuple[ast.AST, ...],
        path: tuple[int | str, ...] = (),
    ) -> None:
        if target.__class__ is ast.Name:
            self.record(Definition(target.id, binding, node, value, path, target), chain)
            return
        if target.__class__ in _TAKEN_APART:
            assert isinstance(target, (ast.Tuple, ast.List))
            starred = next((i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
            same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            pairwise = same and starred is None and not path and binding is Binding.ASSIGN
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Starred):
                    self.target(part.value, binding, node, value, chain, (*path, "*"))
                elif pairwise and not isinstance(value.elts[index], ast.Starred):  # type: ignore[attr-defined]
                    self.target(part, binding, node, value.elts[index], chain)  # type: ignore[attr-defined]
                else:
                    place = index - len(target.elts) if starred is not None and index > starred else index
                    self.target(part, binding, node, value, chain, (*path, place))
            return
        key = key_of(target)
        if key is not None:
            self.record(Definition(key, binding, node, value, path, target), chain)

    def walruses(self, node: ast.stmt, chain: tuple[ast.AST, ...]) -> None:
        """Assignment expressions in the header of a compound statement, or anywhere in a simple one."""
        stack: list[ast.AST] = [
            child for child in children(node) if isinstance(child, (ast.expr, ast.withitem, ast.keyword))
        ]
        while stack:
            part = stack.pop()
            if isinstance(part, ast.NamedExpr):
                made = Definition(part.target.id, Binding.WALRUS, part, part.value, target=part.target)
                self.record(made, chain)
            if not isinstance(part, ast.Lambda):
                stack.extend(children(part))

    def record(self, definition: Definition, chain: tuple[ast.AST, ...]) -> None:
        scope, name = self.scope, definition.name
        scope.by_key[name].append(definition)
        scope.chains[name].append(chain)
        scope.direct[id(chain[-1])].append(definition)
