"""The cache saves time and nothing else: whatever happens to it, the findings stay the same."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from perflint import cache as cache_module
from perflint.cache import Cache, clean, key_of
from perflint.discovery import discover
from perflint.finding import Report
from perflint.registry import load_rules
from perflint.run import Options, check
from perflint.settings import load_settings

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


def run(*, cache: bool = True) -> Report:
    settings = load_settings(Path.cwd())
    options = Options(settings, [rule() for rule in load_rules() if rule.code == "TPL303"], cache=cache)
    return check(discover(["."], settings), options)


def test_a_second_run_says_the_same_without_reading_trees(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run()
    assert [finding.code for finding in first.findings] == ["TPL303"]
    monkeypatch.setattr("perflint.run.parse", lambda _source: pytest.fail("parsed although nothing changed"))
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
