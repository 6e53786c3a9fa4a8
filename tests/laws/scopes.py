"""The names of a file: what binds them, and where each is written that means the same variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Place = tuple[int, int]


@dataclass
class Scope:
    """The names that a function, a comprehension, a class or a module binds, and where each is written. `fixed` are
    those that are bound by more than an assignment.
    """

    node: ast.AST
    outer: Scope | None
    parameters: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)
    uses: list[tuple[str, ast.AST]] = field(default_factory=list)


@dataclass
class File:
    """A file with its scopes, outer ones first. `owners` are the nodes of the scopes around functions and classes;
    `edits` say by place which name becomes which.
    """

    module: ast.Module
    lines: list[bytes]
    scopes: list[Scope] = field(default_factory=list)
    owners: dict[ast.AST, ast.AST] = field(default_factory=dict)
    edits: dict[Place, tuple[str, str]] = field(default_factory=dict)


def read(text: str) -> File:
    """A file's scopes."""
    file = File(ast.parse(text), text.encode().splitlines(keepends=True))
    top = Scope(file.module, None)
    file.scopes.append(top)
    for statement in file.module.body:
        _collect(statement, top, file)
    return file


def meant(scope: Scope, names: Mapping[str, str], file: File) -> Iterator[tuple[str, ast.AST]]:
    """Where a scope's own names are written, in it and in the scopes inside."""
    for inner in file.scopes:
        for name, node in inner.uses:
            if name in names and _home(inner, name) is scope:
                yield name, node


def _home(scope: Scope, name: str) -> Scope | None:
    """The scope whose variable a name is that stands in `scope`."""
    at: Scope | None = scope
    while at is not None:
        is_seen = at is scope or not isinstance(at.node, ast.ClassDef)
        if is_seen and (name in at.bound or name in at.parameters or name in at.fixed):
            return at
        at = at.outer
    return None


def _collect(node: ast.AST, scope: Scope, file: File) -> None:
    """Bindings and uses below a node, each in the scope that it stands in."""
    if isinstance(node, ast.Name):
        scope.uses.append((node.id, node))
        if not isinstance(node.ctx, ast.Load):
            scope.bound.add(node.id)
    elif isinstance(node, ast.NamedExpr):
        _walrus(node, scope, file)
    elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        _definition(node, scope, file)
    elif isinstance(node, COMPREHENSIONS):
        _comprehension(node, scope, file)
    else:
        _fix(node, scope)
        for part in ast.iter_child_nodes(node):
            _collect(part, scope, file)


def _fix(node: ast.AST, scope: Scope) -> None:
    """Names that stand in the tree as texts."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        at: Scope | None = scope
        while at is not None:
            at.fixed |= {*node.names}
            at = at.outer
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        scope.fixed |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        scope.fixed.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        scope.fixed.add(node.rest)


def _walrus(node: ast.NamedExpr, scope: Scope, file: File) -> None:
    """Binds in the function, also from inside of a comprehension."""
    outer = scope
    while isinstance(outer.node, COMPREHENSIONS) and outer.outer is not None:
        outer = outer.outer
    outer.bound.add(node.target.id)
    outer.uses.append((node.target.id, node.target))
    _collect(node.value, scope, file)


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef, scope: Scope, file: File
) -> None:
    outside: list[ast.expr | None] = []
    several: list[ast.arg] = []
    if isinstance(node, _DEFINITIONS):
        scope.fixed.add(node.name)
        outside += node.decorator_list
    if isinstance(node, ast.ClassDef):
        outside += [*node.bases, *(item.value for item in node.keywords)]
    else:
        args = node.args
        several = [*args.posonlyargs, *args.args, *args.kwonlyargs, *(one for one in (args.vararg, args.kwarg) if one)]
        outside += [*args.defaults, *args.kw_defaults, *(one.annotation for one in several)]
        outside += [node.returns] if not isinstance(node, ast.Lambda) else []
    for part in outside:
        if part is not None:
            _collect(part, scope, file)
    inner = _inside(node, scope, file)
    inner.parameters |= {one.arg for one in several}
    inner.uses += [(one.arg, one) for one in several]
    for statement in node.body if isinstance(node.body, list) else [node.body]:
        _collect(statement, inner, file)


def _comprehension(node: ast.AST, scope: Scope, file: File) -> None:
    """The first iterable stands outside."""
    first = next(part for part in ast.iter_child_nodes(node) if isinstance(part, ast.comprehension)).iter
    _collect(first, scope, file)
    inner = _inside(node, scope, file)
    for part in ast.iter_child_nodes(node):
        for piece in ast.iter_child_nodes(part) if isinstance(part, ast.comprehension) else [part]:
            if piece is not first:
                _collect(piece, inner, file)


def _inside(node: ast.AST, scope: Scope, file: File) -> Scope:
    inner = Scope(node, scope)
    file.owners[node] = scope.node
    file.scopes.append(inner)
    return inner
