"""`--watch`: the same again whenever a file changes, comes or goes."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from perflint.cli import console
from perflint.errors import PerflintError

#: Seconds between two looks, at least; a project whose files take long to find is looked at less often.
_PAUSE = 0.3
_SHARE = 10


def watch(once: Callable[[], object], files: Callable[[], Iterable[Path]]) -> None:
    """Call `once` now and after each change of `files`, until interrupted. What the user can mend is said, no more."""
    try:
        while True:
            before = _state(files)
            if console.is_terminal(sys.stdout):
                click.clear()
            try:
                once()
            except PerflintError as error:
                console.complain(str(error))
            console.complain(f"watching {len(before)} files; Ctrl-C stops")
            _wait_for_change(before, files)
    except KeyboardInterrupt:
        return


def _wait_for_change(before: dict[Path, object], files: Callable[[], Iterable[Path]]) -> None:
    while True:
        started = time.monotonic()
        if _state(files) != before:
            return
        time.sleep(max(_PAUSE, _SHARE * (time.monotonic() - started)))


def _state(files: Callable[[], Iterable[Path]]) -> dict[Path, object]:
    """What the disk says of each file. A configuration that does not read holds no files: mending it is a change."""
    found: dict[Path, object] = {}
    with contextlib.suppress(PerflintError):
        for file in files():
            with contextlib.suppress(OSError):
                status = file.stat()
                found[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
