"""The entry points of a group, as installed distributions declare them, without `importlib.metadata` where that can be:
importing it costs a sixth of a run over a small project.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

_SUFFIXES = (".dist-info", ".egg-info")


def entry_points(group: str) -> set[tuple[str, str]]:
    """The values of a group's entry points, each with the name of its distribution."""
    if not _are_plain_folders():
        return _as_the_library_tells(group)
    found: set[tuple[str, str]] = set()
    seen: set[str] = set()
    for folder in _folders():
        for item in _metadata_in(Path(folder)):
            name = item.stem.partition("-")[0]
            known = name.lower().replace("-", "_").replace(".", "_")
            # Of several versions that are installed the first is the one that is imported.
            if known not in seen:
                seen.add(known)
                found.update((value, name) for value in _values(item / "entry_points.txt", group))
    return found


def _are_plain_folders() -> bool:
    """Whether nothing is imported from archives, and nobody else tells what is installed."""
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return False
    # `Path.is_file` raises where it may not look.
    return not any(folder.endswith(".egg") or os.path.isfile(folder) for folder in _folders())  # noqa: PTH113


def _folders() -> list[str]:
    """Where imports are looked for. Some programs put paths there that are no texts, and nothing is imported from."""
    folders: list[object] = [*sys.path]
    return [folder for folder in folders if isinstance(folder, str)]


def _as_the_library_tells(group: str) -> set[tuple[str, str]]:
    import importlib.metadata

    return {
        (entry.value, entry.dist.name if entry.dist is not None else "an unknown distribution")
        for entry in importlib.metadata.entry_points(group=group)
    }


def _metadata_in(folder: Path) -> list[Path]:
    try:
        # What pip could not remove it leaves under a name with `~`, which belongs to nothing that is installed.
        return [
            item for item in folder.iterdir() if item.name.lower().endswith(_SUFFIXES) and not item.name.startswith("~")
        ]
    except OSError:
        return []


def _values(path: Path, group: str) -> Iterator[str]:
    """The values under a group's heading: `name = value`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError):
        return
    heading = ""
    for line in map(str.strip, lines):
        if line.startswith("[") and line.endswith("]"):
            heading = line[1:-1]
        elif heading == group and "=" in line and not line.startswith("#"):
            yield line.partition("=")[2].strip()
