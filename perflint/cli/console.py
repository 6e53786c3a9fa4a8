"""Standard output and standard error: text that survives any terminal, colour, and progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from perflint.errors import PerflintError
from perflint.system.atomic import write_whole

#: Seconds of silence before progress is shown.
_PATIENCE = 1.0
#: Seconds between two lines of progress.
_INTERVAL = 0.1


def write(text: str) -> None:
    """Print `text` to standard output as it is.

    What the terminal's encoding lacks, lone surrogates included, is printed as an escape. A reader that has gone
    away (`| head`) ends the output, not the run. Raises PerflintError where the disk is full, say.
    """
    with printing() as stream:
        _write(stream, text)


@contextmanager
def printing() -> Iterator[TextIO]:
    """Standard output to write to, flushed afterwards. Raises PerflintError where it takes nothing more."""
    stream: TextIO | None = sys.stdout  # none where the shell has closed it
    if stream is None:
        raise PerflintError("standard output cannot be written: it is closed")
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        _discard(stream)
    except OSError as error:
        _discard(stream)
        raise PerflintError(f"standard output cannot be written: {error.strerror or error}") from error


def complain(message: str) -> None:
    """One line on standard error. It may quote names from outside, so whatever controls a terminal is escaped."""
    from perflint.report.visible import visible

    stream: TextIO | None = sys.stderr
    if stream is None:  # closed, so there is nobody to tell
        return
    try:
        _write(stream, f"perflint: {visible(message)}\n")
        stream.flush()
    except OSError:
        _discard(stream)


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, or the interpreter complains on its way out."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def write_file(path: Path, text: str) -> None:
    """Raises PerflintError when the file cannot be written."""
    try:
        write_whole(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise PerflintError(f"{path}: cannot be written: {error.strerror or error}") from error


def is_terminal(stream: TextIO | None) -> bool:
    """Not where the stream is none: a shell can close it (`>&-`)."""
    return stream is not None and stream.isatty()


def wants_color(asked: bool | None) -> bool:  # noqa: FBT001 - three-valued, straight from the option
    """An option beats `NO_COLOR` beats `FORCE_COLOR` beats whether standard output is a terminal."""
    if asked is not None:
        return asked
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"


def wants_links() -> bool:
    """Whether standard output shows OSC 8 links: a terminal that is not known to print them as they are."""
    if os.environ.get("FORCE_HYPERLINK"):
        return os.environ["FORCE_HYPERLINK"] != "0"
    return is_terminal(sys.stdout) and os.environ.get("TERM") not in {"dumb", "linux"} and not os.environ.get("CI")


def width() -> int:
    """Columns of the terminal, 100 where there is none."""
    if not is_terminal(sys.stdout):
        return 100
    import shutil  # late: it brings three libraries of compression

    return shutil.get_terminal_size((100, 24)).columns


class Progress:
    """A counter on standard error, shown after a second and only on a terminal."""

    def __init__(self, things: str = "files") -> None:
        self._things = things
        self._next = time.monotonic() + _PATIENCE
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _INTERVAL
            self._shown = True
            sys.stderr.write(f"\r{done}/{total} {self._things}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def progress(things: str = "files") -> Iterator[Progress | None]:
    """Counts `things`. None where standard error is no terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    shown = Progress(things)
    try:
        yield shown
    finally:
        shown.clear()
