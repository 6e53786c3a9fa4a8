"""Whatever is edited between two runs: what is taken from the cache is what a run without one finds."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from pathlib import Path

import pytest
from chained_project import FILES, write_project
from random_edits import Editor
from two_runs import checked

from perflint.analysis.program import MODULE, Program, Scope
from perflint.analysis.queries.answers import Digests
from perflint.analysis.queries.asked import Asked, still_holds
from perflint.ir.survey import survey


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("seed", range(4))
def test_edits_leave_no_finding_of_yesterday(project: Path, seed: int) -> None:
    assert checked(cache=True)[0].findings
    editor = Editor(project, seed)
    done: list[str] = []
    inspected, files = 0, 0
    for _ in range(16):
        done.append(editor.edit())
        known, again = checked(cache=True)
        fresh, whole = checked(cache=False)
        assert known == fresh, done
        inspected, files = inspected + len(again), files + len(whole)
    assert inspected < files * 2 / 3  # most edits leave most files alone


@pytest.mark.skipif(sys.platform != "linux", reason="files are spread over forked processes on Linux only")
def test_processes_share_what_is_known(project: Path) -> None:
    for number in range(60):
        (project / f"copy_{number}.py").write_text(FILES["steps.py"])
    first, _ = checked(cache=True, jobs=2)
    (project / "settings.py").write_text(FILES["settings.py"].replace("32", "32  # rows"))
    known, again = checked(cache=True)
    assert (known, again) == (first, ["settings.py"])


def test_a_remark_in_a_leaf_has_that_leaf_inspected_alone(project: Path) -> None:
    first, whole = checked(cache=True)
    assert len(whole) == sum(name.endswith(".py") for name in FILES)
    (project / "search.py").write_text(FILES["search.py"].replace("\n\n\n", "  # remark\n\n\n", 1))
    assert checked(cache=True) == (first, ["search.py"])
    (project / "search.py").write_text(FILES["search.py"])
    assert checked(cache=True) == (first, [])


def test_heat_reaches_files_that_nobody_touched(project: Path) -> None:
    def places() -> set[tuple[str, int]]:
        report, _ = checked(cache=True)
        return {(one.path, one.span.line) for one in report.findings if one.code == "TPL303"}

    collected = FILES["steps.py"].splitlines().index("    gc.collect()") + 1
    assert ("steps.py", collected) in places()
    (project / "train.py").write_text(FILES["train.py"].replace("train_step(model, batch, optimizer)", "0.0"))
    assert ("steps.py", collected) not in places()


def test_what_nobody_asked_for_yesterday_is_asked_for_by_another_file(project: Path) -> None:
    (project / "watched.py").write_text(
        "import torch\n\n\nclass Meter:\n    def note(self, values, exact=False):\n"
        "        if exact:\n            self.last = values.sum().item()\n\n\n"
        "def train(model, loader, optimizer):\n    meter, model = Meter(), model.cuda()\n    for batch in loader:\n"
        "        output = model(batch.cuda())\n        meter.note(output)\n        output.mean().backward()\n"
        "        optimizer.step()\n"
    )
    (project / "asking.py").write_text("def ask(values):\n    return values\n")
    known, _ = checked(cache=True)
    assert known == checked(cache=False)[0]
    assert not [one for one in known.findings if (one.path, one.span.line) == ("watched.py", 7)]
    (project / "asking.py").write_text(
        "def train(meters, model, loader, optimizer):\n    for batch in loader:\n        output = model(batch.cuda())\n"
        "        meters[0].note(output, exact=True)\n        output.mean().backward()\n        optimizer.step()\n"
    )
    known, _ = checked(cache=True)
    assert known == checked(cache=False)[0]
    assert [one.code for one in known.findings if (one.path, one.span.line) == ("watched.py", 7)] == ["TPL201"]


def test_another_torch_is_another_result(project: Path) -> None:
    checked(cache=True)
    (project / "requirements.txt").write_text("torch==1.12.0\n")
    known, again = checked(cache=True)
    assert again
    assert known == checked(cache=False)[0]


def test_a_file_that_fails_is_asked_again(project: Path) -> None:
    (project / "data.py").write_text("def (:\n")
    broken, _ = checked(cache=True)
    assert broken.errors
    assert checked(cache=True) == (broken, [])
    (project / "data.py").write_text(FILES["data.py"])
    assert checked(cache=True)[0] == checked(cache=False)[0]


def test_what_is_asked_in_a_way_of_its_own_depends_on_every_file(project: Path) -> None:
    """A rule of somebody else's may look at any part of the program."""
    summaries = {
        path: survey(ast.parse(text), text.splitlines()) for path, text in FILES.items() if path.endswith(".py")
    }
    program = Program(summaries)
    asked = Asked(program, "train.py", Digests(program, {}))
    own = asked.questions()
    assert asked.as_program.refs("main", Scope("train.py", MODULE)) == program.refs("main", Scope("train.py", MODULE))
    assert asked.as_program.modules is program.modules
    everything = asked.questions()
    changed = Program(summaries | {"ring_one.py": survey(ast.parse("x = 1"), ["x = 1"])})
    assert still_holds(changed, Digests(changed, {}), own)
    assert still_holds(program, Digests(program, {}), everything)
    assert not still_holds(changed, Digests(changed, {}), everything)


