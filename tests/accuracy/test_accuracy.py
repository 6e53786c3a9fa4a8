"""The harness itself: what counts as found, missed, confirmed and refuted, and the page that is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page import PAGE, page
from score import Seen, keep, plain, score, seen_in, together

HERE = Path(__file__).parent


def line(at: int, kind: str, *stack: int, waits: bool = True, path: str = "pkg/m.py") -> dict[str, Any]:
    frames = [{"path": path, "line": one, "function": "f"} for one in stack]
    return {"path": path, "line": at, "end_line": at, "kind": kind, "waits": waits, "stack": frames}


def finding(at: int, code: str = "TPL201") -> dict[str, Any]:
    return {"path": "pkg/m.py", "line": at, "end_line": at, "code": code, "message": "m"}


def observed(tmp_path: Path, *lines: dict[str, Any], ran: list[list[int]]) -> Seen:
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"ran": {"pkg/m.py": ran}, "lines": list(lines)}))
    return seen_in([file], "pkg")


def test_a_line_is_found_by_a_finding_on_it_or_on_a_caller(tmp_path: Path) -> None:
    seen = observed(tmp_path, line(5, "read", 5), line(9, "read", 3, 9), line(12, "shape", 12), ran=[[1, 20]])
    made = score("c", "1", seen, [finding(5), finding(3)], 0)
    assert (sum(made.found.values()), sum(made.missed.values())) == (2, 1)
    assert made.lines_missed == ["pkg/m.py:12 shape"]
    assert (made.right["TPL201"], made.wrong["TPL201"]) == (2, 0)


def test_other_places_of_a_finding_count_as_found(tmp_path: Path) -> None:
    seen = observed(tmp_path, line(5, "read", 5), line(6, "read", 6), line(7, "read", 7), ran=[[1, 20]])
    others = [
        {"path": "pkg/m.py", "line": 6, "code": "TPL201", "text": ""},
        {"path": "pkg/m.py", "line": 7, "text": ""},
    ]
    made = score("c", "1", seen, [{**finding(5), "related": others}], 0)
    assert made.lines_missed == ["pkg/m.py:7 read"]
    assert made.right["TPL201"] == 2


def test_a_finding_counts_only_where_its_line_ran(tmp_path: Path) -> None:
    seen = observed(tmp_path, line(5, "read", 5), ran=[[5, 6]])
    made = score("c", "1", seen, [finding(6), finding(30), finding(5, "TPL606")], 0)
    assert (made.right["TPL201"], made.wrong["TPL201"]) == (0, 1)
    assert "TPL606" not in {*made.right, *made.wrong}, "a rule that claims nothing observable"


def test_launches_and_copies_that_do_not_wait_are_no_waste(tmp_path: Path) -> None:
    seen = observed(
        tmp_path,
        line(5, "launch", 5, waits=False),
        line(6, "to-device", 6, waits=False),
        line(7, "read", 7, path="other/m.py"),
        ran=[[1, 9]],
    )
    assert not seen.kinds


def test_a_launch_confirms_what_claims_to_run_every_step_and_nothing_else(tmp_path: Path) -> None:
    seen = observed(tmp_path, line(5, "launch", 5, waits=False), ran=[[1, 9]])
    made = score("c", "1", seen, [finding(5, "TPL310"), finding(5)], 0)
    assert (made.right["TPL310"], made.wrong["TPL201"]) == (1, 1)
    assert not made.lines_missed


def test_the_page_is_that_of_the_results() -> None:
    results = [json.loads(file.read_text()) for file in sorted((HERE / "results").glob("*.json"))]
    assert PAGE.read_text(encoding="utf-8") == page(results)


def test_scores_add_up(tmp_path: Path) -> None:
    seen = observed(tmp_path, line(5, "read", 5), line(7, "read", 7), ran=[[1, 9]])
    one = score("c", "1", seen, [finding(5)], 1)
    whole = plain(together("all", [one, one], 3))
    assert whole["rules"]["TPL201"] == {"found": 2, "missed": 2, "confirmed": 2, "refuted": 0}
    assert (whole["observed"], whole["failed"]) == (2, 3)


def test_the_first_look_stays_beside_the_newest(tmp_path: Path) -> None:
    file = tmp_path / "results" / "c.json"
    rules = {"TPL201": {"found": 1, "missed": 3, "confirmed": 1, "refuted": 1}}
    first = {"name": "c", "version": "1", "observed": 2, "failed": 0, "rules": rules, "rules_of": "aaa"}
    newest = {**first, "rules": {"TPL201": {"found": 3, "missed": 1, "confirmed": 2, "refuted": 0}}, "rules_of": "bbb"}
    keep(file, first, is_first=True)
    keep(file, newest, is_first=False)
    assert json.loads(file.read_text()) == {**newest, "first": first}
    keep(file, {**first, "rules_of": "ccc"}, is_first=True)
    kept = json.loads(file.read_text())
    assert (kept["rules_of"], kept["first"]["rules_of"]) == ("bbb", "ccc")
    now, before = page([kept]).split("## Before rules were changed for it")
    assert "| c | 1 | bbb | 2 | 0 | 3 of 4 (75 %) | 2 of 2 (100 %) |" in now
    assert "| c | 1 | ccc | 2 | 0 | 1 of 4 (25 %) | 1 of 2 (50 %) |" in before
