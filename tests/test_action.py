"""The GitHub action: its inputs are used and declared, and its scripts do what a runner would have them do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
HOT = """import gc


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        gc.collect()
"""
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def test_every_input_is_used_and_every_one_used_is_declared() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])
    assert all(one["description"] and isinstance(one["default"], str) for one in ACTION["inputs"].values())


def test_nothing_from_outside_becomes_a_part_of_a_script() -> None:
    for step in STEPS:
        assert not _EXPRESSION.search(step.get("run", "")), step["name"]
        assert step.get("shell") == "bash" or "run" not in step


class Runner:
    """As much of a runner as the scripts see."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.temporary = folder / "temporary"
        self._outputs = folder / "outputs"
        self.workspace.mkdir()
        tool = self.temporary / "perflint" / "bin" / "perflint"
        tool.parent.mkdir(parents=True)
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m perflint "$@"\n')
        tool.chmod(0o755)
        (self.workspace / "pyproject.toml").write_text("")

    def run(self, step: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run a step of the action with these inputs, their dashes written as `_`."""
        wanted = next(one for one in STEPS if one["name"] == step)
        values = {f"inputs.{name}": one["default"] for name, one in ACTION["inputs"].items()}
        values |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        values |= {f"steps.check.outputs.{name}": value for name, value in self.outputs.items()}

        def filled(text: str) -> str:
            return _EXPRESSION.sub(lambda match: values.get(match[1], ""), text)

        self._outputs.touch()
        environment = {name: filled(value) for name, value in wanted.get("env", {}).items()}
        environment |= {
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(self._outputs),
            "PYTHONPATH": str(ROOT),
        }
        script = self.temporary / "script.sh"
        script.write_text(wanted["run"])
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace / filled(wanted.get("working-directory", ".")),
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    @property
    def outputs(self) -> dict[str, str]:
        if not self._outputs.exists():
            return {}
        pairs = (line.partition("=") for line in self._outputs.read_text().splitlines())
        return {name: value for name, _, value in pairs}


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    return Runner(tmp_path)


def test_findings_are_annotated_and_reported(runner: Runner) -> None:
    (runner.workspace / "train.py").write_text(HOT)
    done = runner.run("Check")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("::warning file=train.py,line=8,endLine=8,col=9,")
    assert runner.outputs == {"exit-code": "1", "sarif-file": "./perflint.sarif"}
    results = json.loads((runner.workspace / "perflint.sarif").read_text())["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == ["TPL303"]
    assert runner.run("Tell how it ended").returncode == 1
    assert runner.run("Tell how it ended", fail="false").returncode == 0


def test_paths_and_arguments_stay_what_they_are(runner: Runner) -> None:
    odd = runner.workspace / "a folder; touch x" / "train$(touch y).py"
    odd.parent.mkdir()
    odd.write_text(HOT)
    (runner.workspace / "cold.py").write_text("x = 1\n")
    paths = f"cold.py\n{odd.relative_to(runner.workspace)}\n"
    done = runner.run("Check", paths=paths, args="--select\nTPL303\n", sarif_file="")
    assert done.stdout.count("::warning") == 1
    assert runner.outputs == {"exit-code": "1"}
    assert sorted(path.name for path in runner.workspace.glob("[xy]")) == []


def test_another_folder(runner: Runner) -> None:
    (runner.workspace / "pkg").mkdir()
    (runner.workspace / "pkg" / "train.py").write_text(HOT)
    done = runner.run("Check", working_directory="pkg", paths="train.py")
    assert "::warning" in done.stdout
    assert (runner.workspace / runner.outputs["sarif-file"]).exists()


def test_a_mistake_fails_the_job_whatever_was_asked_for(runner: Runner) -> None:
    assert runner.run("Check", paths="gone.py").returncode == 0
    assert runner.outputs["exit-code"] == "2"
    assert runner.run("Tell how it ended", fail="false").returncode == 2
