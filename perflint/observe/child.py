"""The process that the observed program runs in: `perflint observe` starts it and reads what it wrote.

The program finds what Python would give it: its arguments, `__main__`, the first entry of `sys.path`, its own standard
streams and exit code.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import importlib
import json
import os
import runpy
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Seconds that a program has to end after its last step, or after it was asked to.
_GRACE = 20.0
#: The environment variable that names the file with the order.
ORDER = "PERFLINT_OBSERVE_ORDER"


@dataclass(frozen=True, slots=True)
class Order:
    """What the child is to run: a `script`, a `module`, `code` or a `call`able, with its arguments."""

    what: str
    target: str
    arguments: tuple[str, ...]
    device: str
    hardware: str
    steps: int | None
    warmup: int
    timeout: float | None
    result: str
    stubs: Mapping[str, str]
    project: tuple[str, ...]
    coverage: bool = True
    observe: bool = True


def main() -> None:
    """Run the order that the environment names, and end as its program ended."""
    given = json.loads(Path(os.environ.pop(ORDER)).read_text(encoding="utf-8"))
    order = Order(**{**given, "arguments": tuple(given["arguments"]), "project": tuple(given["project"])})
    code = _run(order) if order.observe else _plain(order)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)


def _plain(order: Order) -> int:
    code, ended = _ended_by(lambda: _start(order, None))
    with contextlib.suppress(OSError):
        _ended_file(Path(order.result)).write_text(ended, encoding="utf-8")
    return code


def how_it_ended(result: Path) -> str:
    """How a program ended that ran without observation; empty for by itself, or where it could not say."""
    try:
        return _ended_file(result).read_text(encoding="utf-8")
    except OSError:
        return ""


def _ended_file(result: Path) -> Path:
    return result.with_suffix(".ended")


def _run(order: Order) -> int:
    from perflint.errors import PerflintError
    from perflint.observe import stubs
    from perflint.observe.document import write
    from perflint.observe.interrupts import raise_in_the_program
    from perflint.observe.recording.recorder import EnoughError
    from perflint.observe.recording.session import Wanted, observing

    def enough() -> None:
        watch.steps_seen()
        raise EnoughError

    try:
        wanted = Wanted(
            order.device or _default_device(),
            order.hardware,
            order.steps,
            order.warmup,
            project=[Path(folder) for folder in order.project],
            stubs=stubs.install(order.stubs),
            coverage=order.coverage,
        )
        with observing(wanted, enough) as session:
            session.recorder.on_step = lambda: _tell_steps(order, session.recorder.index)
            session.program = (order.target, *order.arguments)
            watch = _Watch(order, lambda ended: write(session.observation(ended), Path(order.result)))
            watch.recorder = session.recorder
            watch.start()
            raise_in_the_program()
            code, ended = _ended_by(lambda: _start(order, session))
            watch.stop()
            ended = watch.reason or ended
            if not session.recorder.ended and session.recorder.index == 0 and code == 0:
                session.recorder.whole_program()
                session.recorder.errors.append(
                    "no step was seen (no optimizer stepped, no DataLoader gave two batches, no backward pass ran): "
                    "the whole program is counted as one step"
                )
            session.recorder.errors.extend(stubs.advice())
            write(session.observation(ended), Path(order.result))
    except PerflintError as error:
        Path(order.result).with_suffix(".fault").write_text(str(error), encoding="utf-8")
        return 2
    return code


def _tell_steps(order: Order, done: int) -> None:
    """For whoever shows progress. A full disk is no reason to end the program."""
    with contextlib.suppress(OSError):
        _steps_file(Path(order.result)).write_text(str(done), encoding="ascii")


def steps_in(result: Path) -> int:
    """How many steps the program has made whose observation goes to `result`; 0 where none is known."""
    try:
        return int(_steps_file(result).read_text(encoding="ascii"))
    except (OSError, ValueError):  # not written yet, or being written
        return 0


def _steps_file(result: Path) -> Path:
    return result.with_suffix(".steps")


def _default_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "simulated"


def _ended_by(run: Callable[[], None]) -> tuple[int, str]:
    """The exit code that the program asked for, and how it ended where not by itself."""
    from perflint.errors import PerflintError
    from perflint.observe import stubs

    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if end.code is not None and not isinstance(end.code, int):
            sys.stderr.write(f"{end.code}\n")
        return code, f"exit code {code}" if code else ""
    except KeyboardInterrupt:
        # What was seen is yet to be written: the impatient who interrupt again get it too.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return 130, "interrupted"
    except PerflintError:
        raise  # the order is at fault, not the program
    except BaseException as error:  # noqa: BLE001  whatever the program raises ends it, and is reported
        if type(error).__name__ == "EnoughError":
            return 0, ""
        stubs.explain(error)
        _print_traceback(error)
        return 1, f"exit code 1 ({type(error).__name__})"
    return 0, ""


def _print_traceback(error: BaseException) -> None:
    """As Python prints it, without the frames of this package that lead to the program."""
    trace = error.__traceback__
    here = str(Path(__file__))
    while trace is not None and (
        trace.tb_frame.f_code.co_filename == here or trace.tb_frame.f_code.co_filename.startswith("<frozen runpy")
    ):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _start(order: Order, session: Any) -> None:
    if order.what == "script":
        _script(order)
    elif order.what == "module":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv[:] = [order.target, *order.arguments]
        runpy.run_module(order.target, run_name="__main__", alter_sys=True)
    elif order.what == "code":
        sys.path.insert(0, "")
        sys.argv[:] = ["-c", *order.arguments]
        _main_module(None, compile(order.target, "<string>", "exec"))
    else:
        _call(order, session)


def _script(order: Order) -> None:
    file = Path(order.target)
    sys.path.insert(0, str(file.resolve().parent))
    sys.argv[:] = [order.target, *order.arguments]
    try:
        text = file.read_bytes()
    except OSError as error:
        sys.stderr.write(f"can't open file {order.target!r}: {error.strerror}\n")
        raise SystemExit(2) from None
    _main_module(str(file), compile(text, str(file), "exec"))


def _main_module(file: str | None, code: types.CodeType) -> None:
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    if file is not None:
        module.__file__ = file
    sys.modules["__main__"] = module
    exec(code, module.__dict__)  # noqa: S102  the user's own program, which the user asked to run


def _call(order: Order, session: Any) -> None:
    """Call it until all steps were seen; each call is a step. A callable may be made by one without arguments."""
    from perflint.errors import PerflintError

    sys.path.insert(0, str(Path.cwd()))
    sys.argv[:] = [order.target, *order.arguments]
    module, _, name = order.target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ModuleNotFoundError, AttributeError) as error:
        raise PerflintError(f"--call {order.target}: {error}") from error
    if session is not None:
        session.recorder.by_calls = True
    calls = order.warmup + order.steps if order.steps is not None else order.warmup + 1
    for _ in range(calls):
        before = session.recorder.index if session is not None else 0
        found()
        if session is not None and session.recorder.index == before:
            session.recorder.end_step()


class _Watch:
    """Ends a program that makes no step in time, or does not end after its last one."""

    def __init__(self, order: Order, write: Callable[[str], None]) -> None:
        self.order = order
        self.write = write
        self.recorder: Any = None
        self.reason = ""
        self._main = threading.main_thread().ident or 0
        self._seen = threading.Event()
        self._done = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._guard, name="perflint-observe", daemon=True).start()

    def steps_seen(self) -> None:
        self._seen.set()

    def stop(self) -> None:
        self._done.set()
        self._seen.set()

    def _guard(self) -> None:
        if not self._seen.wait(self.order.timeout):
            self._interrupt()
        if not self._done.wait(_GRACE):
            self.write(self.reason)
            sys.stdout.flush()
            os._exit(0 if self.recorder.index > self.order.warmup else 2)

    def _interrupt(self) -> None:
        from perflint.observe.recording.recorder import EnoughError

        steps = self.recorder.index
        where = self._where()
        if steps <= self.order.warmup:
            self.reason = f"no steady step within {self.order.timeout:g} s; it stood at {where}"
        else:
            self.reason = f"timeout after {self.order.timeout:g} s and {steps - self.order.warmup} steady steps"
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._main), ctypes.py_object(EnoughError))

    def _where(self) -> str:
        """The innermost line of the project, and the innermost of all."""
        frame: Any = sys._current_frames().get(self._main)
        stacks = self.recorder.stacks
        innermost = frame
        while frame is not None and stacks.owner(frame.f_code.co_filename) != "project":
            frame = frame.f_back
        shown = frame or innermost
        if shown is None:
            return "an unknown line"
        text = f"{stacks.shown(shown.f_code.co_filename)}:{shown.f_lineno} in {shown.f_code.co_name}"
        if frame is not innermost and innermost is not None:
            text += f" (in {Path(innermost.f_code.co_filename).name}:{innermost.f_lineno} {innermost.f_code.co_name})"
        return text


__all__ = ["ORDER", "Order", "how_it_ended", "main", "steps_in"]
