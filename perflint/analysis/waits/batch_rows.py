"""Loops that run a dozen operations on one row of a batch after the other, where the rows have one size and no turn
needs another: each operation, or one that takes other weights for each row, serves all rows at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.invariants.bound_in import carries_names
from perflint.analysis.naming.loops import OVER_FEW_PARTS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.analysis.waits.counts import counted_at
from perflint.ir.calls import argument, callee_name, is_constant
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect

#: Of fewer operations, besides those that are as cheap as a copy, the rows of a small batch cost little.
_SEVERAL = 5
#: What is another rule's, or where the values of rows decide what is done.
_OTHER = (Effect.BACKWARD, Effect.STEPS, Effect.WAITS, Effect.READS)


def launches_by_row(loop: ast.For, ctx: FileFacts) -> str | None:
    """The tensor whose rows a loop goes through, each with several operations of its own."""
    rows = [*_single_rows(loop.iter, ctx)]
    if not rows or loop.orelse or OVER_FEW_PARTS.search(ctx.text(loop.target)) or turns_few_times(loop, ctx):
        return None
    parts = [part for statement in loop.body for part in walk(statement)]
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(isinstance(part, (ast.Break, ast.Return, ast.Yield)) for part in parts):
        return None
    effects = [ctx.effects(call) for call in calls]
    if any(found.does(*_OTHER) for found in effects) or any(ctx.kind(call.func).tag is Tag.MODULE for call in calls):
        return None
    launches = sum(found.does(Effect.LAUNCHES) for found in effects)
    if launches < _SEVERAL or not _lists_results(loop) or carries_names(loop, ctx):
        return None
    # What is counted, or picked by a mask, differs in size from one row to the next.
    sized = any(isinstance(part, (ast.Call, ast.Subscript)) and counted_at(part, ctx) is not None for part in parts)
    return None if sized else ctx.text(rows[0])


def _single_rows(turns: ast.expr, ctx: FileFacts) -> Iterator[ast.expr]:
    """The tensors that were cut into rows of a batch for a loop; none where it goes through anything else as well."""
    if isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name) and turns.func.id in ("zip", "enumerate"):
        found = [[*_single_rows(item, ctx)] for item in turns.args]
        yield from (one for each in found for one in each) if all(found) else ()
        return
    made = ctx.inference.origins(turns) if isinstance(turns, ast.Name) else (turns,)
    of = [_cut(item, ctx) for item in made]
    yield from (item for item in of[:1] if item is not None and all(of))


def _cut(made: ast.expr, ctx: FileFacts) -> ast.expr | None:
    """`x` of `torch.split(x, 1, dim=0)`, `x.split(1)`, `x.unbind()`."""
    if not isinstance(made, ast.Call) or callee_name(made) not in ("split", "unbind"):
        return None
    whole = ctx.is_call_of(made, "torch.split", "torch.unbind")
    of = argument(made, 0, "tensor" if callee_name(made) == "split" else "input") if whole else None
    if not whole and isinstance(made.func, ast.Attribute):
        of = made.func.value
    if of is None or ctx.kind(of).tag is not Tag.TENSOR:
        return None
    place = int(whole)
    if callee_name(made) == "split":
        if not is_constant(made.args[place] if len(made.args) > place else None, 1):
            return None
        place += 1
    dim = argument(made, place, "dim")
    return of if dim is None or is_constant(dim, 0) else None


def _lists_results(loop: ast.For) -> bool:
    """Whether each turn appends what it has computed to a list."""
    return any(
        isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Call)
        and callee_name(part.value) == "append"
        and not set(names_in(loop.target)) & set(names_in(part.value.func))
        for part in walk(loop)
    )
