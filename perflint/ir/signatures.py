"""Signatures of functions: their parameters with annotations and defaults, as summaries have them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from sys import intern

from perflint.ir.notation import DEPTH, LONGEST_TEXT, annotation_text, value_of
from perflint.ir.sharing import Sharing
from perflint.ir.summary import UNCLEAR, Param, Value, record
from perflint.ir.targets import Targets

#: Parts of an annotation that read as they do alone.
_PLAIN = frozenset({ast.Name, ast.Attribute, ast.Subscript})


class Signatures(Targets):
    """Writes down what parameters and annotations name."""

    def __init__(self, sharing: Sharing) -> None:
        super().__init__(sharing)
        self.params = sharing.params

    def value(self, node: ast.expr, depth: int = DEPTH) -> Value:
        """Write down what an expression holds."""
        raise NotImplementedError

    def many(self, nodes: Iterable[ast.expr | None]) -> None:
        """Write down several whose values nobody wants."""
        raise NotImplementedError

    def parameters(self, arguments: ast.arguments) -> tuple[Param, ...]:
        """The parameters of a function, in the order of its text."""
        defaults: list[ast.expr | None] = [*arguments.defaults]
        if defaults:
            self.many(defaults)
        if arguments.kw_defaults:
            self.many(arguments.kw_defaults)
        positional = [*arguments.posonlyargs, *arguments.args] if arguments.posonlyargs else arguments.args
        made = self.params_of("", positional, [None] * (len(positional) - len(defaults)) + defaults)
        named = self.params_of("=", arguments.kwonlyargs, arguments.kw_defaults) if arguments.kwonlyargs else ()
        if arguments.vararg is not None:
            made += self.params_of("*", [arguments.vararg], [None])
        made += named
        if arguments.kwarg is not None:
            made += self.params_of("**", [arguments.kwarg], [None])
        params = tuple(made)
        return self.once(params, params)  # type: ignore[no-any-return]

    def params_of(self, prefix: str, arguments: Sequence[ast.arg], defaults: Sequence[ast.expr | None]) -> list[Param]:
        known = self.params
        made: list[Param] = []
        for argument, default in zip(arguments, defaults):
            annotation = argument.annotation
            told = (
                intern(prefix + argument.arg) if prefix else argument.arg,
                "" if annotation is None else self.annotation(annotation),
                None if default is None else value_of(default) or UNCLEAR,
            )
            param = known.get(told)
            if param is None:
                param = known[told] = record(Param, told)
            made.append(param)
        return made

    def annotation(self, node: ast.expr | None) -> str:
        """An annotation as text."""
        kind = type(node)
        if kind is ast.Name:
            self.identifiers.add(node.id)  # type: ignore[union-attr]
            return node.id  # type: ignore[union-attr, no-any-return]
        if node is None:
            return ""
        if kind is ast.Subscript and type(node.value) in _PLAIN and type(node.slice) in _PLAIN:  # type: ignore[attr-defined]
            return f"{self.annotation(node.value)}[{self.annotation(node.slice)}]"[:LONGEST_TEXT]  # type: ignore[attr-defined]
        value = self.value(node, 0)
        return value[:LONGEST_TEXT] if kind is ast.Attribute and type(value) is str else annotation_text(node)
