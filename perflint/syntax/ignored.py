"""`.gitignore` files: which paths they leave out. Needs no git. As for git, they say nothing of what it tracks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perflint.syntax.tracked import tracked_at
from perflint.system.globs import spec_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LARGEST = 10_000_000


class IgnoreFile(NamedTuple):
    """The patterns of one file about what lies below `folder` (absolute); `is_git` for one of git's own. `lines` are
    what they are written as.
    """

    folder: str
    spec: GitIgnoreSpec
    is_git: bool = False
    lines: tuple[str, ...] = ()

    @classmethod
    def of_lines(cls, folder: str, lines: Iterable[str]) -> IgnoreFile:
        """What the lines of an ignore file say of paths below `folder`."""
        kept = []
        for line in lines:
            try:
                spec_of([line])
            except (ValueError, re.error):  # git passes over what it cannot read, too
                continue
            kept.append(line)
        return cls(folder, spec_of(kept), lines=tuple(kept))

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """True for ignored, False for kept on purpose (`!pattern`), None when no pattern matches."""
        if not path.startswith(self.folder):
            return None
        relative = path[len(self.folder) :].strip(os.sep).replace(os.sep, "/")
        if not relative:
            return None
        return self.spec.check_file(f"{relative}/" if is_folder else relative).include


def is_ignored(files: tuple[IgnoreFile, ...], path: str, *, is_folder: bool) -> bool:
    """Whether `path` is left out; `files` from the innermost folder outwards, the first that knows decides."""
    for one in files:
        verdict = one.verdict(path, is_folder=is_folder)
        if verdict is not None:
            return verdict and not (one.is_git and _is_tracked(path, is_folder=is_folder))
    return False


def _is_tracked(path: str, *, is_folder: bool) -> bool:
    tracked = tracked_at(Path(path).parent)
    return tracked is not None and tracked.holds(path.rstrip(os.sep), is_folder=is_folder)


def read_ignore_file(folder: str, name: str = ".gitignore") -> IgnoreFile | None:
    """The ignore file of `folder`, None when there is none or it cannot be read."""
    file = Path(folder) / name
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:  # a link may lead to a device without end
            return None
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return IgnoreFile.of_lines(folder, text.splitlines())._replace(is_git=True)


def ignore_files_above(folder: Path) -> tuple[IgnoreFile, ...]:
    """Ignore files of the folders above `folder` up to the git root, innermost first. Empty outside a repository."""
    git_root = next((one for one in (folder, *folder.parents) if os.path.exists(one / ".git")), None)  # noqa: PTH110
    if git_root is None:
        return ()
    above = [one for one in folder.parents if one == git_root or git_root in one.parents]
    found = [read_ignore_file(str(one)) for one in above]
    excluded = read_ignore_file(str(git_root), os.path.join(".git", "info", "exclude"))  # noqa: PTH118
    return tuple(one for one in [*found, excluded] if one is not None)
