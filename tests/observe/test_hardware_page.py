"""docs/hardware.md is what the table says; with `PERFLINT_BLESS=1` it is written."""

from __future__ import annotations

import os
from pathlib import Path

from perflint.observe.model.hardware import HARDWARE
from perflint.observe.model.page import page

PAGE = Path(__file__).parents[2] / "docs" / "hardware.md"


def test_the_page_is_what_the_table_says() -> None:
    if os.environ.get("PERFLINT_BLESS"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_it_names_every_accelerator_and_its_sources() -> None:
    made = page()
    for one in HARDWARE.values():
        assert f"| {one.name} | `{one.key}` |" in made
        assert all(source.document in made for source in one.sources.values())
    assert "modelled" in made
    assert "not measured" in made
