"""Processes of workloads: each has a process group of its own, which ends as a whole whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any


class TrialError(Exception):
    """A trial that gave no figure; the message is one line. `is_crash`: the workload itself raised something."""

    def __init__(self, message: str, *, is_crash: bool = False) -> None:
        super().__init__(message)
        self.is_crash = is_crash


def start(
    command: list[str],
    folder: Path,
    output: IO[bytes] | int,
    *,
    errors: IO[bytes] | int = subprocess.STDOUT,
    stdin: int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process at the head of a group of its own."""
    grouped: dict[str, Any] = (
        {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        if sys.platform == "win32"
        else {"start_new_session": True}
    )
    # The same hashes on both sides, so that sets and dicts come in the same order.
    own = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=stdin,
        stdout=output,
        stderr=errors,
        bufsize=0,
        env={**os.environ, **own, **(environment or {})},
        **grouped,
    )


def wait(process: subprocess.Popen[bytes], timeout: float) -> int:
    """The exit code. Ends the whole group when it takes too long or anything interrupts. Raises TrialError."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise TrialError(f"hung: ended after {timeout:g} s (--timeout)") from None
    finally:
        # Also after a good end: a workload may leave processes of its own behind.
        end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started."""
    if sys.platform == "win32":
        if process.poll() is None:
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False)
    else:
        kill_group(process.pid)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)


def kill_group(process: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)


def last_line(file: Path, limit: int = 200) -> str:
    """The last line with anything on it, cut to `limit` characters."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(stream.tell() - 4096, 0))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:limit] if lines else ""
