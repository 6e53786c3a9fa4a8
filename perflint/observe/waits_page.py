"""docs/waits.md, made from the table of what waits: `python -m perflint.observe.waits_page > docs/waits.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from perflint.observe.waits import COPIES, PYTORCH, ROWS, Row

_HEAD = """# What makes the host wait

`perflint observe` counts a wait where this table has one. An operation without a row launches kernels, and the host
goes on. Operations that PyTorch composes of others wait where those do: `torch.linalg.inv` reads an error code
(`_local_scalar_dense`), `one_hot` without `num_classes` reads the greatest value, distributions with validation and
`clip_grad_norm_(error_if_nonfinite=True)` read a bool, `GradScaler.step` reads whether a gradient is infinite, a slice
or a size that is a device tensor is read.

Each row was made by reading the source that it names. Each row with an example is run by the tests on the simulated
device, and on a real one, where there is one, under `torch.cuda.set_sync_debug_mode`.

"""
_COLUMNS = "| operation | when | the host | kind | source |\n|---|---|---|---|---|\n"


def page() -> str:
    """The whole page."""
    return f"{_HEAD}## Operations\n\n{_table(ROWS)}\n## Copies between host and device\n\n{_table(COPIES)}"


def _table(rows: Iterable[Row]) -> str:
    return _COLUMNS + "".join(f"{_row(row)}\n" for row in rows)


def _row(row: Row) -> str:
    name = row.operation.removeprefix("aten::")
    host = ("waits" if row.times == 1 else f"waits {row.times} times") if row.waits else "goes on"
    return f"| `{name}` | {row.condition} | {host} | {row.kind} | {_source(row)} |"


def _source(row: Row) -> str:
    address = row.source if row.source.startswith("https:") else PYTORCH + row.source
    link = f"[{row.source.rpartition('/')[2] or row.source}]({address})"
    return f"{link}, `{row.function}`" if row.function else link


if __name__ == "__main__":
    sys.stdout.write(page())
