"""What a rule may ask about the node it is shown, and how it builds the edits of a fix."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Span
from perflint.system.patterns import pattern

if TYPE_CHECKING:
    import libcst

    from perflint.fixes.codemods import Codemods
    from perflint.fixes.concrete import Concrete

_HEADER = pattern(r"(?:async\s+)?(?:def|class)\s+\w+")


class Context(FileFacts):
    """One file being inspected: all that is known of its nodes, and the edits that a rule makes of it."""

    def span(self, node: ast.AST) -> Span:
        """Where a finding at `node` points: loops, functions and classes are pointed at by their header."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            end = self.tree.span(node.iter)
        elif isinstance(node, ast.While):
            end = self.tree.span(node.test)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            start = self.tree.span(node)
            line = self.source.lines[start.line - 1]
            words = _HEADER.match(line, start.column - 1)
            return Span(start.line, start.column, start.line, (words.end() if words else len(line)) + 1)
        else:
            return self.tree.span(node)
        start = self.tree.span(node)
        return Span(start.line, start.column, end.end_line, end.end_column)

    @cached_property
    def edit(self) -> Codemods:
        """Builds the edits of fixes."""
        from perflint.fixes.codemods import Codemods

        return Codemods(self.tree)

    @cached_property
    def concrete(self) -> Concrete:
        """The lossless tree of libcst, parsed when it is first asked: nodes, metadata, and edits made of nodes."""
        from perflint.fixes.concrete import Concrete

        return Concrete(self.tree)

    def cst(self, node: ast.AST) -> libcst.CSTNode:
        """The libcst node of an `ast` node, for matchers; `ctx.concrete` has its metadata and makes edits of it.

        Raises RuleError for what has no place of its own in libcst's tree.
        """
        return self.concrete.node_of(node)
