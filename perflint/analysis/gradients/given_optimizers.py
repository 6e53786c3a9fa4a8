"""The modules that an optimizer steps which a function is given: those of the callers, by the names they have in it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.file_facts import FileFacts

#: Calls between where an optimizer is made and where it is stepped.
_DEEPEST = 3
Held = Callable[[ast.expr, FileFacts], set[str]]


def held_by_given(optimizer: ast.expr, ctx: FileFacts, held: Held, depth: int = _DEEPEST) -> set[str]:
    """The texts of the modules that a function knows which an optimizer in its parameter steps, by `held`, what one
    steps that is made there. Empty where one of the callers does not tell. Modules that the function is not given
    have a name that it cannot use.
    """
    bound = ctx.inference.flow.definitions(optimizer) if isinstance(optimizer, ast.Name) else ()
    function = ctx.tree.function_of(optimizer)
    if not depth or function is None or len(bound) != 1 or not isinstance(bound[0].node, ast.arg):
        return set()
    found: set[str] = set()
    for edge in ctx.program.callers(ctx.own_scope(function)):
        there = None if edge.callback else ctx.at(edge.caller.path)
        given = None if there is None else _given(edge, bound[0].name, function, ctx, there)
        if there is None or given is None:
            return set()
        texts = held(given, there) or held_by_given(given, there, held, depth - 1)
        if not texts:
            return set()
        names = _names_of_given(edge, function, ctx, there)
        found |= {names.get(text, f"{edge.caller.path}:{text}") for text in texts}
    return found


def _given(edge: Edge, name: str, function: ast.AST, ctx: FileFacts, there: FileFacts) -> ast.expr | None:
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    place = ctx.inference.parameters.place_of(function, name)
    return there.inference.parameters.node_at(edge, name, place)


def _names_of_given(edge: Edge, function: ast.AST, ctx: FileFacts, there: FileFacts) -> dict[str, str]:
    """The parameters of a function by the texts of what a call passes for them; what methods share keeps its text."""
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    args = function.args
    found: dict[str, str] = {}
    for item in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        given = _given(edge, item.arg, function, ctx, there)
        if given is not None:
            found[there.text(given)] = item.arg
    return found
