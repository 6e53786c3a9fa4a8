"""Syntax that the running interpreter does not know, rewritten so that `ast` reads it at unchanged positions: newer
syntax, and of older code what was a name before it was a keyword.

The text is rewritten character by character into an older form of the same length (in UTF-8 bytes, as `ast` counts
columns), parsed, and the tree is mended where the older form says something else:

    def f[T](x)                 def f(   x)            type parameters are left out (3.12)
    type X[T] = list[T]         pass;X[0] = list[T]    an assignment to `X` (3.12)
    except* E                   except  E              a plain `except` (3.11)
    except A, B                 except A| B            a tuple again (3.14)
    x[*Ts], *args: *Ts          x[ Ts], *args:  Ts     the star is left out (3.11)
    lazy import x               pass;import x          an import (3.15)
    [*x for x in y]             [ x for x in y]        a starred element again (3.15)
    f"{d["k"]}"                 (  d["k"], )           a formatted string again (3.12; `t"..."` 3.14)
    x.cuda(async=True)          x.cuda(asyn_=True)     the name again (a keyword since 3.7)

Nothing is rewritten that the interpreter reads itself. Text that is wrong stays wrong: the result is parsed as ever.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator

from perflint.syntax.newer_strings import StringGroup, groups_of
from perflint.syntax.rewriting import Position, Rewriting
from perflint.syntax.scan import Kind, Token, scan

#: What `async` says as a name meanwhile, and what it is no name before.
_ASYNC = "asyn_"
_ASYNC_STATEMENTS = (["def"], ["for"], ["with"])
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


_NAMED_BY: dict[type[ast.AST], str] = {ast.keyword: "arg", ast.arg: "arg", ast.Name: "id", ast.Attribute: "attr"}


class NewerSyntax:
    """One text, rewritten for Python `version`, and what has to be mended in its tree."""

    def __init__(self, text: str, version: tuple[int, int]) -> None:
        self.rewriting = Rewriting(text)
        self._version = version
        self._groups: dict[tuple[Position, Position], StringGroup] = {}
        self._passes: set[Position] = set()
        self._aliases: set[Position] = set()
        self._spreads: dict[Position, Position] = {}
        self._handlers: dict[Position, int] = {}
        tokens = scan(text)
        for group in groups_of(tokens, version):
            group.rewrite(self.rewriting)
            self._groups[group.extent(self.rewriting)] = group
        self._rewrite_statements(_significant(tokens))

    # Rewriting

    def _rewrite_statements(self, tokens: list[Token]) -> None:
        words = [self._word(token) for token in tokens]
        depth = 0
        starts = True  # whether the token begins a statement
        for index, word in enumerate(words):
            if starts and depth == 0:
                self._soft_keyword(tokens, words, index)
            if word in {"def", "class"} and self._version < (3, 13) and words[index + 2 : index + 3] == ["["]:
                self._parameters(tokens, words, index + 2)
            elif word == "except":
                self._except(tokens, words, index)
            elif word == "async" and words[index + 1 : index + 2] not in _ASYNC_STATEMENTS:
                self.rewriting.replace(tokens[index].start, _ASYNC)
            elif word == "[" and self._version < (3, 11) and index and self._is_value(tokens[index - 1]):
                self._stars_of_index(tokens, words, index)
            elif word == "*" and self._version < (3, 11) and words[index + 2 : index + 4] == [":", "*"] and depth:
                self.rewriting.blank(tokens[index + 3].start, tokens[index + 3].end)
            elif word in {"*", "**"} and self._version < (3, 15) and _is_spread(words, index):
                self.rewriting.blank(tokens[index].start, tokens[index].end)
                opening, star = (self.rewriting.position(tokens[at].start) for at in (index - 1, index))
                self._spreads[opening] = star
            if word in _OPENING:
                depth += 1
            elif word in _CLOSING:
                depth = max(depth - 1, 0)
            starts = word in {";", ":"} or tokens[index].kind is Kind.NEWLINE

    def _word(self, token: Token) -> str:
        return "" if token.kind is Kind.STRING else self.rewriting.original[token.start : token.end]

    def _is_value(self, token: Token) -> bool:
        """Whether a `[` after this token is an index."""
        word = self._word(token)
        return word in {")", "]", ""} or (token.kind is Kind.NAME and not keyword.iskeyword(word))

    def _soft_keyword(self, tokens: list[Token], words: list[str], index: int) -> None:
        """`type X = ...` and `lazy import x`: five characters that `pass;` takes the place of."""
        after = words[index + 1 : index + 3]
        if words[index] == "type" and self._version < (3, 13) and len(after) == 2:
            wanted = after[0].isidentifier() and after[1] in {"=", "["}
        else:
            wanted = words[index] == "lazy" and self._version < (3, 15) and after[:1] in (["import"], ["from"])
        token = tokens[index]
        if not wanted or self.rewriting.original[token.end] not in " \t":
            return
        self.rewriting.replace(token.start, "pass;")
        self._passes.add(self.rewriting.position(token.start))
        if after[1:] == ["["] and words[index] == "type":
            self._aliases.add(self.rewriting.position(tokens[index + 1].start))
            self._blank_inside(tokens, words, index + 2, filler="0")

    def _parameters(self, tokens: list[Token], words: list[str], opening: int) -> None:
        """Type parameters become part of the parentheses after them, so that line ends stay inside brackets."""
        closing = self._blank_inside(tokens, words, opening)
        if closing is None:
            return
        self.rewriting.replace(tokens[opening].start, "(")
        if words[closing + 1 : closing + 2] == ["("]:
            self.rewriting.blank(tokens[closing].start, tokens[closing + 1].end)
        else:
            self.rewriting.replace(tokens[closing].start, ")")

    def _blank_inside(self, tokens: list[Token], words: list[str], opening: int, filler: str = "") -> int | None:
        """Blank what the bracket at `opening` holds; the index of its closing one, None where there is none."""
        depth = 0
        for index in range(opening, len(words)):
            depth += (words[index] in _OPENING) - (words[index] in _CLOSING)
            if depth == 0:
                self.rewriting.blank(tokens[opening].end, tokens[index].start)
                if filler and index > opening + 1:
                    self.rewriting.replace(tokens[opening + 1].start, filler)
                return index
        return None

    def _except(self, tokens: list[Token], words: list[str], index: int) -> None:
        start = index
        if words[index + 1 : index + 2] == ["*"]:
            index += 1
            if self._version < (3, 11):
                self.rewriting.blank(tokens[index].start, tokens[index].end)
        if self._version >= (3, 14):
            return
        commas, depth = [], 0
        for at in range(index + 1, len(words)):
            if words[at] == "," and depth == 0:
                commas.append(tokens[at])
            elif (words[at] == ":" and depth == 0) or tokens[at].kind is Kind.NEWLINE:
                break
            depth += (words[at] in _OPENING) - (words[at] in _CLOSING)
        for comma in commas:
            self.rewriting.replace(comma.start, "|")
        if commas:
            self._handlers[self.rewriting.position(tokens[start].start)] = len(commas)

    def _stars_of_index(self, tokens: list[Token], words: list[str], opening: int) -> None:
        depth = 0
        for index in range(opening, len(words)):
            if depth == 1 and words[index] == "*" and words[index - 1] in {"[", ","}:
                self.rewriting.blank(tokens[index].start, tokens[index].end)
            depth += (words[index] in _OPENING) - (words[index] in _CLOSING)
            if depth == 0:
                return

    # Mending

    def restore(self, tree: ast.Module) -> None:
        """Turn the older forms in `tree` back into what the text says."""
        pending: list[ast.AST] = [tree]
        while pending:
            node = pending.pop()
            self._mend(node)
            for name, value in ast.iter_fields(node):
                if isinstance(value, list):
                    value[:] = [self._restored(item) for item in value]
                    if value and isinstance(value[0], ast.stmt):
                        value[:] = [one for one in value if not self._is_filler(one)]
                    pending += [item for item in value if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST):
                    restored = self._restored(value)
                    setattr(node, name, restored)
                    pending.append(restored)

    def _restored(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Tuple):
            group = self._groups.get(_extent(node))
            if group is not None:
                return group.node(node, self.rewriting)
        return node

    def _is_filler(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Pass) and (node.lineno, node.col_offset) in self._passes

    def _mend(self, node: ast.AST) -> None:
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            star = self._spreads.get((node.lineno, node.col_offset))
            if star is not None:
                element = ast.copy_location(ast.Starred(node.elt, ast.Load()), node.elt)
                element.lineno, element.col_offset = star
                node.elt = element
        field = _NAMED_BY.get(type(node), "")
        if field and getattr(node, field) == _ASYNC:
            setattr(node, field, "async")
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            commas = self._handlers.get((node.lineno, node.col_offset), 0)
            if commas:
                node.type = _tuple_of(node.type, commas)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            name = node.targets[0].value
            if isinstance(name, ast.Name) and (name.lineno, name.col_offset) in self._aliases:
                name.ctx = ast.Store()
                node.targets[0] = name


def _significant(tokens: list[Token]) -> list[Token]:
    """Tokens without comments, and line ends only where they end a statement."""
    return list(_significant_of(tokens))


def _significant_of(tokens: list[Token]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth = max(depth + token.opens, 0)
        if token.kind is Kind.COMMENT or (token.kind is Kind.NEWLINE and depth):
            continue
        yield token


def _is_spread(words: list[str], star: int) -> bool:
    """Whether what a comprehension makes is unpacked: `[*row for row in rows]`."""
    if star == 0 or words[star - 1] not in _OPENING:
        return False
    depth = 0
    for index in range(star + 1, len(words)):
        word = words[index]
        if depth == 0 and word in {"for", ","}:
            return word == "for"
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth < 0:
            return False
    return False


def _extent(node: ast.expr) -> tuple[Position, Position]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _tuple_of(node: ast.expr, commas: int) -> ast.Tuple:
    """`A | B | C` as `A, B, C`."""
    elements: list[ast.expr] = []
    left = node
    for _ in range(commas):
        if not isinstance(left, ast.BinOp):
            break
        elements.insert(0, left.right)
        left = left.left
    return ast.copy_location(ast.Tuple([left, *elements], ast.Load()), node)
