"""Path conditions of a function's calls: the tests of `if` statements around them, and of those before that leave.

They are kept as regions of source, as contexts are, so that what stands in a region is told by its place. Regions in
which nothing is called, and no name kept in `self`, are left out: what a file's own statements stand under, its tree
tells.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeAlias

from perflint.ir.computed import expression
from perflint.ir.leaving import ends_block, never_holds
from perflint.ir.summary import Branch, Value, record

_Place: TypeAlias = "tuple[int, int]"
_Placed: TypeAlias = "ast.stmt | ast.expr"


def branches_of(
    body: list[ast.stmt], places: list[_Place], arms: Sequence[tuple[ast.expr, bool, ast.expr]] = ()
) -> tuple[Branch, ...]:
    """The branches of a function's body in which some of `places` stand, each after the one it is in. `arms` are parts
    of expressions with calls in them, with a test before each and what it comes to.
    """
    finder = _Finder(sorted(places))
    finder.block(body, -1)
    if arms:
        finder.expressions(arms)
    return tuple(finder.found)


class _Finder:
    def __init__(self, places: list[_Place]) -> None:
        self.places = places
        self.found: list[Branch] = []

    def block(self, body: list[ast.stmt], parent: int) -> None:
        """What stands in a block of statements, under the branch `parent`."""
        for number, statement in enumerate(body):
            kind = type(statement)
            if kind is ast.If:
                parent = self._if(statement, parent, body[number + 1 :])  # type: ignore[arg-type]
            elif never_holds(statement) and body[number + 1 :]:
                test = expression(statement.test)  # type: ignore[attr-defined]
                parent = self._push(test, body[number + 1], body[-1], parent, truth=True)
            elif kind in _HOLDING:
                for inner in _blocks(statement):
                    self.block(inner, parent)

    def _if(self, node: ast.If, parent: int, rest: list[ast.stmt]) -> int:
        """The branch that what follows an `if` stands under."""
        after = parent
        if not self._calls_in(node, rest[-1] if rest else node):
            return parent
        leaves = bool(rest)
        first = node
        while True:
            test = expression(node.test)
            self.block(node.body, self._push(test, node.body[0], node.body[-1], parent, truth=True))
            leaves = leaves and ends_block(node.body)
            if leaves:  # what follows runs where none of the tests held
                after = self._push(test, rest[0], rest[-1], after, truth=False)
            otherwise = node.orelse
            if not otherwise:
                break
            inside = self._push(test, otherwise[0], otherwise[-1], parent, truth=False)
            if len(otherwise) > 1 or type(otherwise[0]) is not ast.If:
                self.block(otherwise, inside)
                break
            node, parent = otherwise[0], inside
        if rest and not ends_block(first.body) and ends_block(first.orelse):
            after = self._push(expression(first.test), rest[0], rest[-1], after, truth=True)
        return after

    def expressions(self, arms: Sequence[tuple[ast.expr, bool, ast.expr]]) -> None:
        """Parts of expressions, in the innermost branch around each."""
        outermost = sorted(arms, key=lambda arm: (arm[2].lineno, arm[2].col_offset, -_end(arm[2])[0], -_end(arm[2])[1]))
        for test, truth, part in outermost:
            self._push(expression(test), part, part, self._around(part), truth=truth)

    def _around(self, part: ast.expr) -> int:
        for index in range(len(self.found) - 1, -1, -1):
            item = self.found[index]
            if (item.line, item.column) <= (part.lineno, part.col_offset) and _end(part) <= item[5:]:
                return index
        return -1

    def _push(self, test: Value, first: _Placed, last: _Placed, parent: int, *, truth: bool) -> int:
        if test is None or not self._calls_in(first, last):
            return parent
        self.found.append(record(Branch, (parent, test, truth, first.lineno, first.col_offset, *_end(last))))
        return len(self.found) - 1

    def _calls_in(self, first: _Placed, last: _Placed) -> bool:
        at = bisect_left(self.places, (first.lineno, first.col_offset))
        return at < len(self.places) and self.places[at] < _end(last)


def _end(node: _Placed) -> _Place:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


_HOLDING = frozenset(
    {ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, getattr(ast, "TryStar", ast.Try), ast.Match}
)


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement that is no `if`."""
    if isinstance(node, ast.Match):
        return [case.body for case in node.cases]
    found = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    found += [handler.body for handler in getattr(node, "handlers", ())]
    return [block for block in found if block]
