"""`verify` runs what the user named, ends it all when it is ended itself, and talks to nobody."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROJECT = ROOT / "fixtures" / "verify_project"
#: Notes each process of Python that starts, and each that turns to the network.
GUARD = """\
import os, sys
_folder = {folder!r}
_note = lambda kind, what: open(os.path.join(_folder, f"{{kind}}-{{os.getpid()}}"), "a").write(what + "\\n")
_note("started", " ".join(sys.orig_argv))
def _hook(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"):
        _note("network", f"{{event}} {{arguments}}")
    if event in ("socket.connect", "socket.bind", "socket.sendto") and isinstance(arguments[1], tuple):
        _note("network", f"{{event}} {{arguments[1]}}")
sys.addaudithook(_hook)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__", ".perflint_cache"))
    (folder / ".git").mkdir()
    return folder


def verify(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "perflint", "verify", *arguments, "--device", "cpu"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def running_with(text: str) -> list[str]:
    """The processes that have `text` for an argument or are at home in a folder of that name."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                home = str((entry / "cwd").readlink())
            except OSError:
                continue
            if text in words or home.startswith(text):
                found.append(" ".join(words))
    return found


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_no_process_behind(project: Path, number: signal.Signals) -> None:
    (project / "bench.py").write_text(
        "import pathlib, subprocess, sys, time\n"
        f"def step():\n    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {str(project)!r}])\n"
        f"    pathlib.Path({str(project / 'started')!r}).touch()\n    time.sleep(600)\n"
    )
    temporary = project.parent / "temporary"
    temporary.mkdir()
    process = verify(project, "training/teacher.py", "--unsafe", TMPDIR=str(temporary))
    try:
        while not (project / "started").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode not in (0, 1)
    assert "Traceback" not in err
    assert not running_with(str(project))
    assert not list(temporary.glob("perflint-*"))


def test_nothing_is_asked_of_the_network(project: Path, tmp_path: Path) -> None:
    guard, notes = tmp_path / "guard", tmp_path / "notes"
    guard.mkdir()
    notes.mkdir()
    (guard / "sitecustomize.py").write_text(GUARD.format(folder=str(notes)))
    process = verify(
        project, "training/teacher.py", "--unsafe", "--budget", "5s", PYTHONPATH=f"{ROOT}{os.pathsep}{guard}"
    )
    out, err = process.communicate(timeout=280)
    assert "TPL301" in out, err  # on a busy machine without a verdict, and then the exit code is 2
    said = {file.name: file.read_text() for file in notes.iterdir()}
    assert sum(name.startswith("started") for name in said) >= 2, "the guard sees the processes of trials"
    assert not [text for name, text in said.items() if name.startswith("network")]
