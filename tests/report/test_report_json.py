import json

from report_samples import EMPTY, ERRORS_ONLY, HOSTILE, HOSTILE_LINE, HOSTILE_NAME, REPORT, one, shown

from perflint.finding import Span


def test_whole_object() -> None:
    described = json.loads(shown(REPORT, "json"))
    hop = {"path": "train.py", "line": 3, "text": "for step, batch in enumerate(loader)"}
    transfer = {
        "code": "TPL101",
        "name": "blocking-transfer",
        "path": "train.py",
        "line": 4,
        "column": 24,
        "end_line": 4,
        "end_column": 49,
        "message": '`batch["image"].to(device)` makes the host wait for the copy.',
        "confidence": "high",
        "impact": "medium",
        "heat": "step",
        "part": "other",
        "why_hot": [hop],
        "fix": {
            "title": "pass `non_blocking=True`",
            "applicability": "safe",
            "reason": "",
            "edits": [{"line": 4, "column": 48, "end_line": 4, "end_column": 48, "text": ", non_blocking=True"}],
        },
        "advice": 'Copy asynchronously: `batch["image"].to(device, non_blocking=True)`.',
        "related": [],
    }
    assert list(described) == ["version", "findings", "errors", "files"]
    assert described["version"] == "1.2.3"
    assert described["files"] == 17
    assert described["errors"] == [{"path": "pkg/broken.py", "line": 7, "column": 3, "message": "invalid syntax"}]
    assert described["findings"][0] == transfer
    assert list(described["findings"][0]) == list(transfer)
    assert [one["code"] for one in described["findings"]] == ["TPL101", "TPL201"]
    assert described["findings"][1]["fix"]["reason"] == "fewer lines are printed"


def test_empty_and_errors_only() -> None:
    assert shown(EMPTY, "json") == '{"version": "1.2.3", "findings": [], "errors": [], "files": 4}\n'
    assert json.loads(shown(ERRORS_ONLY, "json"))["errors"][1] == {
        "path": "gone.py",
        "line": None,
        "column": None,
        "message": "no such file",
    }


def test_no_fix_is_null() -> None:
    assert json.loads(shown(one("x", Span(1, 1, 1, 2)), "json"))["findings"][0]["fix"] is None


def test_hostile_text_comes_back_as_it_was() -> None:
    text = shown(HOSTILE, "json")
    finding = json.loads(text)["findings"][0]
    assert text.isascii()
    assert finding["path"] == HOSTILE_NAME
    # A lone surrogate is no Unicode; readers other than Python's refuse it even when it is escaped.
    assert finding["advice"] == HOSTILE_LINE.replace("\udc80", "\\udc80")
