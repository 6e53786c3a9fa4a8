"""Code under a test of a parameter that no call of the function makes true: `if verbose:` where nobody passes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.context import Context
from perflint.facts.summary import MODULE, CallFacts, FunctionFacts, Param, Value
from perflint.program.program import Edge
from perflint.program.refs import Scope

#: Calls that are looked at.
_MOST_CALLERS = 32
_UNKNOWN = object()


def is_unreached(node: ast.AST, ctx: Context) -> bool:
    """Whether a test of a parameter keeps `node` from being run, by what all known calls of its function pass."""
    scope = ctx.scope(node)
    if scope.function == MODULE:
        return False
    tests = list(_tests_around(node, ctx))
    if not tests:
        return False
    names = _parameters(scope, ctx)
    wanted = [(test, truth) for test, truth in tests if names.intersection(_names_in(test))]
    if not wanted:
        return False
    if ctx.program.roots.functions.get(scope) is not None:
        return False  # a framework calls it, with what nobody sees
    callers = ctx.program.callers(scope)
    if not 0 < len(callers) <= _MOST_CALLERS:
        return False
    return all(any(_keeps_out(test, truth, edge, ctx) for test, truth in wanted) for edge in callers)


def _tests_around(node: ast.AST, ctx: Context) -> Iterator[tuple[ast.expr, bool]]:
    """The tests in its own function that decide whether `node` runs, each with what it has to be."""
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(outer, ast.If) and child is not outer.test:
            yield outer.test, child in outer.body
        elif isinstance(outer, ast.IfExp) and child is not outer.test:
            yield outer.test, child is outer.body
        child = outer


def _parameters(scope: Scope, ctx: Context) -> set[str]:
    """The parameters that mean in all of a function what was passed."""
    facts = ctx.program.function(scope)
    names = {param.name.lstrip("=") for param in facts.params if not param.name.startswith("*")}
    return names.difference(facts.binds, facts.unclear)


def _names_in(test: ast.expr) -> Iterator[str]:
    return (part.id for part in ast.walk(test) if isinstance(part, ast.Name))


def _keeps_out(test: ast.expr, truth: bool, edge: Edge, ctx: Context) -> bool:  # noqa: FBT001 - what the test must be
    """Whether a call makes a test another one than `truth`."""
    found = _outcome(test, edge, ctx)
    return found is not None and found is not truth


def _outcome(test: ast.expr, edge: Edge, ctx: Context) -> bool | None:
    """What a test of parameters comes to in a call, None where that cannot be told."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = _outcome(test.operand, edge, ctx)
        return None if found is None else not found
    if isinstance(test, ast.BoolOp):
        outcomes = [_outcome(value, edge, ctx) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in outcomes:
            return decisive
        return None if None in outcomes else not decisive
    if isinstance(test, ast.Name):
        value = _passed(test.id, edge, ctx)
        return None if value is _UNKNOWN else bool(value)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
        return _compared(_passed(test.left.id, edge, ctx), test.ops[0], test.comparators[0])
    return None


def _compared(value: object, op: ast.cmpop, other: ast.expr) -> bool | None:
    if value is _UNKNOWN or not isinstance(other, ast.Constant):
        return None
    if isinstance(op, (ast.Is, ast.Eq)):
        return value == other.value
    return value != other.value if isinstance(op, (ast.IsNot, ast.NotEq)) else None


def _passed(name: str, edge: Edge, ctx: Context) -> object:
    """The literal that a call passes for a parameter, or leaves it to be."""
    if edge.callback or edge.stands_in:
        return _UNKNOWN
    if name not in _parameters(edge.callee, ctx):
        return _UNKNOWN
    call = ctx.program.function(edge.caller).calls[edge.index]
    for key, value in call.keywords:
        if key == name:
            return _literal(value)
    own = _own_parameters(ctx.program.function(edge.callee))
    place = next(index for index, param in enumerate(own) if param.name.lstrip("=") == name)
    if place < len(call.args) and not own[place].name.startswith("="):
        return _literal(call.args[place])
    return _literal(own[place].default) if _names_all(call, own) else _UNKNOWN


def _own_parameters(facts: FunctionFacts) -> list[Param]:
    """What a call passes: `self` is not."""
    params = [param for param in facts.params if not param.name.startswith("*")]
    return params[1:] if facts.in_class and "staticmethod" not in facts.decorators else params


def _names_all(call: CallFacts, own: list[Param]) -> bool:
    """Whether a call passes nothing that it does not name: no `**options`, and all that must be passed is there, so
    that `*args` hold no more.
    """
    given = {key for key, _ in call.keywords}
    needed = [param for param in own if param.default is None and param.name.lstrip("=") not in given]
    return "" not in given and len(call.args) >= len(needed)


def _literal(value: Value) -> object:
    """The value of a literal of which all is known."""
    if not (isinstance(value, tuple) and value[0] == "const"):
        return _UNKNOWN
    _, kind, literal = value
    return literal if kind == "NoneType" or (kind in ("bool", "int", "str") and literal is not None) else _UNKNOWN
