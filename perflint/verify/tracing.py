"""Which of some lines a Python process runs: for the untimed runs of a workload, in its own processes.

Standard library only, and no import of perflint: `site` of any Python that a command starts runs it, by way of a
`sitecustomize.py` (see `reach`). What is seen goes line by line to a log, so that processes which are forked, started
or killed say what they saw as well.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

#: What the log says besides places: a process is watched, and one whose code ran in a form that cannot be watched.
STARTED, COMPILED, LOST = "started", "compiled", "lost"

_finish: Callable[[], None] = lambda: None  # noqa: E731 - replaced by `begin`


def begin(request: dict[str, Any]) -> None:
    """`request` has `log`, a file, and `lines`: numbers by absolute path. Watches this process from here on."""
    global _finish  # noqa: PLW0603 - one process is watched once
    watch = _Watch(request["log"], {path: set(lines) for path, lines in request["lines"].items()})
    watch.say(STARTED)
    begin_watching = _by_monitoring if hasattr(sys, "monitoring") else _by_settrace
    is_alive = begin_watching(watch)

    def finish() -> None:
        if _has_compiled(watch):
            watch.say(COMPILED)
        if not is_alive():
            watch.say(LOST)

    _finish = finish


def finish() -> None:
    """Say what makes a line that was not seen no proof of anything."""
    _finish()


class _Watch:
    """Lines that were not seen yet, and the log."""

    def __init__(self, log: str, lines: dict[str, set[int]]) -> None:
        self._handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._lines = {os.path.realpath(path): (path, numbers) for path, numbers in lines.items()}
        self._known: dict[str, tuple[str, set[int]] | None] = {}

    def of(self, file: str) -> tuple[str, set[int]] | None:
        """The path as it was asked for and the lines of a file, by the name that its code has."""
        if file not in self._known:
            self._known[file] = self._lines.get(os.path.realpath(file))
        return self._known[file]

    def see(self, file: str, line: int) -> None:
        found = self.of(file)
        if found is not None and line in found[1]:
            found[1].discard(line)
            self.say(json.dumps([found[0], line]))

    def say(self, text: str) -> None:
        try:
            os.write(self._handle, f"{text}\n".encode())
        except OSError:
            # The workload closed the file, or the disk is full: what is missing counts as not known.
            return

    @property
    def is_done(self) -> bool:
        return not any(numbers for _, numbers in self._lines.values())


def _by_settrace(watch: _Watch) -> Callable[[], bool]:
    def in_file(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            watch.see(frame.f_code.co_filename, frame.f_lineno)
        return in_file

    def in_process(frame: FrameType, _event: str, _: Any) -> Any:
        if watch.is_done:
            sys.settrace(None)
            return None
        # Also the line that a generator goes on at.
        return in_file if watch.of(frame.f_code.co_filename) is not None else None

    threading.settrace(in_process)
    sys.settrace(in_process)
    return lambda: watch.is_done or sys.gettrace() is in_process


def _by_monitoring(watch: _Watch) -> Callable[[], bool]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = next((number for number in (4, 3, 5, 1, 0, 2) if monitoring.get_tool(number) is None), None)
    if tool is None:
        return lambda: False
    monitoring.use_tool_id(tool, "perflint")
    events = monitoring.events

    def started(code: CodeType, _offset: int) -> Any:
        if watch.of(code.co_filename) is not None:
            monitoring.set_local_events(tool, code, events.LINE)
        return monitoring.DISABLE

    def line(code: CodeType, number: int) -> Any:
        watch.see(code.co_filename, number)
        return monitoring.DISABLE

    monitoring.register_callback(tool, events.PY_START, started)
    monitoring.register_callback(tool, events.LINE, line)
    monitoring.set_events(tool, events.PY_START)
    return lambda: monitoring.get_tool(tool) == "perflint"


def _has_compiled(watch: _Watch) -> bool:
    """Whether torch.compile ran anything, or TorchScript a function of a file that is watched, in another form."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None) or {}
    scripted = getattr(sys.modules.get("torch.jit._state"), "_jit_caching_layer", None) or ()
    files = {code.co_filename for code in (getattr(function, "__code__", None) for function in scripted) if code}
    return bool(counters.get("frames", {}).get("total", 0)) or any(watch.of(file) is not None for file in files)
