"""A crew shares work through all its steps, and what it finds is what one process finds, whoever dies on the way."""

from __future__ import annotations

import ast
import dataclasses
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from perflint.analysis.program import Program
from perflint.engine import Options, Run, check, parallel
from perflint.engine.worker import Worker
from perflint.engine.worker_group import Crew, Exchanged, LostMemberError, Member
from perflint.finding import Finding, Impact, Report
from perflint.ir.survey import survey
from perflint.project.discovery import FoundFile, discover
from perflint.project.settings import load_settings
from perflint.rule_api.context import Context
from perflint.rule_api.dispatch import Inspector
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Functions, Rule

(Collects,) = (rule for rule in load_rules() if rule.code == "TPL303")

pytestmark = pytest.mark.skipif(not parallel.can_fork(), reason="a crew is forked")


def told(size: int, numbers: list[int], work: Callable[[Member], None]) -> list[object]:
    crew = Crew(size, numbers, work)
    try:
        return list(crew.messages())
    finally:
        crew.close()


def test_each_number_is_taken_once() -> None:
    def work(member: Member) -> None:
        for number in member.common():
            member.tell(number)

    assert sorted(told(3, list(range(1000)), work), key=str) == sorted(range(1000), key=str)


def test_what_is_kept_is_done_by_others_when_its_owner_is_busy() -> None:
    def work(member: Member) -> None:
        if member.number == 0:
            member.keep([5, 6, 7])
        member.exchange(b"")
        if member.number == 0:
            member.exchange(b"")  # waits for the other one
        for number in member.kept():
            member.tell((member.number, number))
        if member.number == 1:
            member.exchange(b"")

    assert [message for message in told(2, [], work) if not isinstance(message, Exchanged)] == [(1, 5), (1, 6), (1, 7)]


def test_all_hear_what_all_say() -> None:
    def work(member: Member) -> None:
        for turn in (b"a", b"b"):
            member.tell((member.number, member.exchange(turn + bytes([member.number]))))

    messages = told(3, [], work)
    for turn in (b"a", b"b"):
        words = [turn + bytes([number]) for number in range(3)]
        assert Exchanged(words) in messages
        assert all((number, words) in messages for number in range(3))


def test_a_crew_is_no_reason_to_be_idle(tmp_path: Path) -> None:
    def work(member: Member) -> None:
        for _ in range(1000):
            if (tmp_path / "3").exists():
                member.tell("seen")
                return
            time.sleep(0.01)

    crew = Crew(2, [], work)
    crew.meanwhile = map(Path.touch, [tmp_path / str(number) for number in range(5)])
    assert list(crew.messages()) == ["seen", "seen"]
    crew.close()


@pytest.mark.parametrize("step", ["while the others wait for it", "while they work"])
def test_a_crew_is_lost_with_a_member(step: str) -> None:
    def work(member: Member) -> None:
        member.tell("begun")
        if member.number == 1:
            os._exit(0)
        if step == "while the others wait for it":
            member.exchange(b"")
        for _ in member.common():
            member.tell("done")

    crew = Crew(2, [1, 2], work)
    with pytest.raises(LostMemberError):
        list(crew.messages())
    crew.close()


def test_an_error_of_a_member_is_its_end() -> None:
    def work(_member: Member) -> None:
        raise ZeroDivisionError

    crew = Crew(2, [], work)
    with pytest.raises(LostMemberError):
        list(crew.messages())
    crew.close()


def test_a_crew_that_cannot_be_had_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    original = BaseProcess.start
    started: list[BaseProcess] = []

    def start(self: BaseProcess) -> None:
        if len(started) == 2:
            raise BlockingIOError
        original(self)
        started.append(self)

    monkeypatch.setattr(BaseProcess, "start", start)
    folder = Path("/proc/self/fd")
    open_before = {end.name for end in folder.iterdir()}
    with pytest.raises(BlockingIOError):
        Crew(3, [], lambda _: time.sleep(60))
    assert {end.name for end in folder.iterdir()} == open_before


CLEAN_UP = "\nclean_up = print\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "perflint.toml").write_text("")
    for number in range(80):
        (tmp_path / f"train_{number:02}.py").write_text(
            "import gc\nfrom shared import clean_up\n\n\n"
            "def train(model, loader, optimizer):\n    for batch in loader:\n"
            "        model(batch).backward()\n        optimizer.step()\n"
            + ("        gc.collect()\n" if number % 3 else "        clean_up()\n")
        )
    (tmp_path / "shared.py").write_text("import gc\n\n\ndef clean_up():\n    gc.collect()\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(
    jobs: int, rule: type[Rule] = Collects, *, cache: bool = False, progress: Callable[[int, int], None] | None = None
) -> Report:
    settings = load_settings(Path.cwd())
    return check(discover(["."], settings), Options(settings, [rule()], jobs=jobs, cache=cache, progress=progress))


