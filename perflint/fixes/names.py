"""Names of one file: which are taken, what a top-level import binds, where imports stand."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from perflint.fixes.layout import Layout
from perflint.syntax.tree import FUNCTIONS

#: What may pass by what stands in it.
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Match, ast.ExceptHandler)
_WORD = re.compile(r"[^\W\d]\w*")
#: Modules that `import torch` loads.
_LOADED_WITH_TORCH = frozenset(
    (
        "torch.amp torch.autograd torch.backends torch.backends.cudnn torch.cuda torch.cuda.amp torch.distributed "
        "torch.distributions torch.linalg torch.nn torch.nn.functional torch.nn.utils torch.optim torch.utils "
        "torch.utils.data"
    ).split()
)


@dataclass(frozen=True, slots=True)
class Bound:
    """One place that binds a name. `target` is what an import binds it to (`torch.nn`, `torch.no_grad`), else empty.

    `statement` is the top-level statement that holds the place, `scope` the function or class it is local to. Module
    code reaches the place `always`, `maybe` (in a branch or a loop), or only as a script (`main`).
    """

    name: str
    target: str
    statement: ast.stmt
    scope: ast.AST | None
    line: int = 0
    runs: str = "always"


class Names:
    """The names of one file: which are bound to what, and which are free."""

    def __init__(self, layout: Layout) -> None:
        self.module = layout.tree.module
        self._text = layout.code

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of the file, strings and comments included: none of them is free."""
        return frozenset(_WORD.findall(self._text))

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word stands in the file, strings and comments included."""
        return Counter(_WORD.findall(self._text))

    @cached_property
    def bound(self) -> dict[str, list[Bound]]:
        """Every binding in the file, by name."""
        found: dict[str, list[Bound]] = {}
        for statement in self.module.body:
            for item in _bindings(statement, statement, None):
                found.setdefault(item.name, []).append(item)
        return found

    def free(self, wanted: str) -> str:
        """`wanted`, with a number behind it where the file knows that word already."""
        name, number = wanted, 2
        while name in self.words or keyword.iskeyword(name) or hasattr(builtins, name):
            name, number = f"{wanted}_{number}", number + 1
        return name

    def spelling(self, module: str, name: str | None, at: ast.AST | None, scopes: list[ast.AST]) -> str | None:
        """How the file spells `module`, or `name` of it, by an import that has run when `at` does.

        `scopes` are the functions around `at`. None where there is no such import, or its name means other things too.
        """
        for target, rest in self._ways(module, name):
            for bound, places in self.bound.items():
                if any(_gives(place, target) for place in places) and self._holds(places, target, at, scopes):
                    return f"{bound}.{rest}" if rest else bound
        return None

    def _ways(self, module: str, name: str | None) -> Iterator[tuple[str, str]]:
        """`nn.functional` of `torch` is a way to say `torch.nn.functional`, where importing `torch` loads that."""
        wanted = [*module.split("."), *([name] if name is not None else [])]
        for size in range(len(wanted), 0, -1):
            target, rest = ".".join(wanted[:size]), ".".join(wanted[size:])
            if target == module or not rest or module in _LOADED_WITH_TORCH or module in self._loaded:
                yield target, rest

    @cached_property
    def _loaded(self) -> frozenset[str]:
        """Modules imported at the top of the file."""
        found: set[str] = set()
        for statement in self.module.body:
            if isinstance(statement, ast.Import):
                found.update(alias.name for alias in statement.names)
            elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
                found.add(statement.module)
        return frozenset(found)

    def _holds(self, places: list[Bound], target: str, at: ast.AST | None, scopes: list[ast.AST]) -> bool:
        """Whether a name bound at `places` certainly means `target` at `at`, or anywhere when `at` is None.

        What a branch binds is there for the functions below it, which are written for it; not for code that runs when
        the module is imported.
        """
        if at is not None:
            places = [place for place in places if place.scope is None or place.scope in scopes]
            local = [place for place in places if place.scope is not None]
            if local:
                inner = min(scopes.index(place.scope) for place in local if place.scope is not None)
                places = [place for place in local if place.scope is scopes[inner]]
                line = getattr(at, "lineno", 0)
                return all(_gives(place, target) and place.line < line for place in places)
        elif any(place.scope is not None and not _gives(place, target) for place in places):
            return False
        top = [place for place in places if place.scope is None]
        later = at is None or any(isinstance(scope, FUNCTIONS) for scope in scopes)
        enough = ("always", "maybe") if later else ("always",)
        first = self._first_line(at)
        return any(
            _gives(place, target) and (at is None or (place.runs in enough and place.line < first)) for place in top
        ) and all(_gives(place, target) or (later and _is_fallback(place, top)) for place in top)

    def _first_line(self, at: ast.AST | None) -> int:
        """Where the top-level statement around `at` begins: what is bound below it may come too late."""
        line = getattr(at, "lineno", 0)
        return max((item.lineno for item in self.module.body if item.lineno <= line), default=line)

    def is_maybe(self, target: str) -> bool:
        """Whether a branch or a `try` binds what an import gives: it is not there everywhere, nor to be asked for."""
        return any(
            _gives(place, target) and (place.runs == "maybe" or isinstance(place.statement, ast.Try))
            for places in self.bound.values()
            for place in places
            if place.scope is None
        )

    def is_free_for(self, name: str, target: str, at: ast.AST | None, scopes: list[ast.AST]) -> bool:
        """Whether a new top-level import may bind `name` to `target`: nothing in the file means anything else by it."""
        if name in vars(builtins) or keyword.iskeyword(name):
            return False
        places = self.bound.get(name, [])
        if at is not None:
            if any(place.scope in scopes for place in places):
                return False
            places = [place for place in places if place.scope is None]
        return all(_gives(place, target) for place in places)


def _gives(place: Bound, target: str) -> bool:
    return place.target == target


def _is_fallback(place: Bound, places: list[Bound]) -> bool:
    """What `except ImportError` binds is not what the code around it is written for."""
    return isinstance(place.statement, ast.Try) and any(
        other.target and other.statement is place.statement for other in places
    )


def _bindings(node: ast.AST, statement: ast.stmt, scope: ast.AST | None, runs: str = "always") -> Iterator[Bound]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from _imported(node, statement, scope, runs)
        return
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield Bound(node.name, "", statement, scope, line, runs)
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield Bound(node.id, "", statement, scope, line, runs)
    elif isinstance(node, ast.arg):
        yield Bound(node.arg, "", statement, scope, line, runs)
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        # Rebound for the whole file.
        yield from (Bound(name, "", statement, None, line, "maybe") for name in node.names)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield Bound(node.name, "", statement, scope, line, runs)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield Bound(node.rest, "", statement, scope, line, runs)
    if _is_for_type_checkers(node):
        # Nothing there is bound when the program runs.
        for child in node.orelse:  # type: ignore[attr-defined]
            yield from _bindings(child, statement, scope, runs)
        return
    if isinstance(node, _BRANCHES) and runs == "always":
        runs = "main" if _is_for_scripts(node) else "maybe"
    inner = node if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)) else scope
    for child in ast.iter_child_nodes(node):
        yield from _bindings(child, statement, inner, runs)


def _imported(
    node: ast.Import | ast.ImportFrom, statement: ast.stmt, scope: ast.AST | None, runs: str
) -> Iterator[Bound]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            target = f"{module}.{alias.name}"
            yield Bound(alias.asname or alias.name, target, statement, scope, node.lineno, runs)
        elif alias.asname:
            yield Bound(alias.asname, alias.name, statement, scope, node.lineno, runs)
        else:
            # `import a.b` binds `a`.
            root = alias.name.partition(".")[0]
            yield Bound(root, root, statement, scope, node.lineno, runs)


def _is_for_scripts(node: ast.AST) -> bool:
    """`if __name__ == "__main__"`"""
    return isinstance(node, ast.If) and any(getattr(part, "id", "") == "__name__" for part in ast.walk(node.test))


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(
        getattr(part, "id", getattr(part, "attr", "")) == "TYPE_CHECKING" for part in ast.walk(node.test)
    )
