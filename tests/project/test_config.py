"""`perflint config`: where each setting came from, and schemas that say what the reader and the printer do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perflint.cli import app, schemas
from perflint.errors import SettingsError
from perflint.project import settings
from perflint.report import FORMATS
from perflint.verify import options

HOT = """import gc


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        gc.collect()
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert app.run(["config", "show", "--output-format", "json", *arguments]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_every_setting_is_shown_with_where_it_came_from(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text(
        '[project]\nselect = 1\n[tool.perflint]\n"select" = ["TPL3"]\nfail-on = "high"\n'
        '[tool.perflint.per-file-ignores]\n"a/**" = ["TPL1"]\n[tool.other]\nignore = 1\n'
    )
    found = shown(capsys)
    assert found["file"] == "pyproject.toml"
    sources = {key: one["source"] for key, one in found["settings"].items()}
    assert set(sources) == set(settings._READERS)
    assert {key: source for key, source in sources.items() if "toml" in source} == {
        "select": "pyproject.toml:4",
        "fail-on": "pyproject.toml:5",
        "per-file-ignores": "pyproject.toml:6",
    }
    assert found["settings"]["fail-on"]["value"] == "impact=high,confidence=low"
    assert sources["ignore"] == "default"


def test_what_is_worked_out_says_from_what(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "requirements.txt").write_text("torch>=2.1\n")
    found = shown(capsys)
    assert found["file"] is None
    assert found["settings"]["target-torch"] == {"value": "2.1", "source": "requirements.txt:1"}


def test_people_read_a_table(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "perflint.toml").write_text('baseline = "known.json"\n')
    assert app.run(["config", "show"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("perflint.toml\n\n")
    assert 'baseline         = "known.json"' in printed
    assert "# perflint.toml:1" in printed


def schema(capsys: pytest.CaptureFixture[str], of: str) -> Any:
    """Printed, and valid itself."""
    jsonschema = pytest.importorskip("jsonschema")
    assert app.run(["config", "schema", of]) == 0
    printed = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(printed)
    return jsonschema.Draft202012Validator(printed)


def test_the_schema_knows_every_key() -> None:
    assert set(schemas.configuration()["properties"]) == set(settings._READERS)


VERIFY: list[dict[str, Any]] = [
    {},
    {"bench": "a:b", "budget": "2m", "timeout": 5, "seed": -1, "rtol": 0, "min-speedup": 1.02, "link": ["data"]},
    {"command": "python a.py", "metric": "(.*)", "higher-is-better": True, "budget": "500 ms"},
    {"budgte": "1s"},
    {"budget": "soon"},
    {"budget": "0s"},
    {"budget": 0},
    {"budget": True},
    {"higher-is-better": "yes"},
    {"atol": -1},
    {"seed": 0.5},
    {"link": "data"},
    {"bench": 1},
]


def test_the_schema_knows_every_key_of_verify() -> None:
    assert set(schemas.configuration()["properties"]["verify"]["properties"]) == set(options._READERS)


@pytest.mark.parametrize("table", VERIFY, ids=str)
def test_the_schema_takes_what_verify_takes(table: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    found = settings.settings_of({"verify": table}, Path("perflint.toml").absolute())
    try:
        options.options_from(found, {})
    except SettingsError:
        right = False
    else:
        right = True
    assert schema(capsys, "config").is_valid({"verify": table}) is right


CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"select": ["TPL1"], "extra": True, "jobs": 2, "target-torch": "2.4", "cache-dir": "x", "baseline": "b.json"},
    {"fail-on": "high"},
    {"fail-on": "impact=medium,confidence=high"},
    {"per-file-ignores": {"a/**": ["TPL1"]}, "output-format": "html", "verify": {"bench": "a:b"}},
    {"fail-on": "loud"},
    {"fail-on": "impact=high,"},
    {"selct": []},
    {"select": "TPL1"},
    {"jobs": 0},
    {"jobs": True},
    {"target-torch": "2"},
    {"confidence": "sure"},
    {"cache-dir": ""},
    {"output-format": "xml"},
    {"per-file-ignores": {"a": "TPL1"}},
]


@pytest.mark.parametrize("table", CONFIGURATIONS, ids=str)
def test_the_schema_takes_what_the_reader_takes(table: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        settings.settings_of(table, Path("perflint.toml").absolute())
    except SettingsError:
        right = False
    else:
        right = True
    assert schema(capsys, "config").is_valid(table) is right


def test_the_schema_of_the_report_holds_for_what_is_printed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = {"cell_type": "code", "source": HOT.splitlines(keepends=True)}
    (project / "n.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    (project / "train.py").write_text(HOT + "        x = loss.item()\n")
    (project / "broken.py").write_text("def f(:\n")
    assert app.run(["check", "--output-format", "json", "--extra"]) == 2
    printed = json.loads(capsys.readouterr().out)
    assert printed["findings"]
    validator = schema(capsys, "report")
    validator.validate(printed)
    assert not validator.is_valid({**printed, "findings": [{**printed["findings"][0], "heat": "warm"}]})
    assert not validator.is_valid({**printed, "files": None})


def test_the_formats_are_those_there_are() -> None:
    assert schemas.configuration()["properties"]["output-format"]["enum"] == list(FORMATS)
