"""Notebooks on the command line: checked as one module, told in cells, fixed with their JSON left as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perflint.cli import app
from perflint.report import FORMATS

COPIED, PLAIN = "copy.deepcopy(model.state_dict())", "model.state_dict()"
CELLS: list[tuple[str, list[str]]] = [
    ("markdown", ["# Training\n", "in a notebook"]),
    ("code", ["%matplotlib inline\n", "import copy, gc\n", "import torch\n", "!pip install 'torch"]),
    (
        "code",
        [
            "def train(model: torch.nn.Module, loader, optimizer):  # é\n",
            "    for batch in loader:\n",
            "        step(model, batch)\n",
            "        optimizer.step()\n",
        ],
    ),
    ("code", ["def step(model, batch):\n", "    model(batch).sum().backward()\n", "    gc.collect()"]),
    (
        "code",
        [
            "%%time\n",
            "train(net, data, adam)\n",
            "def keep(model: torch.nn.Module):\n",
            f"    torch.save({COPIED}, 'last')",
        ],
    ),
]


def notebook(cells: list[tuple[str, list[str]]] = CELLS, indent: int | None = 1) -> str:
    listed: list[dict[str, Any]] = []
    for kind, source in cells:
        outputs: dict[str, Any] = {"execution_count": 3, "outputs": []} if kind == "code" else {}
        listed.append({"cell_type": kind, **outputs, "metadata": {}, "source": source})
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=indent) + "\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "run.ipynb").write_text(notebook())
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    app.run(["check", "--output-format", "json", *arguments])
    listed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return listed


def test_cells_are_one_module_and_findings_name_cell_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    (collection,) = found(capsys, "--select", "TPL303")
    assert (collection["cell"], collection["line"], collection["column"]) == (4, 3, 5)
    assert collection["heat"] == "step"
    assert [(hop["cell"], hop["line"]) for hop in collection["why_hot"]] == [(3, 2), (3, 3)]
    assert [(edit["cell"], edit["line"]) for edit in collection["fix"]["edits"]] == [(4, 3)]


def test_the_cache_gives_the_same(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    once = found(capsys)
    assert once
    assert found(capsys) == once
    assert found(capsys, "--no-cache") == once
    (project / "other.py").write_text("x = 1\n")
    assert found(capsys) == once


def test_a_notebook_and_a_module_know_each_other(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "helper.py").write_text("import gc\n\n\ndef tidy():\n    gc.collect()\n")
    loop = ["import helper\n", "for batch in loader:\n", "    model(batch).backward()\n", "    optimizer.step()\n"]
    (project / "run.ipynb").write_text(notebook([("code", [*loop, "    helper.tidy()"])]))
    (collection,) = found(capsys, "--select", "TPL303", "helper.py")
    assert [(hop["path"], hop.get("cell"), hop["line"]) for hop in collection["why_hot"]] == [
        ("run.ipynb", 1, 2),
        ("run.ipynb", 1, 5),
    ]


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_prints_it(output_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["check", "--output-format", output_format]) == 1
    printed = capsys.readouterr().out
    raw = notebook().splitlines()
    line = next(number for number, text in enumerate(raw, 1) if '"    gc.collect()"' in text)
    if output_format in {"text", "html"}:
        assert "run.ipynb:cell 4:3:5" in printed
        assert "run.ipynb:cell 3:2" in printed
    elif output_format == "markdown":
        assert "cell 4, 3:5" in printed
    elif output_format == "github":
        assert f"file=run.ipynb,line={line},endLine={line}," in printed
    elif output_format == "sarif":
        results = json.loads(printed)["runs"][0]["results"]
        lines = [one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in results]
        assert line in lines


def test_a_cell_that_does_not_parse_is_two_and_stays_so(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    raw = notebook([*CELLS, ("code", ["x = 1\n", "y = = 2\n"]), ("code", ["z = = 3\n"])])
    (project / "run.ipynb").write_text(raw)
    for _ in range(2):  # the second time with what the cache knows
        assert app.run(["check", "--output-format", "json"]) == 2
        printed = json.loads(capsys.readouterr().out)
        assert [error["message"].partition(":")[0] for error in printed["errors"]] == [
            "cell 6, line 2",
            "cell 7, line 1",
        ]
        assert "y = = 2" in raw.splitlines()[printed["errors"][0]["line"] - 1]
        assert len(printed["findings"]) >= 2


@pytest.mark.parametrize("text", ["", "{}", '{"cells": 3}', "\udcff"])
def test_a_broken_notebook_is_two(text: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "run.ipynb").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert app.run(["check"]) == 2
    assert "run.ipynb" in capsys.readouterr().out


@pytest.mark.parametrize("indent", [None, 1, 2])
@pytest.mark.parametrize("command", [["fix", "--apply"], ["check", "--fix"]])
def test_fixes_change_the_lines_they_change(command: list[str], indent: int | None, project: Path) -> None:
    raw = notebook(indent=indent)
    (project / "run.ipynb").write_text(raw)
    assert app.run(command) == 1
    assert (project / "run.ipynb").read_text() == raw.replace(COPIED, PLAIN)
    assert app.run(["fix", "--apply", "--unsafe", "--select", "TPL303"]) == 1
    lines = json.loads((project / "run.ipynb").read_text())["cells"][3]["source"]
    assert lines == CELLS[3][1][:2]
    assert app.run(["fix", "--unsafe", "--select", "TPL3"]) == 0


def test_the_diff_is_one_of_the_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["fix", "--select", "TPL301"]) == 1
    changed = [line for line in capsys.readouterr().out.splitlines() if line[0] in "+-"]
    line = json.dumps(CELLS[4][1][3])
    assert changed == ["--- run.ipynb", "+++ run.ipynb", f"-    {line}", f"+    {line.replace(COPIED, PLAIN)}"]


def test_comments_in_cells_silence_and_are_taken_away(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [*CELLS[:3], ("code", [*CELLS[3][1], "  # perflint: ignore[TPL303] meant"]), CELLS[4]]
    (project / "run.ipynb").write_text(notebook(cells))
    assert found(capsys, "--select", "TPL303") == []
    stale = notebook([*CELLS[:3], ("code", ["x = 1  # perflint: ignore[TPL303]\n", "y = 2"])])
    (project / "run.ipynb").write_text(stale)
    assert [(one["code"], one["cell"]) for one in found(capsys, "--select", "TPL001,TPL303")] == [("TPL001", 4)]
    assert app.run(["fix", "--apply", "--select", "TPL001,TPL303"]) == 1
    assert (project / "run.ipynb").read_text() == stale.replace("  # perflint: ignore[TPL303]", "")


def test_standard_input_may_be_a_notebook(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with (project / "run.ipynb").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert app.run(["fix", "-", "--stdin-filename", "run.ipynb", "--select", "TPL301"]) == 0
    assert capfdbinary.readouterr().out == notebook().replace(COPIED, PLAIN).encode()


def test_heat_is_explained_by_cell_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["check", "--explain-heat", "run.ipynb:4:3"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("run.ipynb:cell 4:3 runs every step")
    assert "run.ipynb:cell 3:2  for batch in loader" in printed
    for place in ("run.ipynb:3", "run.ipynb:1:1", "run.ipynb:9:1"):
        assert app.run(["check", "--explain-heat", place]) == 2


SCANS = """\
from PIL import Image
from torch.utils.data import Dataset


class Scans(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return Image.open(self.files[index])
"""
TRAINING = """\
from torch.utils.data import DataLoader


def train(model, files, optimizer):
    for scan in DataLoader(Scans(files), batch_size=8):
        model(scan).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("of_notebook", [True, False])
def test_workers_are_asked_for_where_they_find_the_data_set(
    project: Path, capsys: pytest.CaptureFixture[str], *, of_notebook: bool
) -> None:
    """A worker that is spawned imports the class of the data set, which it cannot from a notebook."""
    (project / "scans.py").write_text(SCANS)
    first = SCANS if of_notebook else "from scans import Scans\n"
    (project / "run.ipynb").write_text(notebook([("code", [first]), ("code", [TRAINING])]))
    codes = [one["code"] for one in found(capsys, "--select", "TPL103", "run.ipynb")]
    assert codes == ([] if of_notebook else ["TPL103"])
