import json
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from report_samples import EMPTY, ERRORS_ONLY, HOSTILE, REPORT, RULES, SYNC, TRANSFER, one, shown

from perflint.finding import Applicability, Edit, Fix, Hop, Report, Silenced, Span
from perflint.report import as_sarif, render
from perflint.rule_api.registry import load_rules

ROOT = Path(__file__).parents[2]


def run_of(report: Report, **options: Any) -> Any:
    text = render(report, "sarif", RULES, version="1.2.3", **options)
    assert text.isascii()
    document = json.loads(text)
    assert document["version"] == "2.1.0"
    return document["runs"][0]


def test_whole_result() -> None:
    run = run_of(REPORT)
    result = run["results"][1]
    uri = {"uri": "train.py", "uriBaseId": "%SRCROOT%"}
    # Two emoji stand before the call: in UTF-16 each counts twice.
    region = {"startLine": 4, "startColumn": 26, "endLine": 4, "endColumn": 51}
    here = {
        "physicalLocation": {
            "artifactLocation": uri,
            "region": {**region, "snippet": {"text": 'batch["image"].to(device)'}},
        }
    }
    loop = {
        "physicalLocation": {
            "artifactLocation": uri,
            "region": {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 38},
        },
        "message": {"text": "for step, batch in enumerate(loader)"},
    }
    message = '`batch["image"].to(device)` makes the host wait for the copy.'
    assert result == {
        "ruleId": "TPL101",
        "ruleIndex": 0,
        "level": "warning",
        "rank": 58.0,
        "message": {
            "text": f"{message} It runs every step: [for step, batch in enumerate(loader)](1). "
            'Copy asynchronously: `batch["image"].to(device, non_blocking=True)`.'
        },
        "locations": [here],
        "relatedLocations": [{"id": 1, **loop}],
        "codeFlows": [
            {
                "message": {"text": "Why this runs every step."},
                "threadFlows": [
                    {
                        "locations": [
                            {"location": loop, "nestingLevel": 0, "importance": "essential"},
                            {
                                "location": {**here, "message": {"text": message}},
                                "nestingLevel": 1,
                                "importance": "essential",
                            },
                        ]
                    }
                ],
            }
        ],
        "fixes": [
            {
                "description": {"text": "pass `non_blocking=True` (safe; same bits)"},
                "artifactChanges": [
                    {
                        "artifactLocation": uri,
                        "replacements": [
                            {
                                "deletedRegion": {"startLine": 4, "startColumn": 50, "endLine": 4, "endColumn": 50},
                                "insertedContent": {"text": ", non_blocking=True"},
                            }
                        ],
                    }
                ],
            }
        ],
        "properties": {"confidence": "high", "impact": "medium", "heat": "step"},
        "partialFingerprints": result["partialFingerprints"],
    }
    assert sorted(result["partialFingerprints"]) == ["perflint/v1", "primaryLocationLineHash"]


def test_run_properties() -> None:
    run = run_of(REPORT)
    assert run["columnKind"] == "utf16CodeUnits"
    assert run["automationDetails"]["id"] == "perflint/check/"
    assert [result["ruleId"] for result in run["results"]] == ["TPL201", "TPL101"]
    # A message without its full stop would have no title of its own.
    assert run["results"][0]["message"]["text"].startswith("`loss.item()` makes the host wait for the device. It runs")
    assert run["invocations"] == [
        {
            "executionSuccessful": False,
            "toolExecutionNotifications": [
                {
                    "level": "error",
                    "message": {"text": "invalid syntax"},
                    "descriptor": {"id": "perflint/error", "index": 0},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "pkg/broken.py", "uriBaseId": "%SRCROOT%"},
                                "region": {"startLine": 7, "startColumn": 3},
                            }
                        }
                    ],
                }
            ],
        }
    ]


def test_all_rules_are_listed_and_plugins_apart() -> None:
    tool = run_of(EMPTY)["tool"]
    assert tool["driver"]["semanticVersion"] == "1.2.3"
    assert tool["driver"]["rules"] == [
        {
            "id": "TPL101",
            "name": "BlockingTransfer",
            "shortDescription": {"text": "A host-to-device copy makes the host wait."},
            "fullDescription": {
                "text": "A host-to-device copy makes the host wait. "
                "Without `non_blocking=True` the host waits for the copy."
            },
            "help": {
                "text": RULES[1].page(),
                "markdown": "A host-to-device copy makes the host wait.\n\n"
                "## What it does\n\nReports blocking copies.\n\n"
                "## Why is this slow?\n\nWithout `non_blocking=True` the host waits for the copy.\n\n"
                "## What to do\n\nPass `non_blocking=True`.\n\n"
                "## Fix safety\n\nSafe where the device is CUDA.\n\n"
                "## Not reported\n\n- Copies on the CPU.",
            },
            "defaultConfiguration": {"level": "warning", "enabled": True},
            "properties": {
                "precision": "high",
                "problem.severity": "warning",
                "tags": ["performance", "pytorch", "core", "accelerator"],
            },
        }
    ]
    assert [(one["name"], [rule["id"] for rule in one["rules"]]) for one in tool["extensions"]] == [
        ("report_samples", ["ACME001"])
    ]


