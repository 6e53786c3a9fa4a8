"""Loops that write single rows of a tensor, those that pass a test of the row or that a list names, as one write under
a mask or an index does for all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.frequency.over_dimensions import goes_over_dimension
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Place, Tag
from perflint.analysis.values.row_by_row import WRITES, is_row, is_same_for_all_rows
from perflint.ir.calls import callee_name, is_constant
from perflint.torch_model.effects import Effect

_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
#: What a value does that one of all rows could not do in its place, or that nobody can see.
_OWN = (
    Effect.WAITS,
    Effect.WAITS_PART,
    Effect.MEETS,
    Effect.READS,
    Effect.FORWARD,
    Effect.GENERATES,
    Effect.LOGS,
    Effect.FILES,
    Effect.LOADS,
    Effect.UNKNOWN,
)


def written_where(loop: ast.For, ctx: FileFacts) -> str | None:
    """The tensor of which a loop writes rows, each without the others: `for i in range(len(x)): if mask[i]: x[i] = 0`,
    and `for i in chosen: x[i] = value` of a list of numbers.
    """
    if not isinstance(loop.target, ast.Name):
        return None
    index, is_chosen = loop.target.id, _gives_numbers(loop.iter, ctx)
    written = {name for part in ctx.walk(loop) if isinstance(part, ast.stmt) and (name := _row_of(part, index)[0])}
    if len(written) != 1 or not (is_chosen or goes_over_dimension(loop.iter, ctx)) or turns_few_times(loop, ctx):
        return None
    (name,) = written
    known: set[str] = set()
    is_tested = [False]
    for statement in _statements(loop.body, index, known, is_tested, ctx):
        if not _is_apart(statement, index, name, known, ctx, at_will=is_chosen or is_tested[0]):
            return None
    return name if is_chosen or is_tested[0] else None


def _statements(
    body: Sequence[ast.stmt], index: str, known: set[str], is_tested: list[bool], ctx: FileFacts
) -> Iterator[ast.stmt]:
    """The statements of a body, those under tests of the row among them; a test of anything else comes as it stands.
    `is_tested` is set for those behind the first such test.
    """
    for statement in body:
        if not isinstance(statement, ast.If) or not _is_mask(statement.test, index, known, ctx):
            yield statement
            continue
        if not {index, *known}.isdisjoint(names_in(statement.test)):
            is_tested[0] = True
        yield from _statements(statement.body, index, known, is_tested, ctx)
        yield from _statements(statement.orelse, index, known, is_tested, ctx)


def _is_apart(statement: ast.stmt, index: str, name: str, known: set[str], ctx: FileFacts, *, at_will: bool) -> bool:
    """Whether a statement takes parts of the row, whose names are `known` from there on, or writes the row of `name`:
    what all rows would get at once, or (`at_will`) what has nothing to do with the row.
    """
    if isinstance(statement, (ast.Continue, ast.Pass)):
        return True
    row, value = _row_of(statement, index)
    if row:
        return value is not None and (
            (at_will and _is_any(value, {index, name, *known}, ctx))
            or is_same_for_all_rows(value, index, {name}, ctx, known)
        )
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    if not is_same_for_all_rows(statement.value, index, {name}, ctx, known):
        return False
    target = statement.targets[0]
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    if not all(isinstance(part, ast.Name) for part in parts):
        return False
    if {index, *known}.isdisjoint(names_in(statement.value)) or (isinstance(target, ast.Tuple) and not known):
        # `y, x = places[i]` takes a row apart, and nothing else.
        if not isinstance(statement.value, ast.Subscript) or not is_row(statement.value, index):
            return False
    known.update(part.id for part in parts if isinstance(part, ast.Name))
    return True


def _row_of(statement: ast.stmt, index: str) -> tuple[str, ast.expr | None]:
    """The tensor that a statement writes a row of, and what it writes: `x[i] = value`, `x[i].copy_(value)`."""
    target: ast.expr | None = None
    value: ast.expr | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in WRITES and not call.keywords:
            target, value = call.func.value, call.args[0] if len(call.args) == 1 else None
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and is_row(target, index):
        return target.value.id, value
    return "", None


def _is_mask(test: ast.expr, index: str, known: set[str], ctx: FileFacts) -> bool:
    """Whether a test asks of one row what one comparison asks of all of them."""
    if isinstance(test, ast.BoolOp):
        return all(_is_mask(value, index, known, ctx) for value in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_mask(test.operand, index, known, ctx)
    if not isinstance(test, ast.Compare):
        return is_same_for_all_rows(test, index, set(), ctx, known)
    sides = (test.left, *test.comparators)
    if all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops):
        return all(isinstance(side, ast.Name) or is_constant(side, None) for side in sides)
    return all(isinstance(op, _COMPARED) for op in test.ops) and all(
        is_same_for_all_rows(side, index, set(), ctx, known) for side in sides
    )


def _is_any(value: ast.expr, of_turn: set[str], ctx: FileFacts) -> bool:
    """Whether a value is none of the row's, and making it is seen to do nothing else."""
    if not of_turn.isdisjoint(names_in(value)):
        return False
    return all(not ctx.effects(part).does(*_OWN) for part in ctx.walk(value) if isinstance(part, ast.Call))


def _gives_numbers(turns: ast.expr, ctx: FileFacts) -> bool:
    """Whether a loop goes through a list of numbers that says which rows: `x.tolist()`, and some drawn from it."""
    for made in ctx.inference.origins(turns):
        while isinstance(made, ast.Call) and callee_name(made) in ("sample", "sorted", "choices", "list") and made.args:
            inner = ctx.inference.origins(made.args[0])
            made = next(iter(inner), made.args[0]) if len(inner) == 1 else made.args[0]  # noqa: PLW2901
        if not (isinstance(made, ast.Call) and callee_name(made) == "tolist" and isinstance(made.func, ast.Attribute)):
            return False
        if ctx.kind(made.func.value).tag is not Tag.TENSOR or ctx.kind(made.func.value).place is Place.HOST:
            return False
    return True
