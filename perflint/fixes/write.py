"""Changed files to disk: each is at any moment its old self or its new one, whatever interrupts.

The new content goes into a temporary file in the same folder, which then takes the old one's name.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from perflint.errors import PerflintError

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))

_TOKEN_BYTES = 6
_STALE_SECONDS = 60.0


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
        raise WriteError("not written: it is a symbolic link that leads out of the project")
    return target


def _replace(target: Path, before: bytes, after: bytes) -> None:
    status = target.stat()
    if not stat.S_ISREG(status.st_mode):
        raise WriteError("not written: it is no regular file")
    if not os.access(target, os.W_OK):
        raise WriteError("cannot be written: Permission denied")
    _expect(target, before)
    _clear_leftovers(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.tmp")
    try:
        # Looked at again at the last moment: an editor may have saved in the meantime.
        _write_beside(temporary, after, status, last_look=lambda: _expect(target, before))
        os.replace(temporary, target)  # noqa: PTH105 - the same call, without another object
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _expect(target: Path, before: bytes) -> None:
    if target.read_bytes() != before:
        raise WriteError("not written: it has changed since it was read")


def _clear_leftovers(target: Path) -> None:
    """Remove what an earlier run left beside the file because it was killed between two system calls.

    A run that is at work has such a name for an instant only, so what is older than a minute belongs to no one.
    """
    name = re.compile(re.escape(f".{target.name}.") + rf"[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.tmp")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) and time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_SECONDS:
                Path(entry.path).unlink(missing_ok=True)


def _write_beside(temporary: Path, content: bytes, like: os.stat_result, last_look: Callable[[], None]) -> None:
    """A complete file of that name, on disk, with the mode and owner of the one it is to replace.

    `last_look` may still raise; it comes as late as can be.
    """
    if hasattr(os, "O_TMPFILE"):
        # A file without a name until it is complete: not even a killed process leaves a part of one behind.
        with suppress(OSError):  # not every file system has such files
            descriptor = os.open(temporary.parent, os.O_TMPFILE | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                _fill(file, content, like)
                last_look()
                # With a folder's descriptor, though it is not used, Python follows the link to the file itself.
                os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor, follow_symlinks=True)
            return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        _fill(file, content, like)
    if not hasattr(os, "fchmod"):
        temporary.chmod(stat.S_IMODE(like.st_mode))
    last_look()


def _fill(file: BinaryIO, content: bytes, like: os.stat_result) -> None:
    file.write(content)
    file.flush()
    if hasattr(os, "fchmod"):
        with suppress(PermissionError):
            os.fchown(file.fileno(), like.st_uid, like.st_gid)
        os.fchmod(file.fileno(), stat.S_IMODE(like.st_mode))
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """The new name outlives a power failure. Where folders cannot be synced, there is nothing to do."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
