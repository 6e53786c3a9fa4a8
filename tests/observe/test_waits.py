"""Every row of the table of what waits is run: on the pretended device, and on a real one under sync-debug mode."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from perflint.observe.recording.session import Wanted, observing  # noqa: E402
from perflint.observe.waits import COPIES, ROWS, Row  # noqa: E402

_TABLE = [row for row in (*ROWS, *COPIES) if row.example]


def _run(row: Row) -> dict[str, Any]:
    return {
        "torch": torch,
        "x": torch.arange(16.0).reshape(4, 4).sin().cuda() + torch.eye(4, device="cuda"),
        "n": torch.tensor([2, 1, 0, 3, 1, 1, 2, 0]).cuda(),
        "mask": (torch.arange(16).reshape(4, 4) % 7 == 1).cuda(),
        "host": torch.zeros(4, 4),
    }


@pytest.mark.parametrize("row", _TABLE, ids=[f"{row.operation}-{row.example}" for row in _TABLE])
def test_row_on_the_pretended_device(row: Row) -> None:
    with observing(Wanted(coverage=False)) as session:
        names = _run(row)
        session.recorder.end_step()
        exec(row.example, names)
        session.recorder.end_step()
    seen = session.observation().totals[1]
    assert seen.waits == (row.times if row.waits else 0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("row", _TABLE, ids=[f"{row.operation}-{row.example}" for row in _TABLE])
def test_row_on_a_real_device(row: Row) -> None:
    names = _run(row)
    exec(row.example, dict(names))  # what is made once, workspaces and handles, may wait
    torch.cuda.synchronize()
    if "empty_cache" in row.example or "synchronize" in row.example or "pageable" in row.condition:
        pytest.skip("sync-debug mode does not tell of it")
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            exec(row.example, names)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    waited = any("synchronizing" in str(one.message) for one in caught)
    assert waited is row.waits
