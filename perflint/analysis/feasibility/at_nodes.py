"""Whether some run comes to a node as often as it seems: the path conditions of the node, put to the program."""

from __future__ import annotations

import ast

from perflint.analysis.feasibility.feasible import Conditions, Feasibility
from perflint.analysis.feasibility.stored_before import stored_before
from perflint.analysis.file_facts import FileFacts
from perflint.finding import Heat
from perflint.ir.computed import expression
from perflint.ir.summary import Value

#: How many conditions of a place are asked, beside those farther out that hold.
_MOST = 40


def is_unreached(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether no run takes a path to `node` on which it is as hot as it seems."""
    return not path_to(node, ctx, ctx.heat(node)).feasible


def is_in_training(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether modules in training mode come to `node`, so that no `if not self.training` of a caller keeps them off."""
    return ctx.once(_trains, node)


def _trains(node: ast.AST, ctx: FileFacts) -> bool:
    scope, context = ctx.scope(node), ctx.context(node)
    at_least = min(ctx.heat(node), ctx.program.heat_at(scope, context))
    if at_least < Heat.STEP:
        return True
    return ctx.program.is_reached_in_training(scope, context, conditions_of(node, ctx), at_least)


def path_to(node: ast.AST, ctx: FileFacts, heat: Heat) -> Feasibility:
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        node = node.body[0]  # a loop is said to be as hot as what it runs
    scope, context = ctx.scope(node), ctx.context(node)
    at_least = min(heat, ctx.program.heat_at(scope, context))
    return ctx.program.feasible(scope, context, conditions_of(node, ctx), at_least, _place(node))


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def conditions_of(node: ast.AST, ctx: FileFacts) -> Conditions:
    """The tests that decide whether `node` runs, in the notation of summaries, as far as that has a form for them."""
    return ctx.once(_told, node)


def _told(node: ast.AST, ctx: FileFacts) -> Conditions:
    conditions = ctx.control_flow(node).conditions(node)
    if len(conditions) > _MOST:
        # The hundredth `elif` runs where 99 tests do not hold, and none of the far ones says more than the near ones.
        far = len(conditions) - _MOST
        conditions = (*(item for item in conditions[:far] if item[1]), *conditions[far:])
    found = [(ctx.once(_expression, test), truth) for test, truth in conditions]
    return tuple([(test, truth) for test, truth in found if test is not None])


def _expression(test: ast.expr, ctx: FileFacts) -> Value:
    return expression(stored_before(test, ctx) or test)
