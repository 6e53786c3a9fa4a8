"""A file that takes too long is an error of its own; all others are checked as ever."""

from __future__ import annotations

import ast
import contextlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perflint import engine
from perflint.analysis.names.refs import Refs, Scope
from perflint.cli.app import run as command_line
from perflint.engine import parallel
from perflint.finding import Finding, Impact, Report
from perflint.ir.sharing import Sharing
from perflint.ir.summary import Summary
from perflint.project.discovery import discover
from perflint.project.settings import Settings, load_settings
from perflint.rule_api.context import Context
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Functions, Rule
from perflint.system import time_limit
from perflint.system.time_limit import OverTimeError, within

TRAIN = """\
import gc


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
        gc.collect()
"""
TOO_LONG = "takes more than 0.3 s of processor time"


def for_ever() -> None:
    while True:
        pass


def stubborn() -> None:
    """As a careless rule, which handles all there is."""
    for _ in range(3):
        with contextlib.suppress(BaseException):
            for_ever()
    for_ever()


class Slow(Rule):
    """Never done with one function."""

    code = "TPL999"
    name = "slow"
    impact = Impact.LOW
    listens = (Functions(),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.FunctionDef) and node.name == "endless":
            for_ever()
        yield from ()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "perflint.toml").write_text("time-limit = 0.3\n")
    for number in range(6):
        (tmp_path / f"train_{number}.py").write_text(TRAIN)
    (tmp_path / "slow.py").write_text("def endless():\n    pass\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(jobs: int = 1) -> Report:
    settings = load_settings(Path.cwd())
    rules: list[Rule] = [rule() for rule in load_rules() if rule.code == "TPL303"]
    return engine.check(discover(["."], settings), engine.Options(settings, [*rules, Slow()], cache=False, jobs=jobs))


@pytest.fixture(params=["signal", "thread"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "thread":
        monkeypatch.setattr(time_limit, "_can_signal", lambda: False)
    elif not hasattr(signal, "setitimer"):
        pytest.skip("no timers here")


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("work", [for_ever, stubborn])
def test_work_without_end_is_ended(work: Callable[[], None]) -> None:
    with pytest.raises(OverTimeError):
        within(0.1, work)
    # Nothing comes late.
    assert within(30, lambda: sum(range(1_000_000))) == 499_999_500_000


TRACED_LATER = """
import sys
from perflint.system import time_limit

def for_ever():
    while True:
        pass

time_limit._can_signal = lambda: False
try:
    time_limit.within(0.05, for_ever)
except time_limit.OverTimeError:
    print("ended")
sys.settrace(lambda *_: None)
(lambda: None)()
sys.settrace(None)
print("traced")
"""


def test_a_debugger_can_follow_what_runs_after_work_was_ended() -> None:
    """CPython 3.11 hangs at the first traced call where an error that was sent to a thread was taken back."""
    done = subprocess.run(
        [sys.executable, "-c", TRACED_LATER], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["ended", "traced"]


@pytest.mark.usefixtures("_way")
def test_work_in_time_is_left_alone() -> None:
    assert within(30, lambda: 5) == 5
    assert within(0, lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        within(30, lambda: 1 // 0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_regular_expression_is_ended() -> None:
    with pytest.raises(OverTimeError):
        within(0.1, lambda: re.match(r"(a+)+$", "a" * 60 + "b"))


def test_threads_have_limits_of_their_own() -> None:
    ended: list[str] = []

    def work(name: str, seconds: float) -> None:
        try:
            within(seconds, for_ever if name == "endless" else lambda: sum(range(3_000_000)))
        except OverTimeError:
            ended.append(name)

    threads = [threading.Thread(target=work, args=arguments) for arguments in (("endless", 0.1), ("short", 60))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == ["endless"]


@pytest.mark.usefixtures("_way")
def test_a_slow_rule_costs_one_file(project: Path) -> None:
    report = checked()
    assert [(one.path, one.message) for one in report.errors] == [
        ("slow.py", f"{TOO_LONG} to be inspected by rule TPL999; exclude it, or raise time-limit")
    ]
    assert [one.path for one in report.findings] == [f"train_{number}.py" for number in range(6)]


@pytest.mark.usefixtures("_way")
def test_a_slow_rule_loses_its_own_findings_alone(project: Path) -> None:
    (project / "slow.py").write_text(f"{TRAIN}\n\ndef endless():\n    pass\n")
    report = checked()
    assert [one.path for one in report.errors] == ["slow.py"]
    assert "by rule TPL999" in report.errors[0].message
    assert "slow.py" in [one.path for one in report.findings]


def test_a_rule_whose_calls_nest_too_deep_loses_its_own_findings_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "slow.py").write_text(f"{TRAIN}\n\ndef endless():\n    pass\n")

    def deep(self: Slow, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.FunctionDef) and node.name == "endless":
            yield from deep(self, node, ctx)

    monkeypatch.setattr(Slow, "check", deep)
    report = checked()
    assert [(one.path, one.message) for one in report.errors] == [
        ("slow.py", "nests too deep to be inspected by rule TPL999")
    ]
    assert len(report.findings) == 7
    assert "slow.py" in [one.path for one in report.findings]


@pytest.mark.skipif(not parallel.can_fork(), reason="workers are forked")
def test_a_slow_rule_costs_one_file_in_workers(project: Path) -> None:
    for number in range(6, 80):
        (project / f"train_{number}.py").write_text(TRAIN)
    report = checked(jobs=2)
    assert [one.path for one in report.errors] == ["slow.py"]
    assert len(report.findings) == 80
    assert report == checked()


@pytest.mark.skipif(not parallel.can_fork(), reason="workers are forked")
def test_what_hears_no_signal_is_ended_with_its_process(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6, 60):
        (project / f"train_{number}.py").write_text(TRAIN)

    class Deaf(Slow):
        def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
            if isinstance(node, ast.FunctionDef) and node.name == "endless":
                signal.setitimer(signal.ITIMER_PROF, 0)
                for_ever()
            yield from ()

    monkeypatch.setattr(f"{__name__}.Slow", Deaf)
    report = checked(jobs=2)
    assert [(one.path, one.message) for one in report.errors] == [
        ("slow.py", "ended two processes when it was to be inspected: out of memory, or of its time limit; exclude it")
    ]
    assert len(report.findings) == 60


@pytest.mark.usefixtures("_way")
def test_a_slow_survey_costs_one_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from perflint.ir.survey import survey

    def slow(module: ast.Module, lines: list[str], sharing: Sharing | None, *, outlined: bool) -> Summary:
        if getattr(module.body[0], "name", "") == "endless":
            for_ever()
        return survey(module, lines, sharing, outlined=outlined)

    monkeypatch.setattr("perflint.engine.worker.survey", slow)
    report = checked()
    assert [(one.path, one.message) for one in report.errors] == [
        ("slow.py", f"{TOO_LONG} to be read; exclude it, or raise time-limit")
    ]
    assert len(report.findings) == 6


def test_what_a_slow_file_had_begun_to_ask_is_answered_anew(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that was being worked out when the time was over must not stand as half of one."""
    text = "import gc\n\n\ndef clean(collect):\n    collect()\n\n\nclean(gc.collect)\n"
    (project / "train_0.py").write_text(text)
    analysis = engine.Run(discover(["."], Settings()), engine.Options(Settings(), [], cache=False), {})
    program, scope = analysis.program(), Scope("train_0.py", "clean")
    program.resolver.forget()
    whole = program.refs("collect", scope)
    program.abandon()

    def ended(*_: object) -> Refs:
        raise OverTimeError

    monkeypatch.setattr(program.resolver, "_look_up", ended)
    with pytest.raises(OverTimeError):
        program.refs("collect", scope)
    monkeypatch.undo()
    assert program.refs("collect", scope) != whole, "there was something to abandon"
    program.abandon()
    assert program.refs("collect", scope) == whole
    assert whole


@pytest.mark.parametrize("value", ["-1", "nan", "1e300", "true", '"x"'])
def test_limits_that_are_none_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "perflint.toml").write_text(f"time-limit = {value}\n")
    assert command_line(["check", "."]) == 2
    assert "time-limit must be" in capfd.readouterr().err
    (tmp_path / "perflint.toml").write_text("time-limit = 5\n")
    assert command_line(["check", "--time-limit", value, "."]) == 2
    assert "--time-limit" in capfd.readouterr().err


def test_the_command_line_goes_before_the_file(project: Path) -> None:
    assert load_settings(project).time_limit == 0.3
    assert command_line(["check", "--no-cache", "--select", "TPL303", "--time-limit", "60", "."]) == 1
    assert Settings().time_limit == 30
