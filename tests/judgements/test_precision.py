"""docs/precision.md says what the judgements say."""

from collections import Counter
from pathlib import Path

import precision


def test_page_is_current() -> None:
    """Run `python tests/judgements/precision.py` after a change of the judgements."""
    page = Path(precision.PAGE).read_text(encoding="utf-8")
    assert page == precision.markdown(precision.judgements(), precision.standing())


def test_share_counts_what_stands() -> None:
    rows = [
        precision.Judged("timm-1.0", "a.py", 1, "TPL101", right=True),
        precision.Judged("timm-1.0", "a.py", 2, "TPL101", right=False),
        precision.Judged("timm-1.0", "a.py", 3, "TPL101", right=False),
        precision.Judged("other-1234abcd", "a.py", 3, "TPL101", right=True),
        precision.Judged("absent-1.0", "a.py", 3, "TPL101", right=True),
    ]
    noted: dict[str, precision.Noted] = {
        "timm-1.0": {
            "findings": {"TPL101": 5},
            "there": [("TPL101", "a.py", 1), ("TPL101", "a.py", 2)],
            "gone": [("TPL101", "a.py", 3)],
        },
        "other-1234abcd": {"findings": {"TPL101": 1}, "there": [("TPL101", "a.py", 3)], "gone": []},
    }
    record = precision.Record(rows, noted)
    assert record.tally("TPL101", packages=True) == (5, 2, 1)
    assert record.tally("TPL101", packages=False) == (1, 1, 1)
    assert record.lost("TPL101", right=False) == 1
    assert len(record.elsewhere) == 1


def test_trees_have_one_name() -> None:
    assert precision.tree_of("pytorch/examples", "77f55b9121ab") == precision.tree_of("examples", "77f55b91")
    assert precision.tree_of("open_clip_torch", "3.3.0") == "open-clip-torch-3.3.0"


def test_a_run_of_some_rules_keeps_what_is_noted_of_others() -> None:
    before: precision.Noted = {
        "findings": {"TPL101": 5, "TPL603": 2},
        "there": [("TPL101", "a.py", 1), ("TPL603", "a.py", 2)],
        "gone": [],
    }
    judged = {("TPL603", "a.py", 2), ("TPL603", "b.py", 7)}
    noted = precision.merged(before, ["TPL603"], Counter(TPL603=1), judged, {("TPL603", "b.py", 7)})
    assert noted == {
        "findings": {"TPL101": 5, "TPL603": 1},
        "there": [("TPL101", "a.py", 1), ("TPL603", "b.py", 7)],
        "gone": [("TPL603", "a.py", 2)],
    }
    assert precision.merged(None, ["TPL603"], Counter(), set(), set())["rules"] == ["TPL603"]
