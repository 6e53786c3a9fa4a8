"""Starting the processes in which trials run, and talking to them: one line of JSON asks, one line answers."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from perflint.errors import PerflintError
from perflint.verify.processes import TrialError, end_group, last_line, last_lines, pinned, start

#: Importing torch may take this long on a cold disk.
_START_SECONDS = 120.0
#: What a workload has to end what it began.
_END_SECONDS = 10.0
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
        verb = "is" if len(missing) == 1 else "are"
        raise PerflintError(f"verify needs {' and '.join(missing)}, which {verb} not installed: {INSTALL}")


@dataclass(frozen=True, slots=True)
class _Ends:
    """Both ends of a process of ours. `finish` ends its group and gives its exit code."""

    commands: IO[bytes]
    answers: IO[bytes]
    finish: Callable[[], int]


class Live:
    """A process that is alive and waits for what it is asked. A context manager: leaving it ends the process."""

    def __init__(self, ends: _Ends, output: Path) -> None:
        self._ends = ends
        self._output = output
        self._heard: queue.Queue[bytes] = queue.Queue()
        self._code: int | None = None
        self._reply: dict[str, Any] | None = None
        # A pipe cannot be waited for with a timeout everywhere; a thread that reads it can.
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._ends.answers as answers:
            for line in answers:
                self._heard.put(line)
        self._heard.put(b"")

    def ask(self, message: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Raises TrialError when the process answers with an error, ends, or takes too long."""
        self.send(message)
        return self._hear(timeout)

    def send(self, message: Mapping[str, Any]) -> None:
        # A process that is gone gives no answer, which is told where one is waited for.
        with contextlib.suppress(OSError, ValueError):
            self._ends.commands.write(json.dumps(message).encode() + b"\n")

    def reply(self, timeout: float) -> dict[str, Any]:
        """What it answered to the request that it was started with. Raises TrialError as `ask` does."""
        if self._reply is None:
            self._reply = self._hear(timeout)
        return self._reply

    def _hear(self, timeout: float) -> dict[str, Any]:
        try:
            line = self._heard.get(timeout=timeout)
        except queue.Empty:
            raise TrialError(f"hung: ended after {timeout:g} s (--timeout)") from None
        if not line:
            raise TrialError(_epitaph(self._finish(), self._output), is_crash=True, trace=last_lines(self._output))
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise TrialError(str(reply["error"]), is_crash=True, trace=str(reply.get("trace", "")))
        return reply

    def __enter__(self) -> Live:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(politely=kind is None)

    def close(self, *, politely: bool = False) -> None:
        """End it. Politely: what its workload's `teardown` has to end is ended first."""
        if politely and self._reply is not None and self._reply.get("ends"):
            with contextlib.suppress(TrialError):
                self.ask({"end": True}, _END_SECONDS)
        self._finish()
        self._output.unlink(missing_ok=True)

    def _finish(self) -> int:
        if self._code is None:
            with contextlib.suppress(OSError):
                self._ends.commands.close()
            self._code = self._ends.finish()
            self._listener.join(_END_SECONDS)
        return self._code


class Launcher:
    """Starts processes. A context manager: leaving it ends what still runs."""

    def __init__(self, folder: Path, *, threads: int | None = None, forks: bool | None = None) -> None:
        """`folder` is for files of its own. `threads` are those of every pool in its processes, None for what the
        libraries choose. `forks` is for tests; by default the platform decides."""
        self._folder = folder
        self.threads = threads
        self._environment = pinned(threads)
        self._forks = sys.platform == "linux" if forks is None else forks
        self._server: _Server | None = None
        self._number = 0

    def __enter__(self) -> Launcher:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def open(self, request: Mapping[str, Any], timeout: float) -> Live:
        """A fresh process that has answered `request`. Raises TrialError."""
        live = self.begin(request)
        try:
            live.reply(timeout)
        except TrialError as error:
            live.close()
            if self._forks and any(words in str(error) for words in _FORK_REFUSED):
                self._forks = False
                self.close()
                return self.open(request, timeout)
            raise
        except BaseException:
            live.close()
            raise
        return live

    def begin(self, request: Mapping[str, Any]) -> Live:
        """A fresh process that is about to answer `request`. Raises TrialError."""
        self._number += 1
        output = self._folder / f"trial{self._number}.output"
        live = Live(self._forked(output, request) if self._forks else self._spawned(output), output)
        live.send(request)
        return live

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer to one request, from a fresh process. Raises TrialError."""
        with self.open(request, timeout) as live:
            return live.reply(timeout)

    def _spawned(self, output: Path) -> _Ends:
        """One new interpreter."""
        with output.open("ab") as sink:
            process = start(
                _command("--live", str(output)),
                self._folder,
                subprocess.PIPE,
                errors=sink,
                stdin=subprocess.PIPE,
                environment=self._environment,
            )
        assert process.stdin is not None
        assert process.stdout is not None

        def finish() -> int:
            # Killed only after it had the time to say by its exit code how it ended.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
            end_group(process)
            return process.returncode if process.returncode is not None else -1

        return _Ends(process.stdin, process.stdout, finish)

    def _forked(self, output: Path, request: Mapping[str, Any]) -> _Ends:
        """A fork of one process that has imported torch."""
        if self._server is None:
            self._server = _Server(self._folder, self._environment)
        try:
            return self._server.fork(output, request)
        except (OSError, ValueError, KeyError) as error:
            self.close()
            raise TrialError(f"the process that starts trials is gone ({type(error).__name__})") from error


class _Server:
    """The process that has imported torch and forks. On Linux only."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        log = folder / "server.output"
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, log.open("ab") as sink:
            self._process = start(_command("--serve"), folder, sink, stdin=theirs.fileno(), environment=environment)
        try:
            self._hear(_START_SECONDS)
        except (OSError, ValueError) as error:
            self.close()
            raise PerflintError(f"torch cannot be loaded: {last_line(log) or error}") from error
        except BaseException:
            self.close()
            raise

    def fork(self, output: Path, request: Mapping[str, Any]) -> _Ends:
        read_commands, write_commands = os.pipe()
        read_answers, write_answers = os.pipe()
        asked = {"output": str(output), "compiles": request.get("compiles"), "device": request.get("device")}
        try:
            socket.send_fds(self._control, [json.dumps(asked).encode()], [read_commands, write_answers])
            process = int(self._hear(_START_SECONDS)["process"])
        except BaseException:
            os.close(write_commands)
            os.close(read_answers)
            raise
        finally:
            os.close(read_commands)
            os.close(write_answers)
        return _Ends(
            os.fdopen(write_commands, "wb", buffering=0), os.fdopen(read_answers, "rb"), lambda: self._reap(process)
        )

    def _reap(self, process: int) -> int:
        try:
            self._control.send(json.dumps({"reap": process}).encode())
            return int(self._hear(_START_SECONDS)["exit"])
        except (OSError, ValueError, KeyError):
            return -signal.SIGKILL

    def close(self) -> None:
        self._control.close()
        # It ends its forks once nobody is there to ask for more.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        end_group(self._process)

    def _hear(self, timeout: float) -> dict[str, Any]:
        """Raises OSError when it takes too long, and ValueError when there is nothing to come."""
        self._control.settimeout(timeout)
        line = self._control.recv(4096)
        if not line:
            raise ValueError("no answer")
        message: dict[str, Any] = json.loads(line)
        return message


def _command(*arguments: str) -> list[str]:
    root = str(Path(__file__).resolve().parent.parent.parent)
    return [sys.executable, "-c", _BOOTSTRAP.format(root=root, arguments=list(arguments))]


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
