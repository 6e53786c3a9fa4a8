"""The cache saves time and nothing else: whatever happens to it, the findings stay the same."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from perflint.engine import Memory, Options, check, check_overlay, explain_heat
from perflint.engine import cache as cache_module
from perflint.engine.cache import Cache, clean, key_of
from perflint.engine.worker import Worker
from perflint.finding import Report
from perflint.project.discovery import FoundFile, discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

TRAIN = """\
import gc
from memory import clean_up


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
        clean_up()
"""
MEMORY = """\
import gc


def clean_up():
    gc.collect()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.perflint]\n")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "memory.py").write_text(MEMORY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def options_for(*, cache: bool = True, memory: Memory | None = None) -> Options:
    rules = [rule() for rule in load_rules() if rule.code == "TPL303"]
    return Options(load_settings(Path.cwd()), rules, cache=cache, memory=memory)


def run(*, cache: bool = True) -> Report:
    options = options_for(cache=cache)
    return check(discover(["."], options.settings), options)


def test_a_second_run_says_the_same_without_reading_trees(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run()
    assert [finding.code for finding in first.findings] == ["TPL303"]
    monkeypatch.setattr(
        "perflint.engine.worker.plainly_parsed", lambda _source: pytest.fail("parsed although nothing changed")
    )
    assert run() == first


def test_a_changed_caller_changes_the_heat_of_the_callee(project: Path) -> None:
    assert run().findings
    (project / "train.py").write_text(TRAIN.replace("        clean_up()\n", "    clean_up()\n"))
    assert run() == run(cache=False)
    assert not run().findings


def test_other_settings_are_another_result(project: Path) -> None:
    assert run().findings
    (project / "pyproject.toml").write_text('[tool.perflint.per-file-ignores]\n"memory.py" = ["TPL303"]\n')
    assert not run().findings


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_cache_is_left_aside(project: Path, content: bytes) -> None:
    wanted = run()
    (project / ".perflint_cache" / "cache.sqlite").write_bytes(content)
    assert run() == wanted
    assert run() == wanted


def test_a_cache_cut_off_in_the_middle_is_left_aside(project: Path) -> None:
    wanted = run()
    file = project / ".perflint_cache" / "cache.sqlite"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert run() == wanted


def test_foreign_entries_cannot_do_more_than_be_ignored(project: Path) -> None:
    wanted = run()
    with sqlite3.connect(project / ".perflint_cache" / "cache.sqlite") as connection:
        connection.execute(
            """UPDATE entries SET value = '{"findings": [1], "functions": {"f": {}}, "paths": ["/etc/passwd"]}'"""
        )
    assert run() == wanted


def test_another_layout_is_rebuilt(project: Path) -> None:
    wanted = run()
    with sqlite3.connect(project / ".perflint_cache" / "cache.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    assert run() == wanted


def test_a_folder_that_leads_elsewhere_is_not_written_to(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (project / ".perflint_cache").symlink_to(elsewhere)
    assert run().findings
    assert not list(elsewhere.iterdir())


def test_two_caches_share_one_file(tmp_path: Path) -> None:
    first, second = Cache(tmp_path / "c"), Cache(tmp_path / "c")
    first.put({key_of("a"): [1]})
    second.put({key_of("b"): [2]})
    assert second.get([key_of("a"), key_of("b")]) == {key_of("a"): [1], key_of("b"): [2]}
    first.close()
    second.close()


def test_it_shrinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_MOST_BYTES", 200_000)
    for number in range(6):
        opened = Cache(tmp_path)
        opened.put({key_of(number, item): "x" * 20_000 for item in range(8)})
        opened.close()
    assert (tmp_path / "cache.sqlite").stat().st_size < 800_000


def test_it_keeps_itself_out_of_git_and_goes_away(project: Path) -> None:
    run()
    folder = project / ".perflint_cache"
    assert "*" in (folder / ".gitignore").read_text()
    assert clean(folder)
    assert not folder.exists()
    assert not clean(folder)


def test_without_it_nothing_is_written(project: Path) -> None:
    run(cache=False)
    assert not (project / ".perflint_cache").exists()


def surveyed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read for their summaries from now on."""
    read: list[str] = []
    survey = Worker.survey

    def noted(self: Worker, file: FoundFile) -> object:
        read.append(file.display)
        return survey(self, file)

    monkeypatch.setattr(Worker, "survey", noted)
    return read


def test_a_text_that_stands_in_for_a_file_leaves_what_is_known_of_the_others(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    read = surveyed(monkeypatch)
    options = options_for()
    found = discover(["."], options.settings)
    cold = check_overlay(found, options, {"train.py": TRAIN.replace("        clean_up()", "    clean_up()")})
    assert cold.findings == ()
    assert read == ["train.py"]
    assert explain_heat(found, options, "memory.py", 5).startswith("memory.py:5 runs every step")
    assert read == ["train.py"]
    assert [finding.path for finding in run().findings] == ["memory.py"]


@pytest.mark.parametrize("cache", [True, False])
def test_a_process_remembers_what_it_read_until_it_changes(
    project: Path, monkeypatch: pytest.MonkeyPatch, cache: bool
) -> None:
    options = options_for(cache=cache, memory=Memory())
    found = discover(["."], options.settings)
    assert len(check(found, options).findings) == 1
    read = surveyed(monkeypatch)
    assert len(check(found, options).findings) == 1
    assert read == []
    (project / "train.py").write_text(TRAIN.replace("        clean_up()", "    clean_up()"))
    assert check(found, options).findings == ()
    assert read == ["train.py"]
    assert len(check_overlay(found, options, {"train.py": TRAIN}).findings) == 1
    assert check(found, options).findings == ()


def test_a_run_that_knows_everything_loads_no_second_parser(project: Path) -> None:
    probe = (
        "import sys; from perflint.cli.app import run; "
        "code = run(['check', '.', '--output-format', 'json', '--exit-zero']); print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", probe]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == first.stdout
    assert "TPL303" in first.stdout
    assert not {"libcst", "rich", "torch"} & set(again.stderr.split())


def test_what_is_nested_too_deep_to_be_kept_is_surveyed_again(project: Path) -> None:
    (project / "memory.py").write_text(MEMORY + "\n\nx = " + "f(" * 190 + "1" + ")" * 190 + "\n")
    first = run()
    assert [found.path for found in first.findings] == ["memory.py"]
    assert run().findings == first.findings == run(cache=False).findings
