"""Which part of the program pays for a finding: told by the loop or the contract that makes its place hot."""

from __future__ import annotations

import ast

from perflint.analysis.phases.phase import Phase
from perflint.finding import Part
from perflint.rule_api.context import Context

__all__ = ["part_of"]

_OF_PHASE = {
    Phase.TRAIN: Part.TRAINING,
    Phase.DATA: Part.DATA,
    Phase.EVALUATE: Part.EVALUATION,
    Phase.GENERATE: Part.EVALUATION,
    Phase.SERVE: Part.EVALUATION,
}


def part_of(node: ast.AST, ctx: Context) -> Part:
    """The part of the program that runs `node`."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        scope, context = ctx.own_scope(node), -1
    else:
        scope, context = ctx.scope(node), ctx.context(node)
    if ctx.program.is_only_promised(scope, context):
        return Part.UNSEEN
    return _OF_PHASE.get(ctx.program.phase(scope, context).phase, Part.OTHER)
