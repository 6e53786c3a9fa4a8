"""What makes the host wait: one row for each operation and condition, with the source that says so.

The first row of an operation whose condition holds decides. An operation without a row launches kernels and does not
wait. Conditions look at arguments as the operation got them: device tensors, sizes and flags, never at values.
No torch is imported here: the table is data, and docs/waits.md is made from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from perflint.observe.waits.copies import COPIES, STAGED_BYTES, copy_waits
from perflint.observe.waits.operations import ROWS
from perflint.observe.waits.row import PYTORCH, Arguments, Keywords, Row

__all__ = ["COPIES", "PYTORCH", "ROWS", "STAGED_BYTES", "Row", "copy_waits", "row_for", "rows_of"]

_BY_OPERATION: dict[str, tuple[Row, ...]] = {}
for _row in ROWS:
    _BY_OPERATION[_row.operation] = (*_BY_OPERATION.get(_row.operation, ()), _row)


def rows_of(operation: str) -> tuple[Row, ...]:
    """The rows of an operation, named as the dispatcher does, with its overload or without (`aten::index`)."""
    return _BY_OPERATION.get(operation) or _BY_OPERATION.get(operation.partition(".")[0], ())


def row_for(rows: Sequence[Row], arguments: Arguments, keywords: Keywords) -> Row | None:
    """The first whose condition holds."""
    return next((row for row in rows if row.holds is None or row.holds(arguments, keywords)), None)