def test_whole_tables_and_single_entries_are_questions(project: Path) -> None:
    summaries = {
        path: survey(ast.parse(text), text.splitlines()) for path, text in FILES.items() if path.endswith(".py")
    }
    program = Program(summaries)
    asked = Asked(program, "train.py", Digests(program, {}))
    seen = asked.as_program
    assert list(seen.roots.loops) == list(program.roots.loops)
    assert list(seen.summaries) == list(program.summaries)
    for scope, edges in program.graph.outgoing.items():
        assert list(seen.graph.outgoing.get(scope, ())) == list(edges)
        assert seen.callers(scope) == program.callers(scope)
        assert seen.heat(scope) == program.heat(scope)
        for edge in edges:
            assert seen.argument(edge, "x") == program.argument(edge, "x")
    noted = json.loads(json.dumps(asked.questions()))
    again = Program(summaries)
    assert still_holds(again, Digests(again, {}), noted)


def test_parts_of_a_changed_file_are_asked_for_one_by_one() -> None:
    lines = "import time\ndef read():\n    return {}\ndef other():\n    return {}\nclass Held:\n    size: {}\n"

    def changed(**values: str) -> tuple[Program, Digests]:
        written = {"read": "1", "other": "2", "size": "int"} | values
        text = lines.format(written["read"], written["other"], written["size"])
        program = Program({"main.py": survey(ast.parse("read()"), ["read()"]), "parts.py": survey(ast.parse(text), [])})
        return program, Digests(program, {"parts.py": text.encode()})

    program, digests = changed()
    asked = Asked(program, "main.py", digests)
    parts = asked.as_program.summaries["parts.py"]
    assert "read" in parts.functions
    assert parts.classes.get("Held") is not None
    assert parts.imports["time"] == "time"
    noted = json.loads(json.dumps(asked.questions()))
    assert still_holds(*changed(), noted)
    assert still_holds(*changed(other="3"), noted)
    assert not still_holds(*changed(read="3"), noted)
    assert not still_holds(*changed(size="str"), noted)


def test_no_rule_of_ours_depends_on_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(Path(__file__).parents[2] / "fixtures", tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    Path("pyproject.toml").write_text("[tool.perflint]\nextra = true\n")
    asking: set[str] = set()
    monkeypatch.setattr(Asked, "everything", lambda asked: asking.add(asked.path))
    report, inspected = checked(cache=True)
    assert report.findings
    assert len(inspected) > 500
    assert asking == set()
