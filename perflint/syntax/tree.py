"""Syntax trees with parents: what encloses a node, and the exact text and span of it.

Pure: no I/O, no knowledge of PyTorch or of rules. Trees are the standard library's `ast`, because it is an order of
magnitude cheaper than a lossless parser; libcst reads only what is rewritten.
"""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from perflint.finding import Span
from perflint.syntax.file import SourceFile
from perflint.syntax.qualnames import qualnames
from perflint.syntax.walk import (
    APART,
    SOMETIMES,
    STATEMENTS,
    block_with,
    children,
    outline_below,
    own_below,
    walk,
    walk_own,
)
from perflint.system.patterns import pattern

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
ScopeNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
LoopNode: TypeAlias = ast.For | ast.AsyncFor | ast.While
_Node = TypeVar("_Node", bound=ast.AST)

#: The same, to ask nodes for.
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: What may begin before the place of its node, or has none.
_BEGIN_BEFORE = frozenset({*FUNCTIONS, ast.ClassDef, ast.match_case})

#: Statements that evaluate some of what stands in them more often than themselves, or in another scope.
_EVALUATE_APART = frozenset({ast.While, *FUNCTIONS})

#: What may stand behind the name of a callee: `model(x)`, `(model)(x)`, `DataLoader[int](x)`, with a comment between.
_BRACKET_FOLLOWS = pattern(r"(?:[\s\\)\]]|#[^\n]*\n)*[(\[]")

#: A column, and a place, behind all others.
_FAR = 1_000_000_000
_END = (_FAR, _FAR)


