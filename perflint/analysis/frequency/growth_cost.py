"""The impact of TPL309: the rank of what is joined, the work of an iteration, and how often the loop itself runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.phases.turn_work import runs_a_model
from perflint.analysis.values.growing import Grown, is_column
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.ranks import SCALAR
from perflint.finding import Heat, Impact
from perflint.ir.summary import MODULE
from perflint.torch_model.effects import Effect

_WORK = (Effect.FORWARD, Effect.BACKWARD, Effect.STEPS)


def impact_of_growth(grown: Grown, loop: ast.stmt, ctx: FileFacts) -> Impact | None:
    """None where it is negligible: a number for each item is copied in no time beside a forward."""
    works = _works(loop, ctx)
    rank = _rank_of_parts(grown, ctx)
    is_narrow = rank in (SCALAR, 1) or all(is_column(part) for part in grown.added)
    if works and is_narrow:
        return None
    if works and rank is None and _runs_seldom(loop, ctx):
        return Impact.LOW  # a few iterations' results, or one number for each item: nothing tells
    return Impact.MEDIUM if works or is_narrow else Impact.HIGH


def _works(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether an iteration runs a model, whatever calls it."""
    if runs_a_model(loop, ctx):
        return True
    return any(isinstance(part, ast.Call) and ctx.effects(part).does(*_WORK) for part in ctx.walk(loop))


def _runs_seldom(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a loop is known to run once, or once in many steps; what nothing calls is not."""
    heat = ctx.heat(loop)
    scope = ctx.scope(loop)
    return heat is Heat.PERIODIC or (
        heat is Heat.ONCE and (scope.function == MODULE or bool(ctx.program.callers(scope)))
    )


def _rank_of_parts(grown: Grown, ctx: FileFacts) -> int | None:
    """The number of dimensions of what is added, by itself or by what it is joined to: NumPy joins only equal ranks."""
    kinds = [ctx.kind(part) for part in grown.added]
    if all(kind.tag is Tag.NUMBER for kind in kinds):
        return SCALAR
    known = [kind.rank for kind in kinds if kind.rank is not None and kind.rank >= SCALAR]
    if len(known) == len(kinds):
        return max(known)
    # `np.append` flattens what it is given, and `torch.cat` takes an empty vector beside whatever comes.
    is_strict = ctx.is_call_of(grown.call, "numpy.concatenate", "numpy.hstack")
    ranks = {rank for rank in _ranks_before(grown, ctx) if rank != 1 or is_strict}
    return ranks.pop() if len(ranks) == 1 else None


def _ranks_before(grown: Grown, ctx: FileFacts) -> Iterator[int | None]:
    """The ranks of what the loop begins with: `[]`, `np.empty(0)`, `torch.empty(0, 10)`."""
    joined = grown.parts.elts if isinstance(grown.parts, (ast.List, ast.Tuple)) else grown.call.args[:1]
    for name in joined:
        if not isinstance(name, ast.Name) or name.id != grown.name:
            continue
        for origin in ctx.inference.origins(name):
            if origin is grown.call or origin is name:
                continue
            yield 1 if isinstance(origin, ast.List) and not origin.elts else ctx.kind(origin).rank
