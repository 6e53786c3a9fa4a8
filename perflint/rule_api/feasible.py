"""A finding is told with the route that a run can take, and not at all where none can."""

from __future__ import annotations

import ast
from dataclasses import replace

from perflint.analysis.feasibility.at_nodes import conditions_of, path_to
from perflint.finding import Finding, Impact
from perflint.rule_api.context import Context


def as_feasible(finding: Finding, node: ast.AST, ctx: Context) -> Finding | None:
    """A finding with the route that a run can take; None where there is none. What only a user's option, or a run in
    float16, leads to is worth little.
    """
    found = path_to(node, ctx, finding.heat)
    if not found.feasible:
        return None
    if found.route is not None:
        confidence = min(finding.confidence, found.confidence)
        finding = replace(finding, route=found.route, confidence=confidence)
    if found.only:
        return replace(finding, message=f"{finding.message} Only with {found.only}.", impact=Impact.LOW)
    if finding.impact > Impact.LOW and ctx.program.is_float16(conditions_of(node, ctx), ctx.scope(node)):
        return replace(finding, message=f"{finding.message} It needs a float16 run.", impact=Impact.LOW)
    return finding
