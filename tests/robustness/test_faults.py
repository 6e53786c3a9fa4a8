"""A full disk, a tree that cannot be written, files that change under the hand: said in a line, nothing lost."""

from __future__ import annotations

import errno
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

import pathspec
import pytest

from perflint import engine as running
from perflint.cli.app import run
from perflint.engine.cache import FOLDER
from perflint.syntax import read
from perflint.system import atomic
from perflint.system.globs import spec_of

ROOT = Path(__file__).parent.parent.parent
OLD = """\
import gc
import torch


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        torch.cuda.empty_cache()
        gc.collect()
"""
FIX = ("fix", "--apply", "--no-cache", "--select", "TPL305", ".")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "perflint.toml").write_text("")
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(OLD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def texts(folder: Path) -> list[str]:
    return [(folder / name).read_text() for name in ("a.py", "b.py", "c.py")]


def test_a_full_disk_leaves_the_old_files(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic, "_fill", full)
    assert run(FIX) == 2
    said = capfd.readouterr().err
    assert "a.py: cannot be written: No space left on device" in said
    assert "no file was written" in said
    assert texts(project) == [OLD] * 3
    assert sorted(one.name for one in project.iterdir()) == ["a.py", "b.py", "c.py", "perflint.toml"]
    monkeypatch.undo()
    os.chdir(project)
    assert run(FIX) == 1
    assert OLD not in texts(project)


def test_a_file_that_changes_meanwhile_is_not_overwritten(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = atomic._fill

    def edited(temporary: BinaryIO, content: bytes, like: os.stat_result) -> None:
        fill(temporary, content, like)
        (project / "b.py").write_text("mine = 1\n")

    monkeypatch.setattr(atomic, "_fill", edited)
    assert run(FIX) == 2
    assert texts(project)[1] == "mine = 1\n"
    assert sorted(one.name for one in project.iterdir()) == ["a.py", "b.py", "c.py", "perflint.toml"]


def test_files_that_vanish_while_they_are_read_are_errors(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    works = read.read_bytes

    def vanishing(file: Path) -> bytes:
        if file.name == "b.py":
            file.unlink(missing_ok=True)
        return works(file)

    monkeypatch.setattr("perflint.engine.texts.read_bytes", vanishing)
    assert run(["check", "--select", "TPL305", "."]) == 2
    out = capfd.readouterr()
    assert "a.py:9" in out.out
    assert "c.py:9" in out.out
    assert "b.py" in out.out + out.err
    assert "internal error" not in out.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_tree_that_cannot_be_written_is_checked_all_the_same(project: Path) -> None:
    project.chmod(0o555)
    try:
        assert run(["check", "--select", "TPL305", "."]) == 1
        assert run(FIX) == 2
    finally:
        project.chmod(0o755)
    assert texts(project) == [OLD] * 3


def test_a_cache_that_cannot_be_written_changes_nothing(project: Path) -> None:
    (project / FOLDER).write_text("a file where the folder should be")
    assert run(["check", "--select", "TPL305", "."]) == 1


def _start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "perflint", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_runs_on_one_tree_and_one_cache_do_not_harm_each_other(project: Path) -> None:
    checks = [_start(project, "check", "--select", "TPL305", "--output-format", "json", ".") for _ in range(4)]
    printed = {one.communicate(timeout=120)[0] for one in checks}
    assert [one.returncode for one in checks] == [1] * 4
    assert len(printed) == 1
    fixes = [_start(project, "fix", "--apply", "--select", "TPL305", ".") for _ in range(3)]
    said = [one.communicate(timeout=120) for one in fixes]
    assert all(one.returncode in (0, 1, 2) for one in fixes)
    assert not any(b"internal error" in err for _, err in said)
    assert len(set(texts(project))) == 1
    assert OLD not in texts(project)
    assert sorted(one.name for one in project.iterdir()) == [FOLDER, "a.py", "b.py", "c.py", "perflint.toml"]


@pytest.mark.parametrize("value", ["[]", "{", '{"findings": 3}', "null", '"x"', "[" * 5000, "NaN"])
def test_a_foreign_cache_is_ignored(project: Path, capfd: pytest.CaptureFixture[str], value: str) -> None:
    check = ["check", "--select", "TPL305", "--output-format", "json", "."]
    run(check)
    first = capfd.readouterr().out
    connection = sqlite3.connect(project / FOLDER / "cache.sqlite")
    with connection:
        connection.execute("UPDATE entries SET value = ?", (value,))
    connection.close()
    assert run(check) == 1
    assert capfd.readouterr().out == first


def test_paths_in_a_foreign_cache_lead_nowhere(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check = ["check", "--select", "TPL305", "--output-format", "json", "."]
    run(check)
    first = capfd.readouterr().out
    outside = project.parent / "outside.py"
    outside.write_text("secret = 1\n")
    connection = sqlite3.connect(project / FOLDER / "cache.sqlite")
    with connection:
        for key, value in connection.execute("SELECT key, value FROM entries").fetchall():
            changed = value.replace('"paths":["a.py"', '"paths":["../outside.py"')
            connection.execute("UPDATE entries SET value = ? WHERE key = ?", (changed, key))
    connection.close()
    run(check)
    printed = capfd.readouterr().out
    assert "secret" not in printed
    assert printed == first


@pytest.mark.parametrize(
    "pattern",
    ["**/" * 30 + "x", "*a" * 40 + "b", "[a-z]*" * 30 + "!", "a" + "?*" * 40, "**" * 50, "{a,b}" * 30, "(a+)+$"],
)
def test_patterns_cannot_hang_the_run(tmp_path: Path, pattern: str) -> None:
    name = "a" * 120
    folder = tmp_path.joinpath(*["a" * 20] * 12)
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text("x = 1\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text(f"{pattern}\n")
    (tmp_path / "perflint.toml").write_text(f"exclude = ['{pattern}']\n[per-file-ignores]\n'{pattern}' = ['TPL305']\n")
    began = time.monotonic()
    done = _start(tmp_path, "check", "--no-cache", ".")
    try:
        done.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        done.kill()
        done.communicate()
        pytest.fail(f"still not done after {time.monotonic() - began:.0f} s")
    assert done.returncode in (0, 1, 2)


def test_patterns_mean_what_they_mean_to_pathspec() -> None:
    dice, compared = random.Random(1), 0
    for _ in range(3_000):
        words = ["*", "*", "a", "b", "?", "/", "[ab]", "**/", "!", "a*", "."]
        pattern = "".join(dice.choice(words) for _ in range(dice.randint(1, 9)))
        name = "".join(dice.choice("aab/.") for _ in range(dice.randint(1, 9))).strip("/") or "a"
        try:
            wanted = pathspec.GitIgnoreSpec.from_lines([pattern]).check_file(name).include
        except ValueError:
            continue
        assert spec_of([pattern]).check_file(name).include == wanted, (pattern, name)
        compared += 1
    assert compared > 2_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes that have a name")
@pytest.mark.parametrize(
    "name",
    [
        "named.py",
        "requirements.txt",
        ".gitignore",
        "perflint-baseline.json",
        "poetry.lock",
        ".perflint_cache/cache.sqlite",
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_has_no_end_is_not_read(project: Path, name: str, kind: str) -> None:
    (project / ".git").mkdir()
    if name == "perflint-baseline.json":
        (project / "perflint.toml").write_text("baseline = 'perflint-baseline.json'\n")
    (project / name).parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(project / name)
    else:
        (project / name).symlink_to("/dev/zero")
    done = _start(project, "check", "--select", "TPL305", ".", *(["named.py"] if name == "named.py" else []))
    try:
        out, err = done.communicate(timeout=60)
    finally:
        done.kill()
    assert b"internal error" not in err
    if name in ("named.py", "perflint-baseline.json"):
        assert done.returncode == 2
        assert b"regular file" in out + err
    else:
        assert done.returncode == 1


@pytest.mark.parametrize("name", ["cache.sqlite", "cache.sqlite-journal", "cache.sqlite-wal", ".gitignore"])
def test_a_foreign_cache_is_no_way_to_other_files(project: Path, name: str) -> None:
    outside = project.parent / f"{project.name}-outside"
    (project / FOLDER).mkdir()
    try:
        (project / FOLDER / name).symlink_to(outside)
    except (OSError, NotImplementedError):
        pytest.skip("no symbolic links here")
    assert run(["check", "--select", "TPL305", "."]) == 1
    assert not outside.exists()
    if name != ".gitignore":
        other = sqlite3.connect(outside)
        with other:
            other.execute("CREATE TABLE mine (x)")
            other.execute("PRAGMA user_version = 7")
        other.close()
        before = outside.read_bytes()
        assert run(["check", "--select", "TPL305", "."]) == 1
        assert outside.read_bytes() == before


def test_a_huge_file_is_said_to_be_one(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(read, "_MOST_BYTES", 2_000_000)
    with (project / "b.py").open("wb") as file:
        file.truncate(2_000_001)
    assert run(["check", "--no-cache", "--select", "TPL305", "."]) == 2
    out = capfd.readouterr().out
    assert "b.py" in out
    assert "too large to be read: more than 2 MB" in out
    assert "a.py:10" in out or "a.py:9" in out


def _in_a_mount(
    folder: Path, mount: str, *commands: str, after: str = "true"
) -> list[subprocess.CompletedProcess[bytes]]:
    """Runs of perflint in `folder`, over which `mount` has mounted something that nobody else sees."""
    done = []
    script = f'{mount} || exit 99; cd "$FOLDER"; "$PYTHON" -m perflint "$@"; code=$?; {after}; exit $code'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FOLDER": str(folder), "PYTHON": sys.executable}
    for command in commands:
        words = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *command.split()]
        try:
            one = subprocess.run(words, cwd="/", env=environment, capture_output=True, timeout=120, check=False)
        except FileNotFoundError:
            pytest.skip("no unshare here")
        if one.returncode == 99 or b"unshare failed" in one.stderr:
            pytest.skip("nothing may be mounted here")
        assert b"internal error" not in one.stderr
        assert b"Traceback" not in one.stderr
        done.append(one)
    return done


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts in a namespace of its own")
def test_a_disk_that_is_mounted_read_only(project: Path) -> None:
    """Also for root, who may write wherever anybody may."""
    before = {file.name: file.read_bytes() for file in project.iterdir()}
    check, fix, baseline, ignores, report = _in_a_mount(
        project,
        'mount --bind "$FOLDER" "$FOLDER" && mount -o remount,bind,ro "$FOLDER"',
        "check --select TPL305 .",
        "fix --apply --select TPL305 .",
        "baseline write --select TPL305 .",
        "check --add-ignores --select TPL305 .",
        "check --output report.json --select TPL305 .",
    )
    assert check.returncode == 1
    assert b"3 places in 3 of 3 files" in check.stdout
    for one in (fix, baseline, ignores, report):
        assert one.returncode == 2, one
        assert b"cannot be written: " in one.stdout + one.stderr
    assert {file.name: file.read_bytes() for file in project.iterdir()} == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts in a namespace of its own")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check --select TPL305 .", 1),
        ("fix --apply --select TPL305 .", 2),
        ("baseline write --select TPL305 .", 2),
        ("check --output report.json --select TPL305 .", 2),
        ("check --add-ignores --select TPL305 .", 2),
    ],
)
def test_a_disk_that_is_full(project: Path, tmp_path_factory: pytest.TempPathFactory, command: str, code: int) -> None:
    """Whatever could not be written: the files are the old ones, and nothing lies beside them."""
    copy, left = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("left")
    (project / "perflint-baseline.json").write_text('{"version": 1, "findings": []}\n')
    mount = (
        f'cp -r "$FOLDER"/. {copy} && mount -t tmpfs -o size=64k none "$FOLDER" && cp -r {copy}/. "$FOLDER"'
        ' && (dd if=/dev/zero of="$FOLDER/filling" bs=1k count=100 2>/dev/null || true)'
    )
    (done,) = _in_a_mount(project, mount, command, after=f'cp -r "$FOLDER"/. {left}')
    assert done.returncode == code, done
    if code == 2:
        assert b"No space left on device" in done.stdout + done.stderr
    else:
        assert b"3 places in 3 of 3 files" in done.stdout
    assert {file.name for file in left.iterdir()} - {FOLDER} == {file.name for file in project.iterdir()} | {"filling"}
    for file in project.iterdir():
        assert (left / file.name).read_bytes() == file.read_bytes()


def test_a_report_may_go_where_only_the_file_can_be_written(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    link, real = project / "link.json", project / "real.json"
    real.write_text("old")
    real.chmod(0o640)
    try:
        link.symlink_to(real)
    except (OSError, NotImplementedError):
        pytest.skip("no symbolic links here")
    check = ["check", "--no-cache", "--select", "TPL305", "--output-format", "json", "--output"]
    assert run([*check, str(link), "."]) == 1
    assert link.is_symlink()
    assert real.read_text().startswith("{")
    assert os.name == "nt" or real.stat().st_mode & 0o777 == 0o640
    assert run([*check, os.devnull, "."]) == 1
    assert run([*check, str(project / "missing" / "report.json"), "."]) == 2
    assert "cannot be written: No such file or directory" in capfd.readouterr().err


@pytest.mark.parametrize("becomes", ["folder", "pipe", "gone", "other code", "no code", "empty", "longer"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_files_that_change_between_two_readings(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], becomes: str, jobs: str
) -> None:
    monkeypatch.setattr("perflint.engine.texts._KEPT_BYTES", 0)
    for number in range(60):
        (project / f"more_{number}.py").write_text(OLD)
    link = running.Run._linked

    def linked(*arguments: Any, **keywords: Any) -> Any:
        program = link(*arguments, **keywords)
        file = project / "b.py"
        file.unlink()
        if becomes == "folder":
            file.mkdir()
        elif becomes == "pipe":
            os.mkfifo(file)
        elif becomes == "other code":
            file.write_text("import gc\nf = lambda x=(lambda: gc.collect()): x\n\n\n" + OLD.replace("train", "fit") * 2)
        elif becomes == "no code":
            file.write_bytes(b"def f(:\n\0")
        elif becomes != "gone":
            file.write_text("" if becomes == "empty" else "def f():\n    gc.collect()\n" * 9 + OLD)
        return program

    monkeypatch.setattr(running.Run, "_linked", linked)
    code = run(["check", "--no-cache", "--jobs", jobs, "--output-format", "json", "."])
    report = json.loads(capfd.readouterr().out)
    assert code == 2
    assert [error["path"] for error in report["errors"]] == ["b.py"]
    assert "internal" not in report["errors"][0]["message"]
    # Files with the same code are one finding, with the others as related places.
    assert sum(1 + len(one["related"]) for one in report["findings"] if one["code"] == "TPL305") == 62
