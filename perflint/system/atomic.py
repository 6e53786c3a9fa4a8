"""Writing a file as a whole: it is at any moment its old self or its new one, whatever interrupts.

The new content goes into a temporary file in the same folder, which then takes the old one's name.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_TOKEN_BYTES = 6
_STALE_SECONDS = 60.0


def write_whole(file: Path, content: bytes) -> None:
    """Make or replace a file of ours. Raises OSError.

    What is no file, such as a terminal or a pipe, is written to as it stands.
    """
    target = Path(os.path.realpath(file))
    status = target.stat() if target.exists() else None
    if status is not None and not stat.S_ISREG(status.st_mode):
        target.write_bytes(content)
        return
    try:
        replace_whole(target, content, status)
    except PermissionError:
        if status is None:
            raise
        target.write_bytes(content)  # a file that may be written in a folder that may not


def replace_whole(
    target: Path, content: bytes, like: os.stat_result | None, last_look: Callable[[], None] = lambda: None
) -> None:
    """Put `content` in the place of `target`, with the mode and owner that `like` tells. Raises OSError.

    What `last_look` raises leaves everything as it is; it is called as late as can be.
    """
    _clear_leftovers(target)
    temporary = target.with_name(f".{target.name}.{os.urandom(_TOKEN_BYTES).hex()}.tmp")
    try:
        _write_beside(temporary, content, like, last_look)
        os.replace(temporary, target)  # noqa: PTH105 - the same call, without another object
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _clear_leftovers(target: Path) -> None:
    """Remove what an earlier run left beside the file because it was killed between two system calls.

    A run that is at work has such a name for an instant only, so what is older than a minute belongs to no one.
    """
    name = re.compile(re.escape(f".{target.name}.") + rf"[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.tmp")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) and time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_SECONDS:
                Path(entry.path).unlink(missing_ok=True)


def _write_beside(temporary: Path, content: bytes, like: os.stat_result | None, last_look: Callable[[], None]) -> None:
    """A complete file of that name, on disk, with the mode and owner of the one it is to replace, if any.

    `last_look` may still raise; it comes as late as can be.
    """
    mode = 0o666 if like is None else 0o600
    if hasattr(os, "O_TMPFILE"):
        # A file without a name until it is complete: not even a killed process leaves a part of one behind.
        with suppress(OSError):  # not every file system has such files
            descriptor = os.open(temporary.parent, os.O_TMPFILE | os.O_WRONLY, mode)
            with os.fdopen(descriptor, "wb") as file:
                _fill(file, content, like)
                last_look()
                # With a folder's descriptor, though it is not used, Python follows the link to the file itself.
                os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor, follow_symlinks=True)
            return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(temporary, flags, mode), "wb") as file:
        _fill(file, content, like)
    if like is not None and not hasattr(os, "fchmod"):
        temporary.chmod(stat.S_IMODE(like.st_mode))
    last_look()


def _fill(file: BinaryIO, content: bytes, like: os.stat_result | None) -> None:
    file.write(content)
    file.flush()
    if like is not None and hasattr(os, "fchmod"):
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
