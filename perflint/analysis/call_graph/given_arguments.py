"""What the callers of a function give for one of its parameters: expressions, each with the facts of its file."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts


def given_arguments(value: ast.expr, ctx: FileFacts) -> list[tuple[ast.expr, FileFacts]]:
    """What the call on the hot route gives, or else all calls; empty where `value` is no parameter, or one of the calls
    is not plain to see.
    """
    if not isinstance(value, ast.Name):
        return []
    given = ctx.given_on_route(value)
    if given is not None:
        return [given]
    bound, function = ctx.inference.flow.definitions(value), ctx.tree.function_of(value)
    if len(bound) != 1 or not isinstance(bound[0].node, ast.arg) or function is None:
        return []
    place = ctx.inference.parameters.place_of(function, bound[0].name)
    found: list[tuple[ast.expr, FileFacts]] = []
    for edge in ctx.program.callers(ctx.own_scope(function)):
        other = None if edge.callback or edge.index < 0 else ctx.at(edge.caller.path)
        node = None if other is None else other.inference.parameters.node_at(edge, bound[0].name, place)
        if other is None or node is None:
            return []
        found.append((node, other))
    return found
