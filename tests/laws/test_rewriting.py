"""A program is told the same however it is written: each rewrite of `rewriting` over every fixture."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rewriting.over import changes, differences

#: What each rewrite still changes, by fixture, a file for each: nothing else may be wrong. With PERFLINT_BLESS set, the
#: files are written anew, without what has been mended.
LEFT = Path(__file__).parent / "rewriting" / "left"


@pytest.mark.parametrize("name", sorted(changes()))
def test_other_ways_to_write_it(name: str) -> None:
    found = {each.case: each.wrong(name) for each in differences(changes()[name]) if each.wrong(name)}
    left = LEFT / f"{name}.json"
    if os.environ.get("PERFLINT_BLESS"):
        left.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        return
    known = json.loads(left.read_text())
    worse = {case: sorted(set(wrong) - set(known.get(case, ()))) for case, wrong in found.items()}
    assert {case: wrong for case, wrong in worse.items() if wrong} == {}
