"""Going through syntax trees quickly: only the fields that hold nodes are looked at, once per class of node.

`ast.walk` looks at every field of every node, and half of the nodes it gives are contexts (`ast.Load`) and operators.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

_AST = ast.AST
#: Fields that hold names, numbers and flags, or the nodes that stand for a bare operator or context.
_NO_NODES = frozenset(
    "id attr arg ctx op ops module level is_async simple conversion asname type_comment type_ignores kind tag rest "
    "cls kwd_attrs".split()
)
#: What is evaluated at another time than what stands around it.
APART = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda})
#: Expressions that evaluate some of their parts at times, again and again, or in a scope of their own.
SOMETIMES = frozenset(
    {
        ast.IfExp,
        ast.BoolOp,
        ast.ListComp,
        ast.SetComp,
        ast.GeneratorExp,
        ast.DictComp,
        ast.comprehension,
        ast.Lambda,
    }
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: All classes of statements. That a node is of none of many classes is told faster by a set than by `isinstance`.
STATEMENTS = frozenset(kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.stmt))
#: What an outline consists of: statements, and what stands between a statement and those in it.
OUTLINED = STATEMENTS | {ast.ExceptHandler, ast.match_case}
_LEAVES = (ast.Constant, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue, ast.alias)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a class of nodes that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names: tuple[str, ...] = ()
        if not issubclass(kind, _LEAVES):
            # The class of a `match` pattern is an expression; that of a handler or name is not a field of this name.
            kept = _NO_NODES - {"cls"} if kind is ast.MatchClass else _NO_NODES
            names = tuple(name for name in kind._fields if name not in kept)
        self[kind] = names
        return names


_FIELDS = _Fields()


def _any_children(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [item for item in value if item is not None]
        elif isinstance(value, _AST):
            found.append(value)
    return found


def _in_arguments(node: ast.arguments) -> list[ast.AST]:
    found: list[ast.AST] = [*node.posonlyargs, *node.args]
    if node.vararg is not None:
        found.append(node.vararg)
    if node.kwonlyargs:
        found += [*node.kwonlyargs, *filter(None, node.kw_defaults)]
    if node.kwarg is not None:
        found.append(node.kwarg)
    return [*found, *node.defaults] if node.defaults else found


#: How to get at the children of the commonest nodes, whose fields always hold nodes; None for those without any. Nine
#: of ten nodes are of these classes, and reading their fields by name costs a third of reading them one by one.
_Below: TypeAlias = "Callable[[Any], list[ast.AST]] | None"
_COMMON: dict[type[ast.AST], _Below] = {
    ast.Name: None,
    ast.Constant: None,
    ast.Attribute: lambda node: [node.value],
    ast.Call: lambda node: [node.func, *node.args, *node.keywords],
    ast.keyword: lambda node: [node.value],
    ast.Expr: lambda node: [node.value],
    ast.Assign: lambda node: [*node.targets, node.value],
    ast.AugAssign: lambda node: [node.target, node.value],
    ast.BinOp: lambda node: [node.left, node.right],
    ast.BoolOp: lambda node: [*node.values],
    ast.UnaryOp: lambda node: [node.operand],
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.Subscript: lambda node: [node.value, node.slice],
    ast.Tuple: lambda node: [*node.elts],
    ast.List: lambda node: [*node.elts],
    ast.If: lambda node: [node.test, *node.body, *node.orelse],
    ast.For: lambda node: [node.target, node.iter, *node.body, *node.orelse],
    ast.FormattedValue: lambda node: [node.value] if node.format_spec is None else [node.value, node.format_spec],
    ast.JoinedStr: lambda node: [*node.values],
    ast.Return: lambda node: [] if node.value is None else [node.value],
    ast.arg: lambda node: [] if node.annotation is None else [node.annotation],
    ast.IfExp: lambda node: [node.test, node.body, node.orelse],
    ast.Starred: lambda node: [node.value],
    ast.Slice: lambda node: [item for item in (node.lower, node.upper, node.step) if item is not None],
    ast.ListComp: lambda node: [node.elt, *node.generators],
    ast.GeneratorExp: lambda node: [node.elt, *node.generators],
    ast.comprehension: lambda node: [node.target, node.iter, *node.ifs],
    ast.With: lambda node: [*node.items, *node.body],
    ast.Assert: lambda node: [node.test] if node.msg is None else [node.test, node.msg],
    ast.While: lambda node: [node.test, *node.body, *node.orelse],
    ast.Lambda: lambda node: [node.args, node.body],
    ast.Dict: lambda node: [*filter(None, node.keys), *node.values],
    ast.withitem: lambda node: (
        [node.context_expr] if node.optional_vars is None else [node.context_expr, node.optional_vars]
    ),
    ast.arguments: _in_arguments,
}


class _BelowTable(dict[type[ast.AST], _Below]):
    def __missing__(self, kind: type[ast.AST]) -> _Below:
        self[kind] = _any_children if _FIELDS[kind] else None
        return self[kind]


_BELOW = _BelowTable(_COMMON)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below `node` in the order of its fields, without contexts and operators."""
    below = _BELOW[node.__class__]
    return below(node) if below is not None else []


