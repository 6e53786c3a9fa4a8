"""A limit to the processor time that one file may take, which ends what is at work on it.

Processor time, so that a busy machine changes no result. Where the system has timers that send a signal, and in the
main thread, which alone receives them, a signal ends the work, also inside of a regular expression. Elsewhere
(Windows, the threads of a server, a process whose timer somebody else has set) a thread watches, and has the
interpreter raise the error in the thread that works.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")

#: A day of seconds; timers know no number however large.
LONGEST = 86_400
#: What ends the work is sent again as often (in seconds), as code that is being ended may swallow it.
_AGAIN = 0.25
_LONGEST_LOOK = 0.5


class OverTimeError(BaseException):
    """The work took longer than it may. No `Exception`, so that what handles those lets it pass."""


def within(seconds: float, work: Callable[[], Result], *, expendable: bool = False) -> Result:
    """What `work` returns. Raises OverTimeError when it takes more than `seconds` of processor time; 0 is no limit.

    Code that is not Python's may never come to look at what it is sent. Where the process is `expendable`, the system
    ends it as a whole when it goes on for twice the time and some seconds.
    """
    if not seconds:
        return work()
    if expendable:
        _end_process_after(2 * seconds + 2)
    ending = _BySignal(seconds) if _can_signal() else _ByThread(seconds)
    try:
        try:
            ending.begin()
            return work()
        finally:
            ending.end()
    except OverTimeError:
        ending.end()  # the first time it may have been ended itself
        raise


def _end_process_after(seconds: float) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def lift() -> None:
    """Have the system not end this process for what it does between one expendable work and the next."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _can_signal() -> bool:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGPROF)
    return handler is _ring or (handler == signal.SIG_DFL and signal.getitimer(signal.ITIMER_PROF)[0] == 0)


class _BySignal:
    is_on = False

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def begin(self) -> None:
        # The handler stays: without one, a signal that comes late would end the process.
        if signal.getsignal(signal.SIGPROF) is not _ring:
            signal.signal(signal.SIGPROF, _ring)
        _BySignal.is_on = True
        signal.setitimer(signal.ITIMER_PROF, self._seconds, _AGAIN)

    def end(self) -> None:
        _BySignal.is_on = False
        signal.setitimer(signal.ITIMER_PROF, 0)


def _ring(_number: int, _frame: FrameType | None) -> None:
    if _BySignal.is_on:
        raise OverTimeError


class _ByThread:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thread = threading.get_ident()

    def begin(self) -> None:
        _watch.begin(self._thread, time.process_time() + self._seconds)

    def end(self) -> None:
        _watch.end(self._thread)


class _Watch:
    """One thread of a process that ends the work of others. Made when it is first needed, anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[int, float] = {}
        self._rung: set[int] = set()
        self._wake = threading.Event()
        self._process = 0

    def begin(self, thread: int, deadline: float) -> None:
        with self._lock:
            self._deadlines[thread] = deadline
            if self._process != os.getpid():
                self._process = os.getpid()
                threading.Thread(target=self._look, name="perflint time limit", daemon=True).start()
        self._wake.set()

    def end(self, thread: int) -> None:
        with self._lock:
            self._deadlines.pop(thread, None)
            if thread in self._rung:
                self._rung.discard(thread)
                _take_what_is_sent(thread)

    def _look(self) -> None:
        while True:
            if not self._deadlines:
                self._wake.wait()
            self._wake.clear()
            with self._lock:
                now = time.process_time()
                for thread, deadline in self._deadlines.items():
                    if deadline <= now:
                        self._rung.add(thread)
                        _send(thread)
                nearest = min(self._deadlines.values(), default=now + _LONGEST_LOOK) - now
            time.sleep(_AGAIN if nearest <= 0 else min(max(nearest, 0.01), _LONGEST_LOOK))


def _send(thread: int) -> None:
    """Have the interpreter raise OverTimeError in `thread`, when that comes to look."""
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OverTimeError))


def _take_what_is_sent(thread: int) -> None:
    """Receive in this thread, which is `thread`, what it was sent, so that nothing comes late.

    Taking an error back (`PyThreadState_SetAsyncExc` with NULL) leaves the interpreter's mark that one waits, for
    which only one that is raised makes up; with the mark, CPython 3.11 never enters a function that is traced.
    """
    with contextlib.suppress(OverTimeError):
        _send(thread)
        while True:  # it is raised within a few instructions
            pass


_watch = _Watch()
