from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import BinaryIO

import pytest

from perflint.fixes.write import WriteError, replace_file
from perflint.system import atomic


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_bytes(b"old\r\n")
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664])
def test_content_and_mode(file: Path, mode: int, unnamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    file.chmod(mode)
    replace_file(file, b"old\r\n", b"\xef\xbb\xbfnew\r\n")
    assert file.read_bytes() == b"\xef\xbb\xbfnew\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert names(file.parent) == {"a.py"}


def test_a_file_that_changed_meanwhile_is_left_alone(file: Path) -> None:
    file.write_bytes(b"edited")
    with pytest.raises(WriteError, match="changed since it was read"):
        replace_file(file, b"old\r\n", b"new")
    assert file.read_bytes() == b"edited"
    assert names(file.parent) == {"a.py"}


def test_a_file_that_changes_while_it_is_written_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = atomic._fill

    def slow(temporary: BinaryIO, content: bytes, like: os.stat_result) -> None:
        fill(temporary, content, like)
        file.write_bytes(b"edited")

    monkeypatch.setattr(atomic, "_fill", slow)
    with pytest.raises(WriteError, match="changed since it was read"):
        replace_file(file, b"old\r\n", b"new")
    assert file.read_bytes() == b"edited"
    assert names(file.parent) == {"a.py"}


def test_a_full_disk_leaves_the_old_file_and_nothing_else(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left on device"):
        replace_file(file, b"old\r\n", b"new")
    assert file.read_bytes() == b"old\r\n"
    assert names(file.parent) == {"a.py"}


def test_a_link_inside_the_tree_stays_a_link(tmp_path: Path, file: Path) -> None:
    (tmp_path / "inner").mkdir()
    link = tmp_path / "inner" / "link.py"
    link.symlink_to(file)
    replace_file(link, b"old\r\n", b"new", tmp_path)
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


def test_a_link_out_of_the_tree_is_not_followed(tmp_path: Path, file: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link.py").symlink_to(file)
    (tree / "folder").symlink_to(tmp_path)
    for path, root in ((tree / "link.py", tree), (tree / "link.py", None), (tree / "folder" / "a.py", tree)):
        with pytest.raises(WriteError, match="a symbolic link to a file outside of the project"):
            replace_file(path, b"old\r\n", b"new", root)
    assert file.read_bytes() == b"old\r\n"


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="No such file"):
        replace_file(tmp_path / "gone.py", b"", b"new")
    assert names(tmp_path) == set()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anything")
def test_a_write_protected_file_is_left_alone(file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(WriteError, match="Permission denied"):
        replace_file(file, b"old\r\n", b"new")


SCRIPT = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    from perflint.fixes import write

    name, number, moment = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if "named" in moment:
        del os.O_TMPFILE
    where = getattr(os, moment.partition(":")[0])

    def interrupted(*arguments, **options):
        os.kill(os.getpid(), number)
        return where(*arguments, **options)

    setattr(os, moment.partition(":")[0], interrupted)
    write.replace_file(Path(name), b"old\\r\\n", b"new")
    print("unreached")
    """
)


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("moment", ["fsync", "fsync:named", "replace", "replace:named"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_acts_once_the_file_is_whole(file: Path, number: signal.Signals, moment: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(file), str(int(number)), moment]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "unreached" not in done.stdout
    assert file.read_bytes() == b"new"
    assert names(file.parent) == {"a.py"}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without names")
def test_a_killed_process_leaves_the_old_file_and_nothing_else(file: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(file), str(int(signal.SIGKILL)), "fsync"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == b"old\r\n"
    assert names(file.parent) == {"a.py"}


def test_what_a_killed_run_left_is_cleared_by_the_next(file: Path) -> None:
    stale = file.with_name(".a.py.0123456789ab.tmp")
    fresh = file.with_name(".a.py.ba9876543210.tmp")
    for beside in (stale, fresh, file.with_name(".b.py.0123456789ab.tmp"), file.with_name(".a.py.mine.tmp")):
        beside.write_bytes(b"new")
        os.utime(beside, (0, 0))
    os.utime(fresh)
    replace_file(file, b"old\r\n", b"new")
    assert names(file.parent) == {"a.py", fresh.name, ".b.py.0123456789ab.tmp", ".a.py.mine.tmp"}
