"""Edits built from syntax: keywords, statements, imports and constants, in the style of the code around them."""

from __future__ import annotations

import ast
import re

from perflint.finding import Edit, Span
from perflint.source.tree import FunctionNode, Tree


class Codemods:
    """Builds edits of one file. Only touched expressions change; everything around them stays byte for byte."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.source = tree.source

    # Calls.

    def set_keyword(self, call: ast.Call, name: str, value: str) -> Edit:
        """Give a call the keyword `name=value`, replacing the value it has, laid out as its other arguments are."""
        for item in call.keywords:
            if item.arg == name:
                return Edit(self.tree.span(item.value), value)
        span = self.tree.span(call)
        arguments: list[ast.expr] = [*call.args, *(item.value for item in call.keywords)]
        if not arguments:
            return _insert(span.end_line, span.end_column - 1, f"{name}={value}")
        if len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp) and not call.keywords:
            inner = self.tree.span(call.args[0])
            if (inner.end_line, inner.end_column) == (span.end_line, span.end_column):
                return Edit(inner, f"({self.source.slice(inner)}, {name}={value})")
        last = max(arguments, key=lambda item: (item.end_lineno or 0, item.end_col_offset or 0))
        return self._after_last(call, last, f"{name}={value}")

    def _after_last(self, call: ast.Call, last: ast.expr, text: str) -> Edit:
        end = self.tree.span(last)
        close = self.tree.span(call)
        rest = self.source.slice(Span(end.end_line, end.end_column, close.end_line, close.end_column - 1))
        size, comma = _closing(rest)
        line, column = _advance(end.end_line, end.end_column, rest[:size])
        owner = next((item for item in call.keywords if item.value is last), last)
        start = self.tree.span(owner)
        before = self.source.lines[start.line - 1][: start.column - 1]
        if close.end_line > line and not before.strip():
            tail = self.source.lines[line - 1][column - 1 :]
            if comma:
                return _insert(line, column + len(tail), f"\n{before}{text},")
            return Edit(Span(line, column, line, column + len(tail)), f",{tail}\n{before}{text}")
        if comma:
            return _insert(line, column, f" {text},") if close.end_line > line else _insert(line, column, f" {text}")
        return _insert(line, column, f", {text}")

    def replace(self, node: ast.AST, text: str) -> Edit:
        return Edit(self.tree.span(node), text)

    def append_method(self, node: ast.expr, call: str) -> Edit:
        """`x` becomes `x.detach()` for `call="detach()"`, in parentheses where precedence asks for them."""
        text = self.tree.text(node)
        plain = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        return Edit(self.tree.span(node), f"{text}.{call}" if plain else f"({text}).{call}")

    def unwrap(self, call: ast.Call) -> Edit:
        """A call becomes its only argument."""
        return Edit(self.tree.span(call), self.tree.text(call.args[0]))

    # Statements.

    def delete_statement(self, statement: ast.stmt) -> tuple[Edit, ...]:
        """Delete a statement with its line; a block that would be empty keeps `pass`."""
        span = self.tree.span(statement)
        first, last = self.source.lines[span.line - 1], self.source.lines[span.end_line - 1]
        before, after = first[: span.column - 1], last[span.end_column - 1 :]
        parent = self.tree.parent(statement)
        blocks = [block for _, block in ast.iter_fields(parent) if isinstance(block, list) and statement in block] if parent else []
        if any(len(block) == 1 for block in blocks) and not isinstance(parent, ast.Module):
            return (Edit(span, "pass"),)
        if before.strip() or after.strip():
            return self._delete_part(span, before, after)
        if span.end_line < len(self.source.lines):
            return (Edit(Span(span.line, 1, span.end_line + 1, 1), ""),)
        return (Edit(Span(span.line, 1, span.end_line, len(last) + 1), ""),)

    def _delete_part(self, span: Span, before: str, after: str) -> tuple[Edit, ...]:
        """One of several statements on a line, or one with a comment behind it."""
        semicolon = re.match(r"\s*;[ \t]*", after)
        if semicolon:
            return (Edit(Span(span.line, span.column, span.end_line, span.end_column + semicolon.end()), ""),)
        ahead = re.search(r";[ \t]*$", before)
        if ahead:
            return (Edit(Span(span.line, span.column - len(ahead.group()), span.end_line, span.end_column), ""),)
        return (Edit(Span(span.line, span.column, span.end_line, span.end_column + len(after) - len(after.lstrip())), ""),)

    def would_lose_comment(self, node: ast.AST) -> bool:
        """Whether a comment stands inside the node's own lines."""
        return "#" in self.tree.text(node)

    def swap_statements(self, first: ast.stmt, second: ast.stmt) -> tuple[Edit, ...]:
        return (Edit(self.tree.span(first), self.tree.text(second)), Edit(self.tree.span(second), self.tree.text(first)))

    def insert_before(self, statement: ast.stmt, text: str) -> Edit:
        """Insert a statement on a line of its own above another, with its indentation."""
        decorators = getattr(statement, "decorator_list", [])
        line = min([statement.lineno, *(item.lineno for item in decorators)])
        indent = re.match(r"[ \t]*", self.source.lines[line - 1])
        return _insert(line, 1, f"{indent.group() if indent else ''}{text}\n")

    def decorate(self, function: FunctionNode, decorator: str) -> Edit:
        """Put a decorator directly above the `def`, below the ones that are there."""
        indent = re.match(r"[ \t]*", self.source.lines[function.lineno - 1])
        return _insert(function.lineno, 1, f"{indent.group() if indent else ''}{decorator}\n")

    # Names.

    def names(self) -> set[str]:
        """Every name that is bound or used anywhere in the file."""
        found = set(re.findall(r"[^\W\d]\w*", self.source.text))
        return found

    def free_name(self, wanted: str) -> str:
        taken, number = self.names(), 2
        name = wanted
        while name in taken:
            name, number = f"{wanted}_{number}", number + 1
        return name

    def ensure_import(self, module: str, name: str | None = None) -> tuple[str, tuple[Edit, ...]]:
        """How the file spells `module` (or `name` of it), and the import edit where it has none yet."""
        for statement in self._whole().body:
            if isinstance(statement, ast.Import) and name is None:
                for alias in statement.names:
                    if alias.name == module:
                        return alias.asname or alias.name, ()
            if isinstance(statement, ast.ImportFrom) and name is not None and statement.module == module and not statement.level:
                for alias in statement.names:
                    if alias.name == name:
                        return alias.asname or alias.name, ()
        bound = name or module
        text = f"import {module}" if name is None else f"from {module} import {name}"
        if bound.partition(".")[0] in self.names():
            fresh = self.free_name(f"_{bound.rpartition('.')[2]}")
            return fresh, (self._at_imports(f"{text} as {fresh}\n"),)
        return bound, (self._at_imports(f"{text}\n"),)

    def hoist_to_module(self, expression: str, wanted: str) -> tuple[str, tuple[Edit, ...]]:
        """Bind an expression to a free constant's name after the imports."""
        name = self.free_name(wanted)
        line = self._after_imports()
        following = self.source.lines[line - 1] if line <= len(self.source.lines) else ""
        tail = "" if not following.strip() else "\n\n"
        return name, (_insert(line, 1, f"\n{name} = {expression}\n{tail}"),)

    def _at_imports(self, text: str) -> Edit:
        return _insert(self._after_imports(), 1, text)

    def _after_imports(self) -> int:
        """The line after the last top-level import, or after the docstring where there is none."""
        line = 1
        for index, statement in enumerate(self._whole().body):
            is_docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, (ast.Import, ast.ImportFrom)) or is_docstring:
                line = (statement.end_lineno or statement.lineno) + 1
        return line

    def _whole(self) -> ast.Module:
        return self.tree.module


def _insert(line: int, column: int, text: str) -> Edit:
    return Edit(Span(line, column, line, column), text)


def _closing(rest: str) -> tuple[int, bool]:
    """How much of the text behind the last argument still belongs to it (its own parentheses, a trailing comma)."""
    size, comma, index = 0, False, 0
    while index < len(rest):
        letter = rest[index]
        if letter == "#":
            stop = rest.find("\n", index)
            index = len(rest) if stop < 0 else stop
            continue
        if letter == ")" or letter == ",":
            size, comma = index + 1, letter == ","
        index += 1
    return size, comma


def _advance(line: int, column: int, text: str) -> tuple[int, int]:
    lines = text.split("\n")
    return (line, column + len(text)) if len(lines) == 1 else (line + len(lines) - 1, len(lines[-1]) + 1)
