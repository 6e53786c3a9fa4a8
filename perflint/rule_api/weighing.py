"""The impact of a finding where it stands: what its rule says, limited by phase, frequency and certainty.

A cost of the host or of a copy hardly shows in steps that no training takes and that end by reading their results, so
that the next one begins with nothing queued; nor in what a benchmark does to measure something else.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from perflint.analysis.cost import Standing, limit
from perflint.analysis.phases.phase import Phase
from perflint.finding import Confidence, Finding, Heat, Impact, Paid
from perflint.rule_api.context import Context

if TYPE_CHECKING:
    from perflint.rule_api.rule import Rule

__all__ = ["is_minor", "weighed"]


def weighed(finding: Finding, node: ast.AST, rule: Rule, ctx: Context) -> Finding:
    """A finding with the impact that it may have where it stands, and how often a step pays for it."""
    standing = _standing(finding, node, rule, ctx)
    impact = _impact(finding, node, standing, rule, ctx)
    return replace(finding, impact=impact, paid=_paid(finding, node, standing, ctx))


def _impact(finding: Finding, node: ast.AST, standing: Standing, rule: Rule, ctx: Context) -> Impact:
    if finding.impact is Impact.LOW:
        return finding.impact
    if finding.heat >= Heat.STEP and rule.minor_beside_reads and is_minor(node, ctx):
        return Impact.LOW
    # A wait in the middle of a step is of medium impact, and of high impact where there are dozens of them.
    is_guess = finding.confidence < Confidence.MEDIUM
    if finding.impact is Impact.HIGH or is_guess or (standing.is_multiplied and rule.claims is not None):
        return limit(standing)
    return finding.impact


def _paid(finding: Finding, node: ast.AST, standing: Standing, ctx: Context) -> Paid:
    from perflint.analysis.waits.cost import is_repeated

    if standing.is_promised or Heat.ONCE < finding.heat < Heat.STEP:
        return Paid.ASIDE
    if finding.heat is Heat.ONCE:
        return Paid.ONCE  # what is set there lasts
    if standing.is_multiplied:
        return Paid.DOZENS
    if ctx.phase(node).phase is not Phase.DATA and not _is_trained(node, ctx):
        return Paid.ASIDE
    return Paid.REPEATEDLY if is_repeated(node, ctx) else Paid.ONCE


def _is_trained(node: ast.AST, ctx: Context) -> bool:
    """Whether a training comes to a line, whatever else does."""
    from perflint.analysis.feasibility.at_nodes import is_in_training

    return ctx.program.is_in_training(ctx.scope(node)) and is_in_training(node, ctx)


def _standing(finding: Finding, node: ast.AST, rule: Rule, ctx: Context) -> Standing:
    return Standing(
        finding.confidence,
        costs_every_step=finding.heat >= Heat.STEP or rule.lasting,
        is_promised=ctx.program.is_only_promised(ctx.scope(node), ctx.context(node)),
        is_multiplied=finding.heat >= Heat.STEP and _is_multiplied(rule.counted(node, ctx), ctx),
    )


def _is_multiplied(node: ast.AST, ctx: Context) -> bool:
    # The inference of values is loaded with the rules: whoever only asks for help needs neither.
    from perflint.analysis.frequency.many_turns import runs_dozens_of_times
    from perflint.analysis.waits.cost import in_training_step

    if not in_training_step(node, ctx):
        return False
    return runs_dozens_of_times(node, ctx) or ctx.program.runs_for_each_parameter(ctx.scope(node))


def is_minor(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` runs in such a phase, and in no training."""
    found = ctx.phase(node)
    if found.confidence < Confidence.MEDIUM or ctx.program.is_in_training(ctx.scope(node)):
        return False
    if found.phase is Phase.BENCHMARK:
        return True
    return found.phase in (Phase.EVALUATE, Phase.GENERATE) and found.ends_in_reads
