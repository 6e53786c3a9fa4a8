"""Formats that CI servers and review bots read: `gitlab`, `junit`, `rdjson`."""

import dataclasses
import json
from xml.etree import ElementTree as ET

import pytest
from report_samples import EMPTY, REPORT, TRAIN, TRANSFER, shown

from perflint.finding import Edit, Report, Span


def test_gitlab_names_severity_place_and_fingerprint() -> None:
    transfer, sync, error = json.loads(shown(REPORT, "gitlab"))
    assert sync["severity"] == "major"
    assert sync["check_name"] == "TPL201"
    assert transfer["location"] == {
        "path": "train.py",
        "positions": {"begin": {"line": 4, "column": 24}, "end": {"line": 4, "column": 49}},
    }
    assert error["severity"] == "critical"
    assert error["location"] == {"path": "pkg/broken.py", "lines": {"begin": 7}}
    assert len({one["fingerprint"] for one in (transfer, sync, error)}) == 3
    assert json.loads(shown(EMPTY, "gitlab")) == []


def test_gitlab_fingerprints_survive_lines_above() -> None:
    moved = dataclasses.replace(TRANSFER, span=Span(6, 24, 6, 49))
    before = json.loads(shown(Report((TRANSFER,), (), 1, {"train.py": TRAIN}), "gitlab"))
    after = json.loads(shown(Report((moved,), (), 1, {"train.py": f"a = 1\nb = 2\n{TRAIN}"}), "gitlab"))
    assert before[0]["fingerprint"] == after[0]["fingerprint"]


def test_junit_has_a_suite_a_file_and_counts() -> None:
    root = ET.fromstring(shown(REPORT, "junit"))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "2", "1")
    assert [suite.get("name") for suite in root] == ["train.py", "pkg/broken.py"]
    case = root.find("./testsuite/testcase[@line='4']")
    assert case is not None
    failure = case.find("failure")
    assert failure is not None
    assert "what to do: Copy asynchronously" in (failure.text or "")


def test_junit_without_findings_is_a_passed_test() -> None:
    root = ET.fromstring(shown(EMPTY, "junit"))
    assert len(root.findall(".//testcase")) == 1
    assert root.find(".//failure") is None


def test_rdjson_counts_bytes() -> None:
    diagnostics = json.loads(shown(REPORT, "rdjson"))["diagnostics"]
    line = TRAIN.splitlines()[3].encode()
    found = diagnostics[0]["location"]["range"]
    start, end = found["start"]["column"], found["end"]["column"]
    assert line[start - 1 : end - 1].decode() == 'batch["image"].to(device)'
    assert diagnostics[0]["suggestions"][0]["text"] == ", non_blocking=True"
    assert diagnostics[2]["severity"] == "ERROR"


@pytest.mark.parametrize("count", [1, 2])
def test_rdjson_suggests_no_part_of_a_fix(count: int) -> None:
    edits = tuple(Edit(Span(4, 48 + at, 4, 48 + at), "x") for at in range(count))
    assert TRANSFER.fix is not None
    finding = dataclasses.replace(TRANSFER, fix=dataclasses.replace(TRANSFER.fix, edits=edits))
    diagnostic = json.loads(shown(Report((finding,), (), 1, {"train.py": TRAIN}), "rdjson"))["diagnostics"][0]
    assert ("suggestions" in diagnostic) is (count == 1)
