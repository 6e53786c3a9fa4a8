"""Starting trials, and ending them whatever happens: each has a process group of its own, and none is left behind."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from perflint.errors import PerflintError

#: Importing torch may take this long on a cold disk.
_START_SECONDS = 120.0
_NEEDED = ("torch", "numpy", "scipy")
INSTALL = "pip install 'torch-perflint[verify]'"
#: The worker's own import path gets perflint at its end: nothing of the user's code is shadowed by it.
_BOOTSTRAP = (
    "import sys; sys.path[:] = [p for p in sys.path if p] + [{root!r}]; "
    "from perflint.verify.worker import main; sys.exit(main({arguments!r}))"
)
#: What CUDA says in a forked process when something before the fork had already used it.
_FORK_REFUSED = ("forked subprocess", "initialization error")


def require_extra() -> None:
    """Raises PerflintError, in one line, when torch or what else `verify` needs is not installed."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise PerflintError(f"verify needs {' and '.join(missing)}, which is not installed: {INSTALL}")


class TrialError(Exception):
    """A trial that gave no figure; the message is one line. `is_crash`: the workload itself raised something."""

    def __init__(self, message: str, *, is_crash: bool = False) -> None:
        super().__init__(message)
        self.is_crash = is_crash


class Launcher:
    """Runs trials one after the other. A context manager: leaving it ends what still runs."""

    def __init__(self, folder: Path, *, forks: bool | None = None) -> None:
        """`folder` is for files of its own. `forks` is for tests; by default the platform decides."""
        self._folder = folder
        self._forks = sys.platform == "linux" if forks is None else forks
        self._server: subprocess.Popen[bytes] | None = None
        self._number = 0

    def __enter__(self) -> Launcher:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._server is not None:
            end_group(self._server)
            self._server = None

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer to one request, from a fresh process. Raises TrialError."""
        self._number += 1
        stem = self._folder / f"trial{self._number}"
        answer, output = stem.with_suffix(".answer"), stem.with_suffix(".output")
        asked = {**request, "answer": str(answer), "output": str(output)}
        try:
            end = self._fork(asked, timeout) if self._forks else self._start(asked, timeout)
            reply = _read(answer)
            if reply is None:
                raise TrialError(_epitaph(end, output), is_crash=True)
        finally:
            for file in (answer, output, stem.with_suffix(".part"), stem.with_suffix(".request")):
                file.unlink(missing_ok=True)
        if "error" in reply:
            error = str(reply["error"])
            if self._forks and any(words in error for words in _FORK_REFUSED):
                self._forks = False
                self.close()
                return self.ask(request, timeout)
            raise TrialError(error, is_crash=True)
        return reply

    # One new interpreter for each trial.

    def _start(self, request: Mapping[str, Any], timeout: float) -> int:
        file = Path(str(request["answer"])).with_suffix(".request")
        file.write_text(json.dumps(request), encoding="utf-8")
        with Path(str(request["output"])).open("ab") as output:
            process = start(_command("--once", str(file), str(request["answer"])), self._folder, output)
        return wait(process, timeout)

    # One process that has imported torch, and a fork of it for each trial.

    def _fork(self, request: Mapping[str, Any], timeout: float) -> int:
        server = self._server or self._serve()
        assert server.stdin is not None
        try:
            server.stdin.write(json.dumps(request).encode() + b"\n")
            server.stdin.flush()
            process = int(self._hear(server, _START_SECONDS)["process"])
            try:
                return int(self._hear(server, timeout)["exit"])
            except BaseException as error:
                kill_group(process)
                if isinstance(error, TimeoutError):
                    self._hear(server, _START_SECONDS)
                    raise TrialError(f"hung: ended after {timeout:g} s (--timeout)") from error
                raise
        except (OSError, KeyError, ValueError) as error:
            self.close()
            raise TrialError(f"the process that starts trials is gone ({type(error).__name__})") from error
        except BaseException:
            self.close()
            raise

    def _serve(self) -> subprocess.Popen[bytes]:
        log = self._folder / "server.output"
        with log.open("ab") as output:
            server = start(_command("--serve"), self._folder, subprocess.PIPE, errors=output, stdin=subprocess.PIPE)
        self._server = server
        try:
            self._hear(server, _START_SECONDS)
        except (OSError, ValueError, TimeoutError) as error:
            raise PerflintError(f"torch cannot be loaded: {last_line(log) or error}") from error
        return server

    @staticmethod
    def _hear(server: subprocess.Popen[bytes], timeout: float) -> dict[str, Any]:
        """One line of the server's. Raises TimeoutError, and ValueError when there is none to come."""
        assert server.stdout is not None
        if not select.select([server.stdout], [], [], timeout)[0]:
            raise TimeoutError
        line = server.stdout.readline()
        if not line:
            raise ValueError("no answer")
        message: dict[str, Any] = json.loads(line)
        return message


def _command(*arguments: str) -> list[str]:
    root = str(Path(__file__).resolve().parent.parent.parent)
    return [sys.executable, "-c", _BOOTSTRAP.format(root=root, arguments=list(arguments))]


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


def _read(file: Path) -> dict[str, Any] | None:
    try:
        reply = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return reply if isinstance(reply, dict) else None


def _epitaph(code: int, output: Path) -> str:
    said = last_line(output)
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = ", as happens when memory runs out" if name == "SIGKILL" else ""
        return f"crashed: ended by {name}{hint}"
    return f"crashed: exit code {code}" + (f": {said}" if said else "")


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


def now() -> float:
    return time.monotonic()
