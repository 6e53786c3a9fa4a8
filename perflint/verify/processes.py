"""Processes of workloads: each has a process group of its own, which ends as a whole whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any


class TrialError(Exception):
    """A trial that gave no figure; the message is one line. `is_crash`: the workload itself raised something."""

    def __init__(self, message: str, *, is_crash: bool = False, trace: str = "") -> None:
        """`trace` is what the workload said about it: a traceback, or the end of what it printed."""
        super().__init__(message)
        self.is_crash = is_crash
        self.trace = trace


def perflint_command(words: Sequence[str]) -> tuple[str, ...]:
    """A command that runs this perflint, wherever it is started."""
    root = str(Path(__file__).resolve().parent.parent.parent)
    code = (
        f"import sys; sys.path[:] = [p for p in sys.path if p] + [{root!r}]; "
        f"from perflint.cli.app import run; sys.exit(run({list(words)!r}))"
    )
    return sys.executable, "-c", code


def pinned(threads: int | None) -> dict[str, str]:
    """Environment variables that give every pool of threads in a process that many; none for None."""
    return {} if threads is None else dict.fromkeys(_POOLS, str(threads))


_POOLS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)


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


def last_lines(file: Path, most: int = 40) -> str:
    """The end of what was printed."""
    return "\n".join(_end_of(file).splitlines()[-most:])


def last_line(file: Path, limit: int = 200) -> str:
    """The last line with anything on it, cut to `limit` characters."""
    lines = [line.strip() for line in _end_of(file).splitlines() if line.strip()]
    return lines[-1][:limit] if lines else ""


def _end_of(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(stream.tell() - 8192, 0))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""