class Tree:
    """The syntax tree of one file with parent links, made once per file that is inspected.

    Nothing is linked before it is asked about: statements with the function that they stand in, what stands in a
    statement when somebody asks for the parent of a node there. Most statements are never asked about.

    Parents are kept beside the nodes: a link in each node would make every tree a knot that only the garbage collector
    can free, and collecting is what a run puts off.
    """

    def __init__(self, source: SourceFile, module: ast.Module) -> None:
        self.source = source
        self.module = module
        self._parents: dict[int, ast.AST] = {id(statement): module for statement in module.body}
        self._outlines: dict[int, list[ast.AST]] = {}
        #: By such an outline, where what is in it begins.
        self._starts: dict[int, list[tuple[int, int]]] = {}
        self._own: dict[int, list[ast.AST]] = {}
        self._all_linked = False
        self._names: dict[tuple[int, str], list[ast.Name]] = {}
        self._loops: dict[int, tuple[LoopNode, ...]] = {}
        self._standing: dict[int, tuple[ast.AST, bool]] = {}
        #: By statement, the function around it, or the module.
        self._functions: dict[int, FunctionNode | ast.Module] = {}
        self._qualnames: dict[int, str] = {}
        self._qualified: list[tuple[str, ast.AST]] | None = None
        #: The lines as one text.
        self._text = ""

    def outline(self, top: ast.stmt) -> list[ast.AST]:
        """A statement of the module, or a function that stands in no other, and the statements below it, with handlers
        and cases, in the order of the source. What stands in a function is in the outline of that function alone.
        """
        known = self._outlines.get(id(top))
        if known is None:
            known = self._outlines[id(top)] = outline_below(top, self._parents)
        return known

    def own(self, statement: ast.AST) -> list[ast.AST]:
        """What stands in a statement of an outline and in none of the others, in the order of `walk`."""
        key = id(statement)
        if key in self._own:
            return self._own[key]
        found = self._own[key] = own_below(statement, self._parents)
        return found

    def naming(
        self, words: Iterable[str], region: ast.stmt | ast.Module, called: Collection[str] = ()
    ) -> list[ast.AST]:
        """The statements, handlers and cases of a region that name one of `words`, and perhaps some that do not, in
        the order of the source; words among `called` count only where they may be the name of a callee. Told by the
        text: going through the tree would cost a hundred times as much.
        """
        begin, end = (0, 0), _END
        if not isinstance(region, ast.Module):
            begin, end = start_of(region), (region.end_lineno or region.lineno, region.end_col_offset or 0)
        # Outside of functions there may be functions in the region, which have outlines of their own.
        outline = self._outlines.get(id(region)) if isinstance(region, FUNCTIONS) else None
        if outline is None:
            around = self._outline_at(begin)
            outline = around if around and isinstance(around[0], FUNCTIONS) else None
        found: dict[int, ast.AST] = {}
        for number in self._lines_naming(words, begin[0], end[0], called):
            here = self._at_line(number, outline) if outline is not None else self._on_line(number)
            for item in here:
                if item is region or begin <= start_of(item) < end:
                    found[id(item)] = item
        return [*found.values()]

    def named(self, name: str, region: ast.AST) -> list[ast.Name]:
        """The plain names in a region that are `name`, in the order of the source."""
        found = self._names.get((id(region), name))
        if found is None:
            if isinstance(region, (ast.stmt, ast.Module)):
                parts = [part for statement in self.naming((name,), region) for part in self.own(statement)]
            else:
                parts = walk(region)
            found = [part for part in parts if part.__class__ is ast.Name and part.id == name]
            self._names[id(region), name] = found
        return found

    def around(self, place: tuple[int, int]) -> list[ast.AST]:
        """What stands in the statement at a place."""
        statement = self._last_before(place, self._outline_at(place))
        return self.own(statement) if statement is not None else []

    def _lines_naming(self, words: Iterable[str], first: int, last: int, called: Collection[str]) -> list[int]:
        """The lines from `first` to `last` in which one of `words` stands, as `naming` counts them. All of them are
        looked through as one text: to ask line by line for each name of a module would grow with the square of a long
        file.
        """
        lines = self.source.lines
        if first == 0 and not self._text:
            self._text = "\n".join(lines)
        text = self._text if first == 0 else "\n".join(lines[first - 1 : last])
        found: set[int] = set()
        for word in words:
            number, counted = max(first, 1), 0
            is_called = word in called
            place = text.find(word)
            while place >= 0:
                end = place + len(word)
                if _is_word(text, place, end) and (not is_called or _BRACKET_FOLLOWS.match(text, end)):
                    number += text.count("\n", counted, place)
                    found.add(number)
                    end = text.find("\n", end)
                    if end < 0:
                        break
                    counted = end
                place = text.find(word, end)
        return sorted(found)

    def _on_line(self, number: int) -> list[ast.AST]:
        """The statements of the file that may stand on a line."""
        found: list[ast.AST] = []
        for top in self._at_line(number, self.module.body):
            for item in self._at_line(number, self.outline(top)):
                if isinstance(item, FUNCTIONS) and not isinstance(top, FUNCTIONS):
                    found += self._at_line(number, self.outline(item))
                else:
                    found.append(item)
        return found

    def _at_line(self, number: int, outline: Sequence[_Node]) -> list[_Node]:
        """Of an outline, what may stand on a line: what begins there, and what is before it and ends no earlier."""
        starts, found = self._starts_of(outline), []
        index = bisect_right(starts, (number, _FAR)) - 1
        while index >= 0 and starts[index][0] == number:
            found.append(outline[index])
            index -= 1
        if index >= 0 and getattr(outline[index], "end_lineno", number) >= number:
            found.append(outline[index])
        found.reverse()
        return found

    def _starts_of(self, outline: Sequence[ast.AST]) -> list[tuple[int, int]]:
        key = id(outline)
        try:
            return self._starts[key]
        except KeyError:
            found = self._starts[key] = [
                (item.lineno, item.col_offset) if item.__class__ not in _BEGIN_BEFORE else start_of(item)  # type: ignore[attr-defined]
                for item in outline
            ]
        return found

    def _last_before(self, place: tuple[int, int], outline: Sequence[_Node]) -> _Node | None:
        """The last statement that begins at `place` or before it: the one that holds what stands there."""
        index = bisect_right(self._starts_of(outline), place)
        return outline[index - 1] if index else None

    def _link_around(self, node: ast.AST) -> None:
        """Link the statement that `node` stands in; all of them where its place does not tell which."""
        place = _place(node)
        if place is not None:
            self.around(place)
        if id(node) not in self._parents and not self._all_linked:
            self._link_all()

    def _outline_at(self, place: tuple[int, int]) -> list[ast.AST]:
        top = self._last_before(place, self.module.body)
        if top is None:
            return []
        outline = self.outline(top)
        function = self._last_before(place, outline)
        return self.outline(function) if isinstance(function, FUNCTIONS) and not isinstance(top, FUNCTIONS) else outline

    def _link_all(self) -> None:
        self._all_linked = True
        for top in self.module.body:
            outline = self.outline(top)
            functions = () if isinstance(top, FUNCTIONS) else [item for item in outline if isinstance(item, FUNCTIONS)]
            for inner in (outline, *map(self.outline, functions)):
                for statement in inner:
                    self.own(statement)

    def walk(self, node: ast.AST) -> list[ast.AST]:
        """`node` and all below it, without contexts and operators; outer before inner, in the order of the source."""
        return walk(node)

    def body(self, function: FunctionNode) -> list[ast.AST]:
        """All that stands in the body of a function and runs when it does: nested functions, lambdas and classes are
        left out, unless they are statements of that body.
        """
        outline = self._outlines.get(id(function), ())
        if outline and all(id(statement) in self._own for statement in outline):
            # All of it was gone through already.
            found = [part for statement in outline[1:] for part in (statement, *self._own[id(statement)])]
            if not any(part.__class__ in APART for part in found):
                return found
        known = self.walk(function)
        behind = [*function.decorator_list, function.returns, *getattr(function, "type_params", ())]
        after = next((item for item in behind if item is not None), None)
        end = known.index(after) if after is not None else len(known)
        found = known[known.index(function.body[0]) : end]
        if not any(part.__class__ in APART for part in found):
            return found
        return [part for item in function.body for part in walk_own(item)]

    def parent(self, node: ast.AST) -> ast.AST | None:
        key = id(node)
        try:
            return self._parents[key]  # most are there: a look-up that cannot fail costs a call less
        except KeyError:
            if node is self.module:
                return None
        self._link_around(node)
        return self._parents.get(key)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent of `node` up to the module."""
        current = self.parent(node)
        while current is not None:
            yield current
            current = self.parent(current)

    def expressions_around(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent of `node` up to the statement that it stands in, which is left out."""
        return itertools.takewhile(lambda outer: outer.__class__ not in STATEMENTS, self.ancestors(node))

    def standing(self, node: ast.AST) -> tuple[ast.AST, bool]:
        """The innermost statement that is or holds `node`, and whether `node` is evaluated whenever it is, in the same
        scope: no condition, comprehension or lambda stands between them. What stands in no statement has the outermost
        node around it instead.
        """
        if node.__class__ in STATEMENTS:
            return node, True
        key = id(node)
        if key in self._standing:
            return self._standing[key]
        current, always = node, True
        while current.__class__ not in STATEMENTS:
            outer = self.parent(current)
            if outer is None:
                break
            if outer.__class__ in SOMETIMES:
                always = False
            current = outer
        found = current, always
        if current is not node:  # else it may be no part of the tree, and gone tomorrow
            self._standing[key] = found
        return found

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that is or holds `node`."""
        found, _ = self.standing(node)
        if found.__class__ not in STATEMENTS:
            raise LookupError("the node belongs to no statement of this tree")
        return found

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements beside one, itself among them."""
        return block_with(self.parent(statement), statement)

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost `def` around `node` (lambdas belong to the function they stand in)."""
        statement, _ = self.standing(node)
        if isinstance(statement, FUNCTIONS) and statement is not node:
            return statement
        found = self._function_around(statement)
        return None if isinstance(found, ast.Module) else found

    def scope_of(self, node: ast.AST) -> ScopeNode | ast.Module:
        child = node
        while child.__class__ not in STATEMENTS:
            outer = self.parent(child)
            if outer is None or isinstance(outer, SCOPES):
                return outer or self.module
            child = outer
        return self._function_around(child)

    def outermost_scope(self, node: ast.AST) -> ScopeNode | ast.Module:
        """The outermost function or lambda around a node, or the module."""
        found = self.scope_of(node)
        while not isinstance(found, ast.Module) and not isinstance(outer := self.scope_of(found), ast.Module):
            found = outer
        return found

    def _function_around(self, statement: ast.AST) -> FunctionNode | ast.Module:
        # A chain of `elif` may be hundreds long: each of its branches is gone up from once.
        passed: list[ast.AST] = []
        known = self._functions.get(id(statement))
        while known is None:
            passed.append(statement)
            outer = self.parent(statement)
            if outer is None:
                known = self.module
            elif isinstance(outer, FUNCTIONS):
                known = outer
            else:
                known, statement = self._functions.get(id(outer)), outer
        for inner in passed:
            if id(inner) in self._parents:  # else it may be no part of the tree, and gone tomorrow
                self._functions[id(inner)] = known
        return known

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose body holds `node`, looked for through functions: `self` in a nested function is its."""
        outer = self.parent(node)
        while outer is not None and not isinstance(outer, ast.ClassDef):
            outer = self.parent(outer)
        return outer

    def loops_around(self, node: ast.AST) -> list[LoopNode]:
        """Loops of the same function whose body (not header, not `else`) holds `node`, innermost first."""
        statement, always = self.standing(node)
        if always and statement.__class__ not in _EVALUATE_APART:
            return [*self._loops_around(statement)]
        found: list[LoopNode] = []
        child: ast.AST = node
        while type(child) not in STATEMENTS:
            outer = self.parent(child)
            if outer is None or isinstance(outer, SCOPES):
                return found
            # A `while` test is evaluated every turn; a `for` iterable only once.
            if isinstance(outer, ast.While) and child is outer.test:
                found.append(outer)
            child = outer
        return [*found, *self._loops_around(child)]

    def _loops_around(self, statement: ast.AST) -> tuple[LoopNode, ...]:
        # A chain of `elif` may be hundreds long: gone up in a loop, not by recursion.
        passed: list[tuple[ast.AST, ast.AST]] = []
        known = self._loops.get(id(statement))
        while known is None:
            outer = self.parent(statement)
            if outer is None:
                known = ()
            else:
                passed.append((statement, outer))
                known = () if isinstance(outer, SCOPES) else self._loops.get(id(outer))
                statement = outer
        for inner, outer in reversed(passed):
            if isinstance(outer, LOOPS) and inner in outer.body:
                known = (outer, *known)
            self._loops[id(inner)] = known
        return known

    @property
    def qualified(self) -> list[tuple[str, ast.AST]]:
        """All functions and classes with their qualified names, in the order of the source."""
        # No `cached_property`: it makes the interpreter look up all other attributes the long way from then on.
        if self._qualified is None:
            self._qualified = qualnames(self.module)
        return self._qualified

    def qualname(self, node: FunctionNode | ast.ClassDef) -> str:
        """`Class.method`, `function.<locals>.inner`: what summaries call it."""
        if not self._qualnames:
            self._qualnames = {id(one): name for name, one in self.qualified}
        return self._qualnames[id(node)]

    def span(self, node: ast.AST) -> Span:
        return self.source.span_of(node)

    def text(self, node: ast.AST) -> str:
        return self.source.text_of(node)


def start_of(statement: ast.AST) -> tuple[int, int]:
    """Where a statement begins, a handler or a case; decorators belong to what they decorate."""
    if statement.__class__ in _BEGIN_BEFORE:
        if isinstance(statement, ast.match_case):
            statement = statement.pattern
        elif statement.decorator_list:  # type: ignore[attr-defined]
            statement = statement.decorator_list[0]  # type: ignore[attr-defined]
    return statement.lineno, statement.col_offset  # type: ignore[attr-defined]


def _place(node: ast.AST) -> tuple[int, int] | None:
    """Where a node stands, or the first thing in it; None for what has no place."""
    while not hasattr(node, "lineno"):
        below = children(node)
        if not below:
            return None
        node = below[0]
    # Decorators stand before the line that a function or a class is said to be on.
    return start_of(node)


def _is_word(text: str, begin: int, end: int) -> bool:
    """Whether nothing beside a part of a text belongs to the same name."""
    before, after = text[begin - 1 : begin], text[end : end + 1]
    return not (before.isalnum() or before == "_" or after.isalnum() or after == "_")
