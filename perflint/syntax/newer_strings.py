"""Formatted strings of later Pythons as tuples of their expressions, and back into formatted strings.

`f"a {x!r:>{w}} b"` becomes `(    x,  >  w,   )` with every expression where it was; implicitly joined strings
become one tuple. In the tree that tuple is replaced by the `JoinedStr` the strings mean.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from perflint.syntax.rewriting import Position, Rewriting
from perflint.syntax.scan import Field, Kind, Literal, Token
from perflint.system.patterns import pattern

_Expression = TypeVar("_Expression", bound=ast.expr)
_ESCAPE = pattern(r"\\(?:\r\n|N\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_DEBUG_END = pattern(r"\s*=\s*")


def groups_of(tokens: list[Token], version: tuple[int, int]) -> Iterator[StringGroup]:
    """Runs of adjacent strings that hold a formatted one which Python `version` may not read, inner ones after."""
    yield from _groups(tokens, version, depth=0)


def _groups(tokens: list[Token], version: tuple[int, int], depth: int) -> Iterator[StringGroup]:
    run: list[Token] = []
    before: Token | None = None
    for token in tokens:
        if token.kind is Kind.STRING:
            run.append(token)
        elif token.kind is Kind.COMMENT or (token.kind is Kind.NEWLINE and depth):
            continue
        else:
            yield from _group(run, before, version)
            run, before = [], token
            depth = max(depth + token.opens, 0)
    yield from _group(run, before, version)


def _group(run: list[Token], before: Token | None, version: tuple[int, int]) -> Iterator[StringGroup]:
    is_newer = any(
        token.parts is not None and (version < (3, 12) or ("t" in token.prefix and version < (3, 14))) for token in run
    )
    # A string without an end, bytes, or fields that do not read: the text is wrong and must stay so.
    is_sound = all(one.closed and "b" not in one.prefix and _is_formatted(one) for one in run)
    if is_newer and is_sound:
        yield StringGroup(tuple(run), before)
    for token in run:
        for field in _fields(token.parts or ()):
            yield from _groups(field.tokens, version, depth=1)


def _is_formatted(token: Token) -> bool:
    """Whether its prefix says the same as what was found inside."""
    return (token.parts is not None) == ("f" in token.prefix or "t" in token.prefix)


def _fields(parts: list[Literal | Field] | tuple[()]) -> Iterator[Field]:
    """Replacement fields in order, those in format specifications included."""
    for part in parts:
        if isinstance(part, Field):
            yield part
            yield from _fields(part.spec or ())


@dataclass(frozen=True)
class StringGroup:
    """Adjacent strings that are one value. `before` is the token in front of them."""

    tokens: tuple[Token, ...]
    before: Token | None

    def extent(self, rewriting: Rewriting) -> tuple[Position, Position]:
        return rewriting.position(self.tokens[0].start), rewriting.position(self.tokens[-1].end)

    def rewrite(self, rewriting: Rewriting) -> None:
        """Make a tuple of the expressions. A string that cannot stand here (`name f"..."`) stays as it is."""
        if self.before is not None and not _may_precede(rewriting.original[self.before.start : self.before.end]):
            return
        for token in self.tokens:
            if token.parts is None:
                rewriting.blank(token.start, token.end)
                continue
            position = token.start
            for field in _fields(token.parts):
                rewriting.blank(position, field.start + 1)
                position = field.stop
                if not _ends_in_comma(field, rewriting.original):
                    rewriting.replace(field.stop, ",")
                    position += 1
            rewriting.blank(position, token.end)
        rewriting.replace(self.tokens[0].start, "(")
        rewriting.replace(self.tokens[-1].end - 1, ")")

    def node(self, found: ast.Tuple, rewriting: Rewriting) -> ast.JoinedStr:
        """The formatted string, given the tuple of its expressions."""
        values: list[ast.expr] = []
        builder = _Builder(found, rewriting)
        for token in self.tokens:
            if token.parts is None:
                text = ast.literal_eval(rewriting.original[token.start : token.end])
                builder.add_text(values, text, token.start, token.end)
            else:
                builder.add_parts(values, token.parts, raw="r" in token.prefix)
        return ast.copy_location(ast.JoinedStr(values), found)


def _may_precede(word: str) -> bool:
    """Whether a string after `word` is an operand; after a name or a closing bracket the text is wrong."""
    if word.isidentifier():
        return keyword.iskeyword(word) or word == "match"
    return word not in {")", "]", "}"}


def _ends_in_comma(field: Field, text: str) -> bool:
    code = [one for one in field.tokens if one.kind not in {Kind.NEWLINE, Kind.COMMENT}]
    return bool(code) and text[code[-1].start : code[-1].end] == ","


class _Builder:
    def __init__(self, found: ast.Tuple, rewriting: Rewriting) -> None:
        self._rewriting = rewriting
        self._elements = [((one.lineno, one.col_offset), one) for one in found.elts]

    def add_parts(self, values: list[ast.expr], parts: list[Literal | Field], *, raw: bool) -> None:
        for part in parts:
            if isinstance(part, Literal):
                written = self._rewriting.original[part.start : part.end]
                self.add_text(values, _cooked(written, raw=raw), part.start, part.end)
            else:
                self._add_field(values, part, raw=raw)

    def add_text(self, values: list[ast.expr], text: str, start: int, end: int) -> None:
        """Append a constant, or lengthen the one before it: adjacent texts are one."""
        if not text:
            return
        last = values[-1] if values else None
        if isinstance(last, ast.Constant) and isinstance(last.value, str):
            last.value += text
            last.end_lineno, last.end_col_offset = self._rewriting.position(end)
        else:
            values.append(self._placed(ast.Constant(text), start, end))

    def _add_field(self, values: list[ast.expr], field: Field, *, raw: bool) -> None:
        conversion = ord(field.conversion[0]) if field.conversion else -1
        if field.debug:
            equals = _DEBUG_END.match(self._rewriting.original, field.stop)
            end = equals.end() if equals else field.stop
            self.add_text(values, self._rewriting.original[field.start + 1 : end], field.start + 1, end)
            if conversion == -1 and field.spec is None:
                conversion = ord("r")
        spec = None
        value = self._expression(field)
        if field.spec is not None:
            inner: list[ast.expr] = []
            self.add_parts(inner, field.spec, raw=raw)
            spec = self._placed(ast.JoinedStr(inner), field.spec_start - 1, field.end - 1)
        values.append(self._placed(ast.FormattedValue(value, conversion, spec), field.start, field.end))

    def _expression(self, field: Field) -> ast.expr:
        start, stop = self._rewriting.position(field.start), self._rewriting.position(field.stop)
        inside = [element for position, element in self._elements if start <= position < stop]
        is_tuple = len(inside) != 1 or isinstance(inside[0], ast.Starred)
        if not is_tuple and not _ends_in_comma(field, self._rewriting.original):
            return inside[0]
        # `{a, b}` and `{a,}` are tuples, whose elements came out as the outer tuple's own.
        made = ast.Tuple(inside, ast.Load())
        made.lineno, made.col_offset = self._rewriting.position(field.start + 1)
        made.end_lineno, made.end_col_offset = stop
        return made

    def _placed(self, node: _Expression, start: int, end: int) -> _Expression:
        node.lineno, node.col_offset = self._rewriting.position(start)
        node.end_lineno, node.end_col_offset = self._rewriting.position(end)
        return node


def _cooked(written: str, *, raw: bool) -> str:
    """Literal text of a formatted string as the value it has."""
    text = written.replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in text:
        return _undoubled(text)
    pieces: list[str] = []
    position = 0
    for escape in _ESCAPE.finditer(text):
        pieces += [_undoubled(text[position : escape.start()]), _unescaped(escape[0])]
        position = escape.end()
    return "".join([*pieces, _undoubled(text[position:])])


def _undoubled(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _unescaped(escape: str) -> str:
    try:
        value: str = ast.literal_eval(f'"""{escape}"""')
    except (SyntaxError, ValueError):  # `\N{no such name}`: Python refuses it, and that is not our business
        return escape
    return value
