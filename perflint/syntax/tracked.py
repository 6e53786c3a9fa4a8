"""Which files git tracks, as its index says. Needs no git, and reads no entry that is not asked for."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_LARGEST = 1_000_000_000
#: Versions of the index in which each entry has its whole name. The fourth shares beginnings: nothing is known of it.
_PLAIN = (2, 3)
_EXTENDED = 0x4000
_LENGTH = 0x0FFF


class Tracked(NamedTuple):
    """The index of the repository at `root` (absolute)."""

    root: str
    entries: bytes

    def holds(self, path: str, *, is_folder: bool) -> bool:
        """Whether git tracks the file at `path` (absolute), or any file below the folder."""
        if not path.startswith(self.root + os.sep):
            return False
        name = os.fsencode(os.path.relpath(path, self.root).replace(os.sep, "/"))
        wanted = name + (b"/" if is_folder else b"\0")
        place = self.entries.find(wanted)
        while place >= 0:
            if self._begins(place):
                return True
            place = self.entries.find(wanted, place + 1)
        return False

    def _begins(self, place: int) -> bool:
        """Whether an entry's name begins here: its length stands before it, unless more flags lie between."""
        length = min(self.entries.find(b"\0", place) - place, _LENGTH)
        flags, earlier = (int.from_bytes(self.entries[place - at : place - at + 2], "big") for at in (2, 4))
        is_plain = flags & _LENGTH == length and not flags & _EXTENDED
        return is_plain or (earlier & _LENGTH == length and bool(earlier & _EXTENDED))


def tracked_at(folder: Path) -> Tracked | None:
    """The index of the repository that a folder lies in; None without one that can be read."""
    root = next((one for one in (folder, *folder.parents) if os.path.exists(one / ".git")), None)  # noqa: PTH110
    try:
        file = _git_folder(root) / "index" if root is not None else None
        found = file.stat() if file is not None and file.is_file() else None
        if root is None or file is None or found is None or found.st_size > _LARGEST:
            return None
        return _read(str(root), file, found.st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=8)
def _read(root: str, file: Path, _changed: int) -> Tracked | None:
    """`_changed`: an editor's server outlives many indices."""
    entries = file.read_bytes()
    is_known = entries[:4] == b"DIRC" and int.from_bytes(entries[4:8], "big") in _PLAIN
    return Tracked(root, entries) if is_known else None


def _git_folder(root: Path) -> Path:
    """`.git`, or the folder that it names in a work tree of its own or a submodule."""
    marker = root / ".git"
    if marker.is_file():
        return root / marker.read_text(encoding="utf-8", errors="surrogateescape").removeprefix("gitdir:").strip()
    return marker


__all__ = ["Tracked", "tracked_at"]
