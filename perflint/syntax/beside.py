"""What lies beside the source files that are read, and may be imported all the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: How files end that are modules without being read, or that modules are made of: compiled, generated, described.
MODULES = (
    ".py", ".pyw", ".ipynb", ".pyi", ".pyc", ".so", ".pyd", ".pyx", ".pxd", ".c", ".cc", ".cpp", ".cxx", ".cu",
    ".proto", ".in", ".j2", ".jinja", ".tmpl", ".template", ".link",
)  # fmt: skip


class Beside(NamedTuple):
    """All paths are as files are shown. `walked` are folders below which everything is known; `files` those that are
    to be read. `there` are folders, and files without what follows their first dot, that may be imported. `ignored` are
    the last parts of what ignore files leave out: such a file may be there for others, or be made.
    """

    walked: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


#: Of a program of which nothing is known but its files.
NOTHING = Beside()


def last_parts(lines: Iterable[str]) -> set[str]:
    """The last parts of the patterns of an ignore file."""
    patterns = (line.strip().rstrip("/") for line in lines if line[:1] not in ("#", "!"))
    return {pattern.rpartition("/")[2] for pattern in patterns if pattern}


def submodules_in(text: str) -> list[str]:
    """The folders that a `.gitmodules` names, which may not have been fetched, with those above them."""
    pairs = (line.partition("=") for line in text.splitlines())
    named = [value.strip().strip("/") for key, _, value in pairs if key.strip() == "path"]
    return ["/".join(path.split("/")[:depth]) for path in named for depth in range(1, path.count("/") + 2) if path]
