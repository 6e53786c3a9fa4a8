"""Edits built from syntax: keywords, statements, imports and constants, in the style of the code around them.

What rules call. Every method works on nodes of one tree and returns edits; what cannot be edited gives `NOWHERE`, and a
fix that holds it is not offered.
"""

from __future__ import annotations

import ast
from functools import cached_property

from perflint.finding import Edit
from perflint.fixes.arguments import Arguments
from perflint.fixes.imports import Imports
from perflint.fixes.layout import NOWHERE, Layout, UnreachableError
from perflint.fixes.names import Names
from perflint.fixes.precedence import Binding, binding_of_text, needed_at, spans_lines
from perflint.fixes.statements import Statements
from perflint.syntax.plain_bindings import as_written, is_part
from perflint.syntax.tree import FunctionNode, Tree


class Codemods:
    """Builds edits of one file. Only touched expressions change; everything around them stays byte for byte."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.source = tree.source

    @cached_property
    def _layout(self) -> Layout:
        return Layout(self.tree)

    @cached_property
    def _statements(self) -> Statements:
        return Statements(self._layout)

    @cached_property
    def _names(self) -> Names:
        return Names(self._layout)

    @cached_property
    def _imports(self) -> Imports:
        return Imports(self._layout, self._names)

    # Calls.

    def set_keyword(self, call: ast.Call, name: str, value: str) -> Edit:
        """Give a call the keyword `name=value`, replacing the value it has, laid out as its other arguments are.

        A new one goes behind the last argument, before a final `**mapping`; that `**mapping` does not hold it already
        is for the caller to know.
        """
        for item in call.keywords:
            if item.arg == name:
                return self.replace(item.value, value)
        if binding_of_text(value) <= Binding.NAMED:
            value = f"({value})"
        if self._breaks_string(call, value):
            return NOWHERE
        try:
            return Arguments(self._layout, call).add(f"{name}={value}")
        except UnreachableError:
            return NOWHERE

    def set_argument(self, call: ast.Call, position: int, name: str, value: str) -> Edit:
        """Give a call the argument `name`, in the place of what it is given at that position, else by its name."""
        if len(call.args) > position:
            return self.replace(call.args[position], value)
        return self.set_keyword(call, name, value)

    def remove_keyword(self, call: ast.Call, name: str) -> Edit:
        """Take `name=...` out of a call that has it."""
        found = next((item for item in call.keywords if item.arg == name), None)
        return NOWHERE if found is None else self.remove_argument(call, found)

    def remove_argument(self, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
        """Take one of a call's own arguments out of it, with its comma."""
        try:
            return Arguments(self._layout, call).remove(argument)
        except UnreachableError:
            return NOWHERE

    # Expressions.

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Write `text` in the place of `node`, in parentheses where that place asks for them."""
        if self._breaks_string(node, text) or is_part(node):
            return NOWHERE
        try:
            start, end = self._layout.range(node)
            if isinstance(node, ast.expr):
                text = self._fitted(node, text)
        except UnreachableError:
            return NOWHERE
        return self._layout.edit(start, end, text)

    def _breaks_string(self, node: ast.AST, text: str) -> bool:
        """Whether `text` would stand in an f-string, which it could end: quotes, backslashes, comments before 3.12."""
        if not any(mark in text for mark in "\"'\\#\n"):
            return False
        return any(isinstance(outer, ast.JoinedStr) for outer in self.tree.ancestors(node))

    def _fitted(self, node: ast.expr, text: str) -> str:
        layout = self._layout
        binding, needed = binding_of_text(text), needed_at(node, self.tree.parent(node))
        if layout.is_bare_generator(node):
            return f"({text})" if binding >= needed else f"(({text}))"
        if isinstance(self.tree.parent(node), ast.withitem) and (binding == Binding.BARE or text.startswith("(")):
            # `with (a, b):` enters two contexts.
            return f"(({text}))"
        own = layout.outer(node) != layout.range(node)
        if binding < needed and not own:
            return f"({text})"
        if not own and spans_lines(text) and not layout.is_bracketed(node):
            return f"({text})"
        return text

    def wrap(self, node: ast.expr, before: str, after: str) -> Edit:
        """`x` becomes `before x after`: `wrap(node, "torch.stack(", ")")`."""
        try:
            text = self._layout.text(node)
            bare = isinstance(node, ast.Tuple) and binding_of_text(text) == Binding.BARE
        except UnreachableError:
            return NOWHERE
        return self.replace(node, f"{before}({text}){after}" if bare else f"{before}{text}{after}")

    def unwrap(self, call: ast.Call, argument: ast.expr | None = None) -> Edit:
        """A call becomes one of its arguments, by default its first."""
        if argument is None:
            argument = call.args[0] if call.args else None
        if argument is None or isinstance(argument, ast.Starred):
            return NOWHERE
        try:
            return self.replace(call, self._layout.text(argument))
        except UnreachableError:
            return NOWHERE

    def expression(self, template: str, **parts: ast.expr) -> str:
        """The text of an expression built of others: `expression("{count} > 0", count=node)`. Each part stands in
        parentheses where its place in the template asks for them, and where it goes over several lines.
        """
        shape = ast.parse(template.format(**{name: name for name in parts}), mode="eval")
        places = [(node, parent) for parent in ast.walk(shape) for node in ast.iter_child_nodes(parent)]
        texts = {}
        for name, part in parts.items():
            text = self.tree.text(part)
            needed = [needed_at(node, parent) for node, parent in places if getattr(node, "id", "") == name]
            binding = binding_of_text(text)
            loose = any(binding < place for place in needed) or binding <= Binding.NAMED
            texts[name] = f"({text})" if loose or spans_lines(text) else text
        return template.format(**texts)

    def receiver(self, node: ast.expr) -> str:
        """The text of an expression as it has to be written before a dot: `(a + b)`."""
        return self.expression("{node}.x", node=node).removesuffix(".x")

    def append_method(self, node: ast.expr, call: str) -> Edit:
        """`x` becomes `x.detach()` for `call="detach()"`, in parentheses where precedence asks for them."""
        layout = self._layout
        try:
            start, end = layout.range(node)
            text = layout.code[start:end]
            outer = layout.outer(node)
            bare = layout.is_bare_generator(node)
        except UnreachableError:
            return NOWHERE
        if bare:
            return layout.edit(start, end, f"({text}.{call})")
        if outer != (start, end):
            return layout.insert(outer[1], f".{call}")
        if binding_of_text(text) < Binding.ATOM:
            return layout.edit(start, end, f"({text}).{call}")
        return layout.insert(end, f".{call}")

    # Statements.

    @property
    def indent_unit(self) -> str:
        """What a block of this file is indented by: tabs stay tabs."""
        return self._layout.indent_unit

    def delete_statement(self, statement: ast.stmt) -> tuple[Edit, ...]:
        """Delete a statement with its lines and the comment behind it; a block that would be empty keeps `pass`.

        `NOWHERE` for all that a function does: its calls would be left calling nothing.
        """
        if self._is_all_of_function(statement) or is_part(statement):
            return (NOWHERE,)
        try:
            return (self._statements.delete(statement),)
        except UnreachableError:
            return (NOWHERE,)

    def _is_all_of_function(self, statement: ast.stmt) -> bool:
        """Whether a function would do nothing any more without the statement."""
        outer = self.tree.parent(statement)
        while (
            isinstance(outer, (ast.If, ast.With)) and outer.body == [statement] and not getattr(outer, "orelse", None)
        ):
            statement, outer = outer, self.tree.parent(outer)
        if not isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        return all(item is statement or _does_nothing(item) for item in outer.body)

    def swap_statements(self, first: ast.stmt, second: ast.stmt) -> tuple[Edit, ...]:
        """Exchange two statements of one block, each with its comments."""
        if is_part(first) or is_part(second):
            return (NOWHERE,)
        return self._statements.swap(first, second)

    def insert_before(self, statement: ast.stmt, text: str) -> Edit:
        """Insert lines above a statement and its decorators, with its indentation."""
        return self._statements.insert_before(as_written(statement), text)

    def insert_after(self, statement: ast.stmt, text: str) -> Edit:
        """Insert lines below a statement, with its indentation."""
        return self._statements.insert_after(as_written(statement), text)

    def decorate(self, function: FunctionNode, decorator: str) -> Edit:
        """Put a decorator (`"@torch.no_grad()"`) directly above the `def`, below the ones that are there."""
        return self._statements.decorate(function, decorator)

    def would_lose_comment(self, node: ast.AST, kept: ast.AST | None = None) -> bool:
        """Whether a comment goes when `node` is deleted or rewritten; a fix that does so is not SAFE.

        For a statement the comment behind it counts, for an argument the one behind it on a line of its own. Comments
        inside `kept`, a part of `node` that stays, do not.
        """
        layout = self._layout
        try:
            if isinstance(node, ast.stmt):
                return self._statements.loses_comment(node)
            start, end = layout.range(node)
            if kept is not None:
                inner = layout.range(kept)
                return layout.has_comment(start, inner[0]) or layout.has_comment(inner[1], end)
            call = self.tree.parent(node)
            if isinstance(call, ast.Call) and node is not call.func and isinstance(node, (ast.expr, ast.keyword)):
                return Arguments(layout, call).loses_comment(node)
            return layout.has_comment(start, end)
        except UnreachableError:
            return True

    # Names.

    def free_name(self, wanted: str) -> str:
        """`wanted`, with a number behind it where the file has that word already."""
        return self._names.free(wanted)

    def ensure_import(
        self, module: str, name: str | None = None, *, at: ast.AST | None = None
    ) -> tuple[str, tuple[Edit, ...]]:
        """How to spell `module` (or `name` of it) at the node `at`, and the import to add where the file has none.

        Without `at` the spelling has to hold anywhere in the file, so that a parameter of the same name rules it out.
        """
        scopes = self._scopes(at)
        spelling = self._names.spelling(module, name, at, scopes)
        if spelling is not None:
            return spelling, ()
        bound = name if name is not None else module.partition(".")[0]
        target = module if name is None else f"{module}.{name}"
        alias = name if name is not None else module
        if not self._names.is_free_for(bound, target if name is not None else bound, at, scopes):
            alias = self._names.free(f"_{target.rpartition('.')[2]}")
        edit = self._imports.add(module, name, alias)
        if at is not None and (self._names.is_maybe(target) or edit.span.line > _first_line(self._top_level(at))):
            return alias, (NOWHERE,)
        return alias, (edit,)

    def _scopes(self, at: ast.AST | None) -> list[ast.AST]:
        """The functions around a node, innermost first, and the class if it stands directly in one."""
        if at is None:
            return []
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
        found = [outer for outer in self.tree.ancestors(at) if isinstance(outer, kinds)]
        return [outer for index, outer in enumerate(found) if not index or not isinstance(outer, ast.ClassDef)]

    def hoist_to_module(
        self, expression: str, wanted: str, *, at: ast.AST | None = None
    ) -> tuple[str, tuple[Edit, ...]]:
        """Bind an expression to a free name below the imports, for use at `at`."""
        name = self._names.free(wanted)
        if not self._imports.can_bind(expression, self._scopes(at)):
            return name, (NOWHERE,)
        if at is not None and not self._imports.runs_before(self._top_level(at), expression):
            return name, (NOWHERE,)
        if at is not None:
            expression = self._dedented(expression, at)
        if spans_lines(expression):
            expression = f"({expression})"
        return name, (self._imports.constant(name, expression),)

    def _dedented(self, expression: str, at: ast.AST) -> str:
        """The lines of an expression as far left as they stand right of the line on which it begins."""
        line: str = self.source.lines[getattr(at, "lineno", 1) - 1]
        indent = line[: len(line) - len(line.lstrip())]
        first, *rest = expression.split("\n")
        texts = (part for part in ast.walk(at) if isinstance(part, (ast.Constant, ast.JoinedStr)))
        broken = any(part.lineno != part.end_lineno for part in texts)
        if broken or not indent or any(part.strip() and not part.startswith(indent) for part in rest):
            return expression
        return "\n".join((first, *(part.removeprefix(indent) for part in rest)))

    def _top_level(self, node: ast.AST) -> ast.stmt:
        holder = node
        for outer in self.tree.ancestors(node):
            if not isinstance(outer, ast.Module):
                holder = outer
        assert isinstance(holder, ast.stmt)
        return holder


def _does_nothing(statement: ast.stmt) -> bool:
    """A docstring, `pass`, `...`, an import that only the function's own statements needed."""
    kinds = (ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
    return isinstance(statement, kinds) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _first_line(statement: ast.stmt) -> int:
    """The line on which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(item.lineno for item in decorators), statement.lineno)
