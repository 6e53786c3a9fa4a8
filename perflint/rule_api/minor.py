"""Phases in which a cost of the host or of a copy hardly shows: steps that no training takes, and that end by reading
their results, so that the next one begins with nothing queued; and what a benchmark does to measure something else.
"""

from __future__ import annotations

import ast

from perflint.analysis.phases.phase import Phase
from perflint.finding import Confidence
from perflint.rule_api.context import Context

__all__ = ["is_minor", "is_of_unknown_use"]


def is_minor(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` runs in such a phase, and in no training."""
    found = ctx.phase(node)
    if found.confidence < Confidence.MEDIUM or ctx.program.is_in_training(ctx.scope(node)):
        return False
    if found.phase is Phase.BENCHMARK:
        return True
    return found.phase in (Phase.EVALUATE, Phase.GENERATE) and found.ends_in_reads


def is_of_unknown_use(node: ast.AST, ctx: Context) -> bool:
    """Whether nothing in the program trains with `node`: what it costs beside a step, only users of a library know."""
    return ctx.program.is_only_promised(ctx.scope(node), ctx.context(node))
