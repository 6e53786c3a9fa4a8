"""libcst's lossless tree of one file, for rules that build their edits from libcst nodes and matchers.

Rules are shown nodes of the standard library's `ast`, which is far cheaper to parse; the file is parsed by libcst only
when a rule asks for its node of one of them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perflint.errors import RuleError
from perflint.finding import Edit, Span
from perflint.syntax.plain_bindings import as_written
from perflint.syntax.tree import Tree

if TYPE_CHECKING:
    import libcst
    from libcst.metadata import CodeRange, MetadataWrapper

_Position = tuple[int, int, int, int]


class Concrete:
    """Finds the libcst node of an `ast` node, its metadata, and the edits that put another node in its place."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def wrapper(self) -> MetadataWrapper:
        """The module with its metadata. Raises RuleError where libcst cannot parse the file."""
        import libcst
        from libcst.metadata import MetadataWrapper

        try:
            module = libcst.parse_module(self.tree.source.text)
        except libcst.ParserSyntaxError as error:
            raise RuleError(f"libcst cannot parse {self.tree.source.path}: {error.message}") from error
        return MetadataWrapper(module, unsafe_skip_copy=True)

    @cached_property
    def _ranges(self) -> dict[libcst.CSTNode, CodeRange]:
        from libcst.metadata import PositionProvider

        return dict(self.wrapper.resolve(PositionProvider))

    @cached_property
    def _nodes(self) -> dict[_Position, list[libcst.CSTNode]]:
        """Nodes by their place, outer ones first."""
        found: dict[_Position, list[libcst.CSTNode]] = {}
        for node, at in self._ranges.items():
            found.setdefault((at.start.line, at.start.column, at.end.line, at.end.column), []).append(node)
        return found

    def node_of(self, node: ast.AST) -> libcst.CSTNode:
        """The libcst node for an expression, a statement, an argument's name or an `except` clause of the `ast`.

        An expression gives an expression, without the statement or the argument that is nothing but it. Raises
        RuleError for what has no place of its own in libcst's tree.
        """
        if not hasattr(node, "lineno"):
            raise RuleError(f"libcst has no node for this {type(node).__name__}, which has no place of its own")
        span = self.tree.span(as_written(node) if isinstance(node, ast.stmt) else node)
        exact = (span.line, span.column - 1, span.end_line, span.end_column - 1)
        # `ast` counts the call's brackets to a generator that is its only argument.
        inner = (span.line, span.column, span.end_line, span.end_column - 2)
        for place in (exact, inner):
            for found in self._nodes.get(place, ()):
                if isinstance(found, _types_for(node)):
                    return found
        raise RuleError(f"libcst has no node for this {type(node).__name__} at line {span.line}")

    def metadata(self, provider: type[Any], node: libcst.CSTNode) -> Any:
        """What a libcst metadata provider says of a node of this tree, None where it says nothing."""
        return self.wrapper.resolve(provider).get(node)

    def replace(self, old: libcst.CSTNode, new: libcst.CSTNode) -> tuple[Edit, ...]:
        """The edits that put `new` where `old`, a node of this tree, is. Parentheses around `old` stay."""
        at = self._ranges[old]
        span = Span(at.start.line, at.start.column + 1, at.end.line, at.end.column + 1)
        if getattr(old, "lpar", ()) and hasattr(new, "lpar"):
            new = new.with_changes(lpar=(), rpar=())
        return (Edit(span, self.wrapper.module.code_for_node(new)),)


def _types_for(node: ast.AST) -> tuple[type[libcst.CSTNode], ...]:
    """What the libcst node of an `ast` node may be: several nodes of libcst's tree can have one place."""
    import libcst

    if isinstance(node, ast.expr):
        return (libcst.BaseExpression, libcst.StarredElement)
    if isinstance(node, ast.stmt):
        return (libcst.BaseSmallStatement, libcst.BaseCompoundStatement)
    others: Sequence[tuple[type[ast.AST], type[libcst.CSTNode]]] = (
        (ast.arg, libcst.Param),
        (ast.keyword, libcst.Arg),
        (ast.ExceptHandler, libcst.ExceptHandler),
        (ast.alias, libcst.ImportAlias),
        (ast.withitem, libcst.WithItem),
    )
    return tuple(concrete for abstract, concrete in others if isinstance(node, abstract)) or (libcst.CSTNode,)
