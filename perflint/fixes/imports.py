"""Where a new import or constant goes at the top of a file, and its edits."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence

from perflint.finding import Edit
from perflint.fixes.layout import Layout
from perflint.fixes.names import Names
from perflint.fixes.statements import Statements

_SET_UP = (ast.Import, ast.ImportFrom, ast.Try, ast.If, ast.Assign, ast.AnnAssign)


class Imports:
    """The imports of one file, and where new ones go: to those of their kind, in order."""

    def __init__(self, layout: Layout, names: Names) -> None:
        self.layout = layout
        self.names = names
        self.body = layout.tree.module.body
        self._statements = Statements(layout)

    def add(self, module: str, name: str | None, alias: str) -> Edit:
        """The edit that binds `alias` to `module`, or to `name` of it."""
        bound = name or module
        text = f"import {module}" if name is None else f"from {module} import {name}"
        if alias != bound:
            text = f"{text} as {alias}"
        groups = self._groups()
        group = self._group_for(module, groups)
        if group is not None:
            return self._into(group, module, text, is_from=name is not None)
        if not groups:
            return self._first(text)
        if _is_standard(module):
            return self._above(groups[0][0], f"{text}\n\n")
        return self._below(groups[-1][-1], f"\n{text}\n")

    def _head(self) -> list[ast.stmt]:
        """The statements before the first that is neither docstring, import nor set-up between imports."""
        found: list[ast.stmt] = []
        for index, statement in enumerate(self.body):
            if not (isinstance(statement, _SET_UP) or (index == 0 and _is_docstring(statement))):
                break
            found.append(statement)
        while found and not _holds_import(found[-1]) and not _is_docstring(found[-1]):
            found.pop()
        return found

    def _groups(self) -> list[list[ast.Import | ast.ImportFrom]]:
        """Imports at the top, without those of `__future__`, in groups that blank lines or other statements part."""
        groups: list[list[ast.Import | ast.ImportFrom]] = []
        last = -1
        for index, statement in enumerate(self._head()):
            if isinstance(statement, (ast.Import, ast.ImportFrom)) and not _is_future(statement):
                joined = groups and last == index - 1 and not self._parted(groups[-1][-1], statement)
                if joined:
                    groups[-1].append(statement)
                else:
                    groups.append([statement])
                last = index
        return groups

    def _parted(self, first: ast.stmt, second: ast.stmt) -> bool:
        lines = self.layout.lines[first.end_lineno or first.lineno : second.lineno - 1]
        return any(not line.strip() for line in lines)

    def _group_for(
        self, module: str, groups: Sequence[list[ast.Import | ast.ImportFrom]]
    ) -> list[ast.Import | ast.ImportFrom] | None:
        root = module.partition(".")[0]
        for group in groups:
            if any(_root(item) == root for item in group):
                return group
        # A module of the same root further down is loaded there on purpose: behind a change of the environment, say.
        late = [item for item in self.body if isinstance(item, (ast.Import, ast.ImportFrom)) and _root(item) == root]
        if late:
            return late[:1]
        standard = _is_standard(module)
        for group in groups:
            if any(_root(item) and _is_standard(_root(item)) == standard for item in group):
                return group
        return None

    def _into(self, group: list[ast.Import | ast.ImportFrom], module: str, text: str, *, is_from: bool) -> Edit:
        """After the last import that sorts before the new one: `import` comes before `from`."""
        key = (is_from, module)
        before = [item for item in group if (isinstance(item, ast.ImportFrom), _module(item)) <= key]
        if before:
            return self._below(before[-1], f"{text}\n")
        return self._above(group[0], f"{text}\n")

    def _above(self, statement: ast.stmt, text: str) -> Edit:
        start = self._statements.extent(statement)[0]
        if not self.layout.begins_line(start):
            return self._below(statement, text)
        return self.layout.insert(self.layout.line_start(start), text)

    def _below(self, statement: ast.stmt, text: str) -> Edit:
        """Below the last line of a statement, and of those that begin on that line."""
        layout = self.layout
        end = layout.range(statement)[1]
        for following in self.body[self.body.index(statement) + 1 :]:
            if layout.line_start(layout.range(following)[0]) > layout.line_end(end):
                break
            end = layout.range(following)[1]
        stop = layout.line_end(end)
        while layout.code[:stop].endswith("\\"):  # nothing but a blank line can follow
            stop = layout.line_end(stop + 1)
        if stop == len(layout.code):
            return layout.insert(stop, f"\n{text[:-1]}")
        return layout.insert(stop + 1, text)

    def _first(self, text: str) -> Edit:
        """In a file without imports: below the docstring and `__future__`, else above the first statement."""
        layout = self.layout
        above = [item for item in self._head() if _is_docstring(item) or _is_future(item)]
        if above:
            following = self.body[self.body.index(above[-1]) + 1 :]
            end = layout.line_end(layout.range(above[-1])[1])
            gap = "" if not following or layout.code.startswith("\n", end + 1) else "\n"
            return self._below(above[-1], f"\n{text}\n{gap}")
        if not self.body:
            return layout.insert(len(layout.code), f"{text}\n")
        return layout.insert(self._top_of(self.body[0]), f"{text}\n\n")

    def _top_of(self, statement: ast.stmt) -> int:
        """The line of a first statement, or of the comment above it; what begins the file stays at its beginning."""
        layout = self.layout
        start = line = layout.line_start(self._statements.extent(statement)[0])
        while line > 0:
            above = layout.line_start(line - 1)
            if not layout.after(above).startswith("#"):
                return line
            line = above
        return start

    # Constants.

    def constant(self, name: str, expression: str) -> Edit:
        """Bind `name` below the imports, and below whatever binds the names of `expression`."""
        layout = self.layout
        last = self._last_needed(expression)
        if last is None:
            if not self.body:
                return layout.insert(len(layout.code), f"{name} = {expression}\n")
            return layout.insert(self._top_of(self.body[0]), f"{name} = {expression}\n\n")
        index = self.body.index(last)
        following = self.body[index + 1] if index + 1 < len(self.body) else None
        gap = ""
        if following is not None:
            end = layout.line_end(layout.range(last)[1])
            if not layout.code.startswith("\n", end + 1):
                gap = "\n\n" if isinstance(following, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else "\n"
        return self._below(last, f"\n{name} = {expression}\n{gap}")

    def _last_needed(self, expression: str) -> ast.stmt | None:
        position = max(len(self._head()) - 1, self._last_import())
        for name in _names(expression):
            places = [place for place in self.names.bound.get(name, []) if place.scope is None]
            if len({place.target for place in places if place.target}) == 1 and all(place.target for place in places):
                places = [place for place in places if place.runs == "always"][:1]  # the same import again
            for place in places:
                position = max(position, self.body.index(place.statement))
        return self.body[position] if position >= 0 else None

    def _last_import(self) -> int:
        """Where the last import stands before the first function or class: some come behind a change of `sys.path`."""
        last = -1
        for index, statement in enumerate(self.body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break
            if _holds_import(statement):
                last = index
        return last

    def can_bind(self, expression: str, scopes: Sequence[ast.AST]) -> bool:
        """Whether what `expression` names, as code in `scopes` does, is the same for module code, and surely there."""
        for name in _names(expression):
            places = self.names.bound.get(name, [])
            if any(place.scope in scopes for place in places if place.scope is not None):
                return False
            top = [place for place in places if place.scope is None]
            if not any(place.runs == "always" for place in top) and (top or not hasattr(builtins, name)):
                return False
        return True

    def runs_before(self, statement: ast.stmt, expression: str) -> bool:
        """Whether a constant bound for `expression` is there when the top-level `statement` runs."""
        last = self._last_needed(expression)
        return last is None or self.body.index(last) < self.body.index(statement)


def _names(expression: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(ast.parse(f"({expression}\n)")) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _holds_import(statement: ast.stmt) -> bool:
    return any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.walk(statement))


def _module(statement: ast.Import | ast.ImportFrom) -> str:
    if isinstance(statement, ast.Import):
        return statement.names[0].name
    return "." * statement.level + (statement.module or "")


def _root(statement: ast.Import | ast.ImportFrom) -> str:
    return _module(statement).partition(".")[0]


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names