class _Blocks(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a class of nodes that hold statements, or the handlers and cases that do, in the source's order."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        holds = issubclass(kind, (ast.stmt, ast.mod, ast.ExceptHandler, ast.match_case))
        names = ("body", "handlers", "orelse", "finalbody", "cases")
        self[kind] = tuple(name for name in names if holds and name in kind._fields)
        return self[kind]


_BLOCKS = _Blocks()


def _outside_blocks(statement: ast.AST) -> list[ast.AST]:
    return [item for item in children(statement) if item.__class__ not in OUTLINED]


class _HeaderTable(dict[type[ast.AST], Callable[[Any], list[ast.AST]]]):
    """How to get at the nodes right below a statement, a handler or a case that are none of these."""

    def __missing__(self, kind: type[ast.AST]) -> Callable[[Any], list[ast.AST]]:
        self[kind] = _outside_blocks if _BLOCKS[kind] else _BELOW[kind] or children
        return self[kind]


_HEADERS = _HeaderTable(
    {
        ast.If: lambda node: [node.test],
        ast.For: lambda node: [node.target, node.iter],
        ast.With: lambda node: [*node.items],
    }
)


def blocks(node: ast.AST) -> list[ast.AST]:
    """The statements, handlers and cases right below `node`."""
    names = _BLOCKS[node.__class__]
    return [item for name in names for item in getattr(node, name)] if names else []


#: The classes of nodes that may hold statements.
HOLDING = frozenset(kind for kind in OUTLINED if _BLOCKS[kind])


def statements(node: ast.AST) -> list[ast.stmt]:
    """All statements below `node`, those of functions and classes in it as well, in no certain order."""
    found: list[ast.AST] = []
    stack = [node]
    while stack:
        below = blocks(stack.pop())
        stack += below
        found += below
    return [item for item in found if isinstance(item, ast.stmt)]


def own_statements(node: ast.AST) -> list[ast.AST]:
    """`node` and the statements, handlers and cases below it that run when it does, outer before inner, in the order of
    the source.
    """
    found: list[ast.AST] = []
    stack = [node]
    while stack:
        current = stack.pop()
        found.append(current)
        if _BLOCKS[current.__class__]:
            stack += [item for item in reversed(blocks(current)) if item.__class__ not in APART]
    return found


#: What is gone through again and again: loops, functions, classes, whole files.
_AGAIN = frozenset({ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module})
#: How many of them are remembered: those of a file are asked about together.
_MOST_REMEMBERED = 256
#: What was found in them, by the id of each. It begins with the node itself, so that nothing else gets that id.
_remembered: dict[int, list[ast.AST]] = {}

# Three loops that are nearly one: they visit most nodes of every inspected file, where a test for what only one of
# them does would be felt.


def walk(node: ast.AST) -> list[ast.AST]:
    """`node` and all below it, without contexts and operators; outer before inner, in the order of the source."""
    if node.__class__ not in _AGAIN:
        return walked(node)
    known = _remembered.get(id(node))
    if known is None:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        known = _remembered[id(node)] = walked(node)
    return known


def walked(node: ast.AST) -> list[ast.AST]:
    """As `walk`, but not remembered: for who is about to change what he goes through."""
    found: list[ast.AST] = []
    stack = [node]
    table = _BELOW
    while stack:
        current = stack.pop()
        found.append(current)
        below = table[current.__class__]
        if below is not None:
            nodes = below(current)
            nodes.reverse()
            stack += nodes
    return found


def walk_own(node: ast.AST) -> list[ast.AST]:
    """`node` and what runs when it does: nested functions, lambdas and classes are left out. Outer before inner; of
    what stands beside each other the last comes first.
    """
    found: list[ast.AST] = []
    stack = [node]
    table, apart = _BELOW, APART
    while stack:
        current = stack.pop()
        found.append(current)
        below = table[current.__class__]
        if below is not None:
            stack += [item for item in below(current) if item.__class__ not in apart]
    return found


def own_below(statement: ast.AST, parents: dict[int, ast.AST]) -> list[ast.AST]:
    """What stands in a statement, a handler or a case and in no statement, handler or case in it, in the order of
    `walk`. Notes the parent of each of these nodes under its id.
    """
    found: list[ast.AST] = []
    stack = _HEADERS[statement.__class__](statement)
    for item in stack:
        parents[id(item)] = statement
    stack.reverse()
    table = _BELOW
    while stack:
        current = stack.pop()
        found.append(current)
        below = table[current.__class__]
        if below is not None:
            nodes = below(current)
            for item in nodes:
                parents[id(item)] = current
            nodes.reverse()
            stack += nodes
    return found


def outline_below(top: ast.stmt, parents: dict[int, ast.AST]) -> list[ast.AST]:
    """`top` and the statements, handlers and cases below it, in the order of the source; those in functions are left
    out where `top` is none itself. Notes the parent of each of them but `top` under its id.
    """
    found: list[ast.AST] = []
    stack: list[ast.AST] = [top]
    table = _BLOCKS
    left_out = () if isinstance(top, _FUNCTIONS) else _FUNCTIONS
    while stack:
        current = stack.pop()
        found.append(current)
        names = table[current.__class__]
        if names and current.__class__ not in left_out:
            nodes = [item for name in names for item in getattr(current, name)]
            for item in nodes:
                parents[id(item)] = current
            nodes.reverse()
            stack += nodes
    return found


def blocks_in(node: ast.AST | None) -> Iterator[list[ast.stmt]]:
    """The blocks of statements right in a node, handlers and cases apart."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def block_with(node: ast.AST | None, child: ast.AST) -> list[ast.stmt]:
    """The block right in a node that a statement stands in; empty where it stands in none."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if block.__class__ is list and child in block:  # nodes are equal to nothing but themselves
            return block
    return []


def visit_naming(words: tuple[str, ...], module: ast.Module, text: str, visitor: ast.NodeTransformer) -> None:
    """Show a visitor the statements of a module in whose text one of some words stands: most files have few of them."""
    ends = [statement.end_lineno or statement.lineno for statement in module.body]
    found: set[int] = set()
    for word in words:
        line, at = 1, 0
        place = text.find(word)
        while place >= 0:
            line, at = line + text.count("\n", at, place), place
            # Decorators stand before the line that a statement is said to begin on.
            found.add(bisect_left(ends, line))
            place = text.find(word, place + 1)
    for index in sorted(found):
        if index < len(ends):
            visitor.visit(module.body[index])
