"""Which lines of the project ran in steady steps: what did not run can be neither confirmed nor refuted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from perflint.observe.recording.stacks import Stacks

_Trace = Callable[[FrameType, str, Any], Any]


@dataclass
class Coverage:
    """Lines that ran while it was on, by file name. Frames of libraries cost one call each, not one a line."""

    stacks: Stacks
    lines: dict[str, set[int]] = field(default_factory=dict)
    _before: Any = None
    _on: bool = False

    def switch(self, *, on: bool) -> None:
        """Begin or end. Frames that run already are followed from here on."""
        if on == self._on:
            return
        self._on = on
        if on:
            self._before = sys.gettrace()
            if self._before is not None:
                return  # a debugger or another measurement of coverage has it
            sys.settrace(self._called)
            threading.settrace(self._called)
            frame: FrameType | None = sys._getframe(1)
            while frame is not None:
                if self.stacks.owner(frame.f_code.co_filename) == "project":
                    self._lines_of(frame.f_code).add(frame.f_lineno or 0)
                    frame.f_trace = self._line
                frame = frame.f_back
        elif self._before is None:
            sys.settrace(None)
            threading.settrace(None)

    def ran(self) -> dict[str, frozenset[int]]:
        """Lines by path as findings have it."""
        return {self.stacks.shown(name): frozenset(lines - {0}) for name, lines in self.lines.items()}

    def _lines_of(self, code: CodeType) -> set[int]:
        return self.lines.setdefault(code.co_filename, set())

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> _Trace | None:
        if self.stacks.owner(frame.f_code.co_filename) != "project":
            return None
        self._lines_of(frame.f_code).add(frame.f_lineno or 0)
        return self._line

    def _line(self, frame: FrameType, event: str, _argument: Any) -> _Trace:
        if event == "line":
            self._lines_of(frame.f_code).add(frame.f_lineno or 0)
        return self._line
