"""docs/waits.md is what the table says; with `PERFLINT_BLESS=1` it is written."""

from __future__ import annotations

import os
from pathlib import Path

from perflint.observe.waits import COPIES, ROWS
from perflint.observe.waits_page import page

PAGE = Path(__file__).parents[2] / "docs" / "waits.md"


def test_page_is_the_table() -> None:
    if os.environ.get("PERFLINT_BLESS"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_rows_of_one_operation_end_with_one_that_always_holds_or_say_when() -> None:
    assert all(row.condition and row.source for row in (*ROWS, *COPIES))
    assert len({(row.operation, row.condition) for row in (*ROWS, *COPIES)}) == len((*ROWS, *COPIES))
