"""Changed files to disk: only what is still as it was read, in its own folder, and never half of it."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from perflint.errors import PerflintError
from perflint.system.atomic import replace_whole

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


class WriteError(PerflintError):
    """A file was left as it is; the message says why."""


def replace_file(file: Path, before: bytes, after: bytes, root: Path | None = None) -> None:
    """Make `after` the content of `file`, whose content was `before` when it was read. The mode stays.

    Raises WriteError when the file has changed since, cannot be written, or is a link out of `root` (by default, out
    of its folder). A signal that would end the process takes effect once the file is whole.
    """
    target = _target(file, root)
    with _uninterrupted():
        try:
            _replace(target, before, after)
        except OSError as error:
            raise WriteError(f"cannot be written: {error.strerror or error}") from error


def _target(file: Path, root: Path | None) -> Path:
    """The file itself, behind links that stay inside the tree."""
    tree = (file.parent if root is None else root).resolve()
    target = file.resolve()
    if not target.is_relative_to(tree):
        raise WriteError("not written: a symbolic link to a file outside of the project")
    return target


def _replace(target: Path, before: bytes, after: bytes) -> None:
    status = target.stat()
    if not stat.S_ISREG(status.st_mode):
        raise WriteError("not written: not a regular file")
    if not os.access(target, os.W_OK):
        raise WriteError("cannot be written: Permission denied")
    _expect(target, before)
    # Looked at again at the last moment: an editor may have saved in the meantime.
    replace_whole(target, after, status, last_look=lambda: _expect(target, before))


def _expect(target: Path, before: bytes) -> None:
    if target.read_bytes() != before:
        raise WriteError("not written: it has changed since it was read")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back the signals that end a process, then let them act. Only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        caught.append(number)

    previous = {number: signal.getsignal(number) for number in _SIGNALS}
    # What is ignored stays ignored; a handler that Python does not know cannot be put back.
    held = [number for number, handler in previous.items() if handler not in {signal.SIG_IGN, None}]
    try:
        for number in held:
            signal.signal(number, remember)
        yield
    finally:
        for number in held:
            signal.signal(number, previous[number])
        for number in dict.fromkeys(caught):
            signal.raise_signal(number)
