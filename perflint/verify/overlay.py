"""A copy of a tree in a temporary folder, in which fixes are tried. The tree itself is read, never written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perflint.errors import PerflintError
from perflint.project.discovery import DEFAULT_EXCLUDES

#: More than this is data, which the user has to say.
MOST_BYTES = 2 * 2**30
MOST_FILES = 200_000
_ENVIRONMENT = "pyvenv.cfg"


@dataclass
class Overlay:
    """`linked` are paths below `origin` that become links to the original instead of copies."""

    origin: Path
    tree: Path
    linked: Sequence[str] = ()
    _changes: dict[str, bytes] = field(default_factory=dict)
    _state: dict[str, tuple[int, int]] = field(default_factory=dict)
    _room: int = MOST_BYTES

    def copy(self) -> None:
        """Raises PerflintError for a tree that is too large or cannot be read."""
        try:
            self._copy(self.origin, self.tree)
        except OSError as error:
            raise PerflintError(f"{self.origin} cannot be copied: {error}") from error
        self._state = dict(_files(self.tree))

    def change(self, changes: Mapping[str, bytes]) -> None:
        """Let exactly `changes` (content by path relative to the tree) differ from the original."""
        before, self._changes = self._changes, dict(changes)
        for path in before:
            if path not in changes:
                self._renew(path)
        for path, content in changes.items():
            file = self.tree / path
            file.write_bytes(content)
            self._state[path] = _stamp(file)

    def restore(self) -> None:
        """Undo what a run of the workload wrote into the copy, so that the next one finds what the first found."""
        found = dict(_files(self.tree))
        for path in found.keys() - self._state.keys():
            (self.tree / path).unlink(missing_ok=True)
        for path, stamp in self._state.items():
            if found.get(path) != stamp:
                self._renew(path)
        self._remove_new_folders()

    def _renew(self, path: str) -> None:
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path in self._changes:
            file.write_bytes(self._changes[path])
        else:
            file.unlink(missing_ok=True)
            shutil.copy2(self.origin / path, file)
        self._state[path] = _stamp(file)

    def _remove_new_folders(self) -> None:
        for folder, names, files in os.walk(self.tree, topdown=False):
            inside = Path(folder).relative_to(self.tree)
            if not names and not files and not (self.origin / inside).is_dir():
                Path(folder).rmdir()

    def _copy(self, source: Path, target: Path) -> None:
        target.mkdir(parents=True)
        with os.scandir(source) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                self._copy_entry(entry, target / entry.name)

    def _copy_entry(self, entry: os.DirEntry[str], target: Path) -> None:
        path = Path(entry.path)
        if path.relative_to(self.origin).as_posix() in {name.rstrip("/") for name in self.linked}:
            target.symlink_to(path.absolute())
        elif entry.is_symlink():
            target.symlink_to(self._link_target(path))
        elif entry.is_dir():
            if (path / _ENVIRONMENT).exists():
                target.symlink_to(path.absolute())  # a virtual environment, which the command may name
            elif entry.name not in DEFAULT_EXCLUDES:
                self._copy(path, target)
        elif entry.is_file():
            self._take_room(entry.stat().st_size)
            shutil.copy2(path, target)

    def _link_target(self, link: Path) -> Path:
        """Links within the tree stay within the copy."""
        target = link.readlink()
        if not target.is_absolute():
            inside = os.path.normpath(link.parent / target)
            return target if Path(inside).is_relative_to(self.origin) else Path(inside)
        return self.tree / target.relative_to(self.origin) if target.is_relative_to(self.origin) else target

    def _take_room(self, size: int) -> None:
        self._room -= size + MOST_BYTES // MOST_FILES
        if self._room < 0:
            raise PerflintError(
                f"{self.origin} is too large to be copied; name its folders of data, which will be links to the "
                "originals, under link = [...] in [tool.perflint.verify]"
            )


def _files(tree: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Files by path relative to `tree`, with what tells whether they changed. Links are not followed."""
    for folder, _, names in os.walk(tree):
        for name in names:
            file = Path(folder) / name
            if not file.is_symlink():
                yield file.relative_to(tree).as_posix(), _stamp(file)


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns
