"""Which torch a project runs with, as its own files say: what it requires first, then what its lock files hold.

Reads files of the project; runs nothing. What cannot be read as a requirement says nothing, as a comment would.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from perflint.project.requirements.files import requirement_lines
from perflint.project.requirements.locks import locked
from perflint.project.requirements.wanted import Line, Version, Wanted, wanted


class Source(NamedTuple):
    """The line (from 1) of a file that says which torch (major, minor) a project runs with."""

    version: Version
    file: Path
    line: int


class Torch(NamedTuple):
    """`lowest` is the oldest torch that a project supports, None where nothing says.

    `newest` is the newest (major, minor) that it can be installed with, None where nothing holds newer ones back.
    """

    lowest: Source | None = None
    newest: Version | None = None

    @property
    def version(self) -> Version | None:
        return None if self.lowest is None else self.lowest.version


def torch_at(folder: Path) -> Torch:
    """What the files of the project at `folder` say. Files that cannot be read say nothing."""
    requirements = requirement_lines(folder)
    required = [(line, said) for line in requirements.lines if (said := wanted(line, requirements.pythons)) is not None]
    locks = list(locked(folder))
    lowest = [Source(said.lowest, line.file, line.number) for line, said in required if said.lowest is not None]
    lowest = lowest or [Source(one.version, one.file, one.line) for one in locks]
    return Torch(
        min(lowest, key=lambda one: one.version, default=None),
        max(one.version for one in locks) if locks else _newest([said for _, said in required]),
    )


def _newest(required: Sequence[Wanted]) -> Version | None:
    """Of all that say something, the most that one allows."""
    bounds = [one.newest for one in required]
    known = [bound for bound in bounds if bound is not None]
    return max(known) if known and len(known) == len(bounds) else None


def project_torch(root: Path) -> Version | None:
    """The oldest torch (major, minor) that the project at `root` says it supports, None where nothing says."""
    return torch_at(root).version


def pinned_torch(root: Path) -> Version | None:
    """The newest torch (major, minor) that the project at `root` can be installed with, None where nothing holds it."""
    return torch_at(root).newest


__all__ = ["Line", "Source", "Torch", "pinned_torch", "project_torch", "torch_at"]
