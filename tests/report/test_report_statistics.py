"""Counts by rule in the place of findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_samples import EMPTY, ERRORS_ONLY, REPORT, shown

from perflint.cli.app import run
from perflint.finding import Report
from perflint.report import COUNTING, FORMATS


def test_json_counts_by_rule() -> None:
    report = Report((*REPORT.findings, REPORT.findings[1]), (), 17)
    assert json.loads(shown(report, "json", statistics=True)) == {
        "version": "1.2.3",
        "statistics": [
            {
                "code": "TPL101",
                "name": "blocking-transfer",
                "count": 2,
                "impact": "medium",
                "safe_fixes": 2,
                "unsafe_fixes": 0,
            },
            {
                "code": "TPL201",
                "name": "sync-in-hot-loop",
                "count": 1,
                "impact": "high",
                "safe_fixes": 0,
                "unsafe_fixes": 1,
            },
        ],
        "total": 3,
        "errors": [],
        "files": 17,
    }
    nothing = json.loads(shown(EMPTY, "json", statistics=True))
    assert (nothing["statistics"], nothing["total"], nothing["files"]) == ([], 0, 4)
    assert len(json.loads(shown(ERRORS_ONLY, "json", statistics=True))["errors"]) == 2


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in COUNTING])
def test_a_format_that_cannot_count_says_so(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", "--statistics", "--output-format", name]) == 2
    assert f"text, full, concise, grouped, json, not {name}" in capsys.readouterr().err