def crews(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each crew that is at work from now on, whether it did everything."""
    found: list[bool] = []
    original = Run._crewed

    def noted(self: Run, crew: object, summaries: object) -> object:
        parts = original(self, crew, summaries)  # type: ignore[arg-type]
        found.append(crew.complete)  # type: ignore[attr-defined]
        return parts

    monkeypatch.setattr(Run, "_crewed", noted)
    return found


def once(folder: Path) -> bool:
    try:
        (folder / "struck").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@pytest.fixture
def alone(project: Path) -> Report:
    report = run(1)
    assert len(report.findings) == 54
    assert len(report.errors) == 1
    return report


@pytest.mark.parametrize("jobs", [2, 5])
def test_a_crew_finds_the_same(alone: Report, jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    done = crews(monkeypatch)
    steps: list[tuple[int, int]] = []
    assert run(jobs, progress=lambda *step: steps.append(step)) == alone
    assert done == [True]
    assert steps[-1] == (82 - 1, 82), "a file that cannot be read is not inspected"
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_a_crew_is_for_much_work(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = crews(monkeypatch)
    for file in list(project.glob("train_*.py"))[:50]:
        file.unlink()
    assert len(run(2).findings) > 0
    assert done == []


@pytest.mark.parametrize("where", ["survey", "inspection"])
def test_a_member_that_is_killed_loses_nothing(
    alone: Report, where: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = crews(monkeypatch)
    name = "survey" if where == "survey" else "inspect"
    original = getattr(Worker, name)

    def killed(self: Worker, file: FoundFile) -> object:
        if file.display == "train_07.py" and once(project):
            os.kill(os.getpid(), 9)
        return original(self, file)

    monkeypatch.setattr(Worker, name, killed)
    assert run(2) == alone
    assert done == [False]


def test_what_a_file_may_take_does_not_end_a_member_that_links(alone: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    done = crews(monkeypatch)

    def slow(*given: Any, **named: Any) -> Program:
        end = time.process_time() + (4 if given[-1].member.number == 0 else 0)
        while time.process_time() < end:
            pass
        return Program(*given, **named)

    monkeypatch.setattr("perflint.engine.crewed.Program", slow)
    settings = dataclasses.replace(load_settings(Path.cwd()), time_limit=0.3)
    assert check(discover(["."], settings), Options(settings, [Collects()], jobs=2, cache=False)) == alone
    assert done == [True]


@pytest.mark.parametrize("where", ["read", "inspected"])
def test_a_file_that_no_process_survives_costs_itself_alone(
    alone: Report, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "survey" if where == "read" else "inspect"
    original = getattr(Worker, name)
    parent = os.getpid()

    def killed(self: Worker, file: FoundFile) -> object:
        if file.display == "train_07.py":
            assert os.getpid() != parent, "here it would end the run"
            os.kill(os.getpid(), 9)
        return original(self, file)

    monkeypatch.setattr(Worker, name, killed)
    report = run(2)
    assert [one for one in report.findings if one.path != "train_07.py"] == [
        one for one in alone.findings if one.path != "train_07.py"
    ]
    (problem,) = [one for one in report.errors if one.path != "broken.py"]
    assert problem.path == "train_07.py"
    assert problem.message.startswith(f"ended two processes when it was to be {where}")


def test_an_error_in_the_link_of_a_member_is_raised_here(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("perflint.analysis.program.HeatMap", broken)
    with pytest.raises(ZeroDivisionError):
        run(2)


def test_what_a_crew_found_is_known_to_the_next_run(
    alone: Report, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = crews(monkeypatch)
    (project / "broken.py").unlink()
    assert run(2, cache=True).findings == alone.findings
    assert done == [True]

    def inspects_nothing(*_: object) -> object:
        raise AssertionError("inspected although it is known")

    with monkeypatch.context() as patch:
        patch.setattr(Inspector, "inspect", inspects_nothing)
        assert run(1, cache=True).findings == alone.findings, "the whole report"
        (project / "other.py").write_text("x = 1\n")
        report = run(1, cache=True)
        assert [one.path for one in report.errors] == ["other.py"], "all files but the new one"
        assert report.findings == alone.findings
    (project / "shared.py").write_text("def clean_up():\n    pass\n")
    assert run(1, cache=True) == run(1), "what hangs on a changed file is inspected again"


class Importing(Rule):
    """Reads what another file imports."""

    code = "TPL999"
    name = "importing"
    impact = Impact.LOW
    listens = (Functions(),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if "collect" in ctx.program.summaries["shared.py"].imports:
            yield self.finding(node, ctx, "imported")


def test_what_hangs_on_a_file_that_changes_under_the_hands_of_a_crew_is_not_kept(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member reads what was not there when the run began, and all others work with what it read."""
    (project / "broken.py").unlink()
    shared = project / "shared.py"
    shared.write_text(f"from gc import collect\n{CLEAN_UP}")
    alone = run(1, Importing)
    assert len(alone.findings) == 80

    def changing(module: ast.Module, lines: list[str], _sharing: object, *, outlined: bool) -> object:
        if once(project):  # the smallest file is read last
            shared.write_text(f"import gc\n{CLEAN_UP}")
        return survey(module, lines, None, outlined=outlined)

    done = crews(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("perflint.engine.worker.survey", changing)
        assert run(2, Importing, cache=True).findings == ()
    assert done == [True]
    shared.write_text(f"from gc import collect\n{CLEAN_UP}")
    assert run(1, Importing, cache=True) == alone


def test_what_needs_no_survey_is_inspected_as_well(
    alone: Report, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(2, cache=True)
    for number in range(60):
        file = project / f"train_{number:02}.py"
        file.write_text(file.read_text() + "# changed\n")
    done = crews(monkeypatch)
    assert run(2, cache=True).findings == alone.findings
    assert done == [True]


def test_who_has_read_a_file_inspects_it_without_reading_it_again(
    alone: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parsed_again(*_: object) -> object:
        raise AssertionError

    monkeypatch.setattr("perflint.rule_api.dispatch.plainly_parsed", parsed_again)
    monkeypatch.setattr(Member, "kept", lambda member: member._taken(member.number))  # and does nothing of the others'
    assert run(2) == alone


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    before = multiprocessing.active_children()
    yield
    assert [one for one in multiprocessing.active_children() if one not in before] == []
