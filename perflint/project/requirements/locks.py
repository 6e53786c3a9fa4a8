"""The torch that lock files hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from perflint.project.requirements.reading import text_of
from perflint.system.patterns import pattern

_LOCKS = (
    "uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock", "pixi.lock", "conda-lock.yml",
)  # fmt: skip
_LOCKED = pattern(
    r'name\s*=\s*"torch"\s*\n\s*version\s*=\s*"(\d+)\.(\d+)'  # uv, poetry, pdm
    r'|"torch"\s*:\s*\{[^}]*?"version"\s*:\s*"==(\d+)\.(\d+)'  # Pipfile.lock
    r"|^\s*-?\s*name:\s*(?:py)?torch\s*\n\s*version:\s*[\"']?(\d+)\.(\d+)"  # conda-lock, older pixi
    r"|^\s*-\s*(?:conda|pypi):\s*\S*/(?:py)?torch-(\d+)\.(\d+)[.\d]*[-+%]\S*$",  # pixi
    re.MULTILINE,
)


class Locked(NamedTuple):
    version: tuple[int, int]
    file: Path
    line: int


def locked(folder: Path) -> Iterator[Locked]:
    """Every torch in the lock files of a folder: one for each platform that they are made for."""
    for name in _LOCKS:
        text = text_of(folder / name)
        for found in _LOCKED.finditer(text):
            major, minor = (part for part in found.groups() if part is not None)
            start = found.start() + len(found[0]) - len(found[0].lstrip())
            yield Locked((int(major), int(minor)), folder / name, text.count("\n", 0, start) + 1)
