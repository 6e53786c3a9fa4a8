"""Which torch a project runs with, as its own files say: lock files first, then requirements. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from perflint.patterns import pattern

_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pixi.lock")
_LISTS = ("pyproject.toml", "setup.cfg", "setup.py", "environment.yml", "environment.yaml", "Pipfile")
_LARGEST = 4_000_000

_LOCKED = pattern(
    r'name\s*=\s*"torch"\s*\n\s*version\s*=\s*"(\d+)\.(\d+)'  # uv, poetry, pdm
    r'|"torch"\s*:\s*\{[^}]*?"version"\s*:\s*"==(\d+)\.(\d+)'  # Pipfile.lock
)
#: `torch==2.1.0`, `"torch>=1.12,<3"`, `torch = "^2.2"`, `- pytorch=2.3`; never `torchvision` or `torch-geometric`.
_WANTED = pattern(
    r"""(?:^|["'\s\-,\[])(?:py)?torch(?:\[[\w,]*\])?\s*(?:=\s*["'{]?[^"'\d\n]*|)(==|~=|>=|=|\^|~|)\s*["']?(\d+)\.(\d+)""",
    re.MULTILINE,
)
#: What leaves no room for a newer major version; `>=` does.
_HELD = pattern(r"(?<![<>!])=(?!.*>)|\^|~")


def project_torch(root: Path) -> tuple[int, int] | None:
    """The oldest torch (major, minor) that the project at `root` says it runs with, None where nothing says."""
    for name in _LOCKS:
        found = _LOCKED.search(_text(root / name))
        if found:
            major, minor = (part for part in found.groups() if part is not None)
            return int(major), int(minor)
    versions = [version for file in _requirement_files(root) for version in _versions(_text(file))]
    return min(versions) if versions else None


def pinned_torch(root: Path) -> tuple[int, int] | None:
    """The torch (major, minor) that the project is held to, None where a newer one may be installed as well."""
    version = project_torch(root)
    if version is None or any(_LOCKED.search(_text(root / name)) for name in _LOCKS):
        return version
    wanted = [found for file in _requirement_files(root) for found in _WANTED.finditer(_text(file))]
    return version if all(_HELD.search(found[0]) for found in wanted) else None


def _requirement_files(root: Path) -> Iterator[Path]:
    for name in _LISTS:
        yield root / name
    yield from sorted(root.glob("requirements*.txt"))[:20]
    yield from sorted(root.glob("requirements/*.txt"))[:20]


def _versions(text: str) -> Iterator[tuple[int, int]]:
    for found in _WANTED.finditer(text):
        version = int(found[2]), int(found[3])
        if (1, 0) <= version < (10, 0):
            yield version


def _text(file: Path) -> str:
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:  # a link may lead to a device without end
            return ""
        return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
