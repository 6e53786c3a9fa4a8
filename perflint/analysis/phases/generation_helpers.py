"""Functions of the project that generate for one text that they are given: what they call shows it, in any file."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import arguments_of
from perflint.ir.summary import FunctionFacts
from perflint.torch_model.effects import Effect

_DEEPEST = 3


class Helper(NamedTuple):
    """Where a helper generates, and what the call hands it of which it may make the prompt."""

    path: str
    line: int
    texts: tuple[ast.expr, ...]


def one_text_helper(call: ast.Call, ctx: FileFacts) -> Helper | None:
    """The one function that a call surely runs, where that generates once for one text: it tokenizes without padding,
    outside of loops.
    """
    index = ctx.call_index(call)
    if index is None or not ctx.effects(call).does(Effect.GENERATES):
        return None
    edges = [edge for edge in ctx.program.graph.outgoing.get(ctx.scope(call), ()) if edge.index == index]
    if len(edges) != 1 or edges[0].callback:
        return None
    found = _generates_once(edges[0], ctx, _DEEPEST)
    if found is None:
        return None
    return Helper(*found, tuple(arguments_of(call)))


def _generates_once(edge: Edge, ctx: FileFacts, depth: int) -> tuple[str, int] | None:
    """Where what a call runs generates for one text; None where it does so for several, or nobody can tell."""
    scope = edge.callee
    facts = ctx.program.function(scope)
    if facts.is_generator or depth == 0:
        return None
    own = [item for item in facts.calls if last_of(item.func) == "generate" and not _runs_project(scope, item, ctx)]
    if own:
        alone = len(own) == 1 and not facts.loops_around(own[0].context) and _tokenizes_one(facts)
        return (scope.path, own[0].line) if alone else None
    below = [
        inner
        for inner in ctx.program.graph.outgoing.get(scope, ())
        if inner.confidence is Confidence.HIGH
        and inner.index >= 0
        and ctx.program.effects(inner.callee).does(Effect.GENERATES)
    ]
    if len(below) != 1 or facts.loops_around(below[0].context):
        return None
    return _generates_once(below[0], ctx, depth - 1)


def _runs_project(scope: Scope, call: object, ctx: FileFacts) -> bool:
    facts = ctx.program.function(scope)
    edges = ctx.program.graph.outgoing.get(scope, ())
    return any(edge.index >= 0 and facts.calls[edge.index] is call for edge in edges)


def _tokenizes_one(facts: FunctionFacts) -> bool:
    """`tokenizer(prompt, return_tensors="pt")`: several texts, which have several lengths, need padding for it."""
    made = [item for item in facts.calls if any(name == "return_tensors" for name, _ in item.keywords)]
    return (
        bool(made)
        and all(
            item.args and not facts.loops_around(item.context) and not _is_of_several(item.args[0]) for item in made
        )
        and not any(name == "padding" for item in made for name, _ in item.keywords)
    )


def _is_of_several(value: object) -> bool:
    """A list of several texts, or one that a comprehension makes."""
    return isinstance(value, tuple) and (value[0] == "each" or (value[0] == "seq" and len(value[1]) != 1))
