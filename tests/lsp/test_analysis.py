"""What the server checks with, without the protocol around it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pygls")

from perflint.engine.worker import Worker
from perflint.lsp.analysis import Analyst, CancelledError
from perflint.project.discovery import FoundFile

HOT = """import gc


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        gc.collect()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    for number in range(5):
        (tmp_path / f"part{number}.py").write_text(f"x = {number}\n")
    return tmp_path


def test_a_check_is_given_up_in_the_middle(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    survey = Worker.survey

    def noted(self: Worker, file: FoundFile) -> object:
        read.append(file.display)
        return survey(self, file)

    monkeypatch.setattr(Worker, "survey", noted)
    analyst = Analyst()
    with pytest.raises(CancelledError):
        analyst.check({project / "train.py": HOT}, lambda: len(read) >= 2)
    assert len(read) == 2
    # What was read so far is known to the next one.
    found = analyst.check({project / "train.py": HOT}, lambda: False)
    assert [one.code for one in found[project / "train.py"].findings] == ["TPL303"]
    assert len(read) == 6


def test_documents_of_two_projects_and_of_none(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "perflint.toml").write_text('ignore = ["TPL303"]\n')
    found = Analyst().check({project / "train.py": HOT, other / "train.py": HOT}, lambda: False)
    assert [len(found[folder / "train.py"].findings) for folder in (project, other)] == [1, 0]
