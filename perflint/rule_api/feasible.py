"""Whether a finding stands where some run of the program comes to: its path conditions, put to the program."""

from __future__ import annotations

import ast
from dataclasses import replace

from perflint.analysis.feasibility.feasible import FEASIBLE, Conditions, Feasibility
from perflint.finding import Finding, Heat, Impact
from perflint.ir.computed import expression
from perflint.ir.summary import Value
from perflint.rule_api.context import Context

#: How many conditions of a place are asked, beside those farther out that hold.
_MOST = 40


def is_unreached(node: ast.AST, ctx: Context) -> bool:
    """Whether no run takes a path to `node` on which it is as hot as it seems."""
    return not _path(node, ctx, ctx.heat(node)).feasible


def is_in_training(node: ast.AST, ctx: Context) -> bool:
    """Whether modules in training mode come to `node`, so that no `if not self.training` of a caller keeps them off."""
    return ctx.once(_trains, node)


def _trains(node: ast.AST, ctx: Context) -> bool:
    scope, context = ctx.scope(node), ctx.context(node)
    at_least = min(ctx.heat(node), ctx.program.heat_at(scope, context))
    if at_least < Heat.STEP:
        return True
    return ctx.program.is_reached_in_training(scope, context, _conditions(node, ctx), at_least)


def as_feasible(finding: Finding, node: ast.AST, ctx: Context) -> Finding | None:
    """A finding with the route that a run can take; None where there is none. What only a user's option, or a run in
    float16, leads to is worth little.
    """
    found = _path(node, ctx, finding.heat)
    if not found.feasible:
        return None
    if found.route is not None:
        confidence = min(finding.confidence, found.confidence)
        finding = replace(finding, route=found.route, confidence=confidence)
    if found.only:
        return replace(finding, message=f"{finding.message} Only with {found.only}.", impact=Impact.LOW)
    if finding.impact > Impact.LOW and ctx.program.is_float16(_conditions(node, ctx), ctx.scope(node)):
        return replace(finding, message=f"{finding.message} It needs a float16 run.", impact=Impact.LOW)
    return finding


def _path(node: ast.AST, ctx: Context, heat: Heat) -> Feasibility:
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        node = node.body[0]  # a loop is said to be as hot as what it runs
    scope, context = ctx.scope(node), ctx.context(node)
    at_least = min(heat, ctx.program.heat_at(scope, context))
    if at_least < Heat.STEP:
        return FEASIBLE
    return ctx.program.feasible(scope, context, _conditions(node, ctx), at_least)


def _conditions(node: ast.AST, ctx: Context) -> Conditions:
    """The tests that decide whether `node` runs, in the notation of summaries, as far as that has a form for them."""
    return ctx.once(_told, node)


def _told(node: ast.AST, ctx: Context) -> Conditions:
    conditions = ctx.control_flow(node).conditions(node)
    if len(conditions) > _MOST:
        # The hundredth `elif` runs where 99 tests do not hold, and none of the far ones says more than the near ones.
        far = len(conditions) - _MOST
        conditions = (*(item for item in conditions[:far] if item[1]), *conditions[far:])
    found = [(ctx.once(_expression, test), truth) for test, truth in conditions]
    return tuple([(test, truth) for test, truth in found if test is not None])


def _expression(test: ast.expr, _: Context) -> Value:
    return expression(test)
