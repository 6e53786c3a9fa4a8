"""Ctrl-C under observation: it is raised in the program, never inside of what records it.

torch calls the recorder from C++, at places where an exception cannot pass: `KeyboardInterrupt` there ends the process
with SIGABRT, and what was seen is lost.
"""

from __future__ import annotations

import signal
import sys
import sysconfig
import threading
import types
from importlib.util import find_spec
from pathlib import Path

#: Seconds until it is tried again, and how often: a program that never comes out of the recorder is interrupted there.
_AGAIN, _TRIES = 0.005, 400


def raise_in_the_program() -> None:
    """From now on. A program that asks for another treatment of SIGINT gets it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    here = str(Path(__file__).resolve().parent)
    torch = find_spec("torch")
    # Packages may lie below the standard library.
    standard = tuple(str(Path(sysconfig.get_path("stdlib"), name)) for name in sorted(sys.stdlib_module_names))
    libraries = (*standard, *(torch.submodule_search_locations or () if torch else ()))
    left = _TRIES

    def interrupt(number: int, frame: types.FrameType | None) -> None:
        nonlocal left
        if left and _is_recording(frame, here, libraries):
            left -= 1
            again = threading.Timer(_AGAIN, signal.raise_signal, (number,))
            again.daemon = True
            again.start()
            return
        left = _TRIES
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)


def _is_recording(frame: types.FrameType | None, here: str, libraries: tuple[str, ...]) -> bool:
    """Whether the recorder runs, itself or what it called: torch and the standard library are looked through."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(here):
            return not file.endswith("child.py")
        if not file.startswith(libraries):
            return False
        frame = frame.f_back
    return False


__all__ = ["raise_in_the_program"]