def test_a_plugin_finding_names_its_component_and_an_engine_finding_gets_a_descriptor() -> None:
    plugin = replace(TRANSFER, code="ACME001", name="something-else")
    run = run_of(Report((plugin, SYNC), (), 1))
    engine, added = run["results"]
    # Both `ruleId` and `rule` would be a warning to the validator.
    assert "ruleId" not in added
    assert added["rule"] == {"id": "ACME001", "index": 0, "toolComponent": {"index": 0}}
    assert run["tool"]["driver"]["rules"][engine["ruleIndex"]]["id"] == engine["ruleId"] == "TPL201"


def test_empty_and_errors_only() -> None:
    assert run_of(EMPTY)["results"] == []
    assert run_of(EMPTY)["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]
    notifications = run_of(ERRORS_ONLY)["invocations"][0]["toolExecutionNotifications"]
    assert [len(notification["locations"][0]["physicalLocation"]) for notification in notifications] == [2, 1]


def test_uris_are_relative_to_the_root_encoded_and_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "repo" / "src dir"
    package.mkdir(parents=True)
    (package / "é%.py").write_text("x\n", encoding="utf-8")
    (package / "link.py").symlink_to(package / "é%.py")
    monkeypatch.chdir(package)
    for path in ("é%.py", "link.py"):
        run = run_of(one("x\n", Span(1, 1, 1, 2), path), root=tmp_path / "repo")
        location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        assert location == {"uri": "src%20dir/%C3%A9%25.py", "uriBaseId": "%SRCROOT%"}
        assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"file://{tmp_path}/repo/"
    outside = run_of(one("x\n", Span(1, 1, 1, 2), "../../elsewhere.py"), root=tmp_path / "repo")
    location = outside["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": f"file://{tmp_path}/elsewhere.py"}


def test_hostile_text() -> None:
    text = shown(HOSTILE, "sarif")
    result = json.loads(text)["runs"][0]["results"][0]
    text.encode().decode("utf-8")
    assert "\\ud" not in text.replace("\\\\ud", "")
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.startswith("a%0A%3A%3Aerror%3A%3Ax%250A%2Cb%3Ac%1B%5B31m%E2%80%AE%3C/script%3E")
    # The quoted `[l](http://e.vil)` stays text; the only links lead to related locations.
    assert "\\[l](http" in result["message"]["text"]
    assert "\x1b" not in result["message"]["text"]


def test_inserted_text_has_the_line_endings_of_its_file() -> None:
    fix = Fix("split", Applicability.SAFE, (Edit(Span(1, 1, 1, 1), "a\nb\n"),))
    report = one("x = 1\r\ny = 2\r\n", Span(1, 1, 1, 2))
    run = run_of(replace(report, findings=(replace(report.findings[0], fix=fix),)))
    inserted = run["results"][0]["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]
    assert inserted == {"text": "a\r\nb\r\n"}


def test_a_fix_for_reading_only_is_not_offered_to_editors() -> None:
    fix = Fix("think", Applicability.SHOWN, (Edit(Span(4, 1, 4, 1), "?"),))
    assert "fixes" not in run_of(Report((replace(TRANSFER, fix=fix),), (), 1))["results"][0]


def test_silenced_findings_only_when_asked_for() -> None:
    report = Report((), (), 1, {}, (Silenced(TRANSFER, 3, "copies are small"),))
    assert run_of(report)["results"] == []
    (result,) = run_of(report, silenced=True)["results"]
    assert result["suppressions"] == [{"kind": "inSource", "status": "accepted", "justification": "copies are small"}]


def test_too_many_results_are_cut_worst_first_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_sarif, "MOST_RESULTS", 1)
    run = run_of(Report((TRANSFER, SYNC), (), 1))
    assert [result["ruleId"] for result in run["results"]] == ["TPL201"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["level"] == "warning"
    assert notification["message"]["text"].startswith("1 of 2 findings are left out")


def test_too_many_bytes_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_sarif, "MOST_BYTES", 4000)
    many = tuple(
        replace(TRANSFER, message=f"{number} waits.", span=Span(number + 1, 1, number + 1, 9)) for number in range(2000)
    )
    run = run_of(Report((*many, SYNC), (), 1))
    assert 0 < len(run["results"]) < 2001
    assert run["results"][0]["ruleId"] == "TPL201"
    assert "of 2001 findings" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_long_routes_keep_both_ends() -> None:
    route = tuple(Hop("train.py", number, f"f{number}") for number in range(1, 5001))
    result = run_of(Report((replace(TRANSFER, route=route),), (), 1))["results"][0]
    texts = [location["message"]["text"] for location in result["relatedLocations"]]
    assert len(texts) == 100
    assert (texts[0], texts[-1]) == ("f1", "f5000")


def test_a_help_address_leads_to_a_page_of_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = load_rules()
    named = Message()
    named["Project-URL"] = "Repository, https://code.example.org/me/perflint.git"
    monkeypatch.setattr("importlib.metadata.metadata", lambda _name: named)
    described = json.loads(render(EMPTY, "sarif", rules, version="1"))["runs"][0]["tool"]["driver"]["rules"]
    prefix = "https://code.example.org/me/perflint/blob/HEAD/"
    assert len(described) == len(rules)
    for rule in described:
        assert rule["helpUri"].startswith(prefix)
        assert (ROOT / rule["helpUri"].removeprefix(prefix)).is_file()


def test_where_no_repository_is_known_no_address_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.metadata", lambda _name: Message())
    described = json.loads(render(EMPTY, "sarif", load_rules(), version="1"))["runs"][0]["tool"]["driver"]["rules"]
    assert not [rule for rule in described if "helpUri" in rule]
