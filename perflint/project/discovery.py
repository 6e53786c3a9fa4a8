"""Which files are reported and which are analysed.

The paths given say what is reported; the whole project around them is what is analysed, so that a single file still
knows its callers. Reads folders and `.gitignore` files, no source. Everything is sorted, so the result depends on
the tree alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from perflint.errors import PerflintError
from perflint.finding import Problem
from perflint.project.configured import CONFIGURED
from perflint.project.settings import CONFIGURATIONS, Settings, settings_above, settings_in
from perflint.syntax.beside import MODULES, NOTHING, Beside, last_parts, submodules_in
from perflint.syntax.ignored import IgnoreFile, ignore_files_above, is_ignored, read_ignore_file

#: Folders never walked into, whatever `.gitignore` says, unless they are given by name.
DEFAULT_EXCLUDES = frozenset(
    (
        ".bzr .direnv .eggs .git .git-rewrite .hg .ipynb_checkpoints .mypy_cache .nox .perflint_cache .pants.d .pixi "
        ".pyenv .pytest_cache .pytype .ruff_cache .svn .tox .venv .vscode __pycache__ __pypackages__ buck-out "
        "node_modules site-packages venv"
    ).split()
)
#: Build outputs by name, but only where they are no package: `engine/dist/__init__.py` is somebody's code.
OUTPUT_FOLDERS = frozenset({"build", "_build", "dist", "env"})
SUFFIXES = (".py", ".pyw", ".ipynb")
#: How the names begin of the files in which macOS keeps attributes on disks that have none (AppleDouble): no source.
_ATTRIBUTES = "._"


class FoundFile(NamedTuple):
    """`display` is relative to the working directory with forward slashes; `file` is absolute."""

    display: str
    file: Path


@dataclass(frozen=True)
class Discovery:
    """`analysed` holds every file of `reported`. `root` is None where the paths lie in no project. `left_out` are files
    with the name of a source file that hold none.
    """

    root: Path | None
    reported: tuple[FoundFile, ...]
    analysed: tuple[FoundFile, ...]
    problems: tuple[Problem, ...] = ()
    #: What says which parts of the project are used, and is no code.
    configured: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    #: What else there is to import.
    beside: Beside = NOTHING

    @cached_property
    def _files(self) -> dict[str, Path]:
        return {one.display: one.file for one in self.analysed}

    def file(self, display: str) -> Path:
        """Where the analysed file shown as `display` lies. Raises KeyError for another."""
        return self._files[display]


def project_root(paths: Sequence[Path]) -> Path | None:
    """The folder of the project that all of `paths` (absolute) are of, None where nothing marks one.

    That is the git root, so that the packages of a repository know their callers in one another. Without git, or where
    git ignores the paths, it is the outermost folder with a configuration file; a home folder counts for its own files.
    """
    folder = common_folder(paths)
    marked: list[Path] = []
    for parent in (folder, *folder.parents):
        # `os.path`: in a folder that may not be looked into, pathlib raises where there is simply nothing to see.
        if os.path.exists(parent / ".git") and not _is_foreign(paths, parent):  # noqa: PTH110
            return parent
        if any(os.path.exists(parent / name) for name in CONFIGURATIONS):  # noqa: PTH110
            marked.append(parent)
    home = _home()
    inner = [parent for parent in marked if home is None or parent not in (home, *home.parents)]
    return inner[-1] if inner else marked[0] if marked else None


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a user without one
        return None


def _is_foreign(paths: Sequence[Path], git_root: Path) -> bool:
    """Whether a repository ignores all of `paths`, as one that keeps the settings in somebody's home does."""
    return bool(paths) and all(
        any(
            is_ignored(ignore_files_above(above), os.fspath(above), is_folder=above.is_dir())
            for above in (path, *path.parents)
            if above != git_root and git_root in above.parents
        )
        for path in paths
    )


def common_folder(paths: Sequence[Path]) -> Path:
    """The deepest folder that holds all of `paths`, a folder among them counting as itself."""
    paths = [_absolute(path) for path in paths]  # what is left of a `..` has other folders above it
    folders = [path if os.path.isdir(path) else path.parent for path in paths] or [Path.cwd()]  # noqa: PTH112
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:  # different drives
        return folders[0]


def discover(
    paths: Sequence[str | Path], settings: Settings, *, stdin: str | None = None, force_exclude: bool = False
) -> Discovery:
    """Find the files of `paths` and of the project around them.

    With `force_exclude`, what the configuration or git leaves out is left out although it is given by name. `stdin` is
    the name of a file whose content comes from elsewhere; it is reported and need not exist.
    Raises PerflintError for a path that does not exist.
    """
    given = [_absolute(path) for path in paths]
    for original, path in zip(paths, given):
        try:
            os.lstat(path)
        except PermissionError as error:
            raise PerflintError(f"{original}: cannot be read: {error.strerror}") from error
        except (OSError, ValueError):
            raise PerflintError(f"no such file or directory: {original}") from None
    virtual = [_absolute(stdin)] if stdin is not None else []
    root = project_root(given + virtual)
    walk = _Walk(settings)
    reported: dict[str, Path] = {}
    for path in given:
        if force_exclude and walk.leaves_out(path):
            continue
        if path.is_dir():
            reported.update(walk.files(path))
        else:
            reported[display_path(path)] = path
    reported.update((display_path(path), path) for path in virtual)
    # What cannot be read around the paths is no fault of theirs, as it is none of files there.
    problems, left_out = tuple(walk.problems()), tuple(sorted(walk.left_out))
    analysed = dict(reported)
    if root is not None and root not in given:
        analysed.update(walk.files(root))
    configured = tuple(sorted(walk.configured))
    beside = walk.beside(sorted(analysed))
    return Discovery(root, _sorted(reported), _sorted(analysed), problems, configured, left_out, beside)


def _sorted(files: dict[str, Path]) -> tuple[FoundFile, ...]:
    return tuple(FoundFile(display, files[display]) for display in sorted(files))


def _absolute(path: str | Path) -> Path:
    """Absolute and without `..`, links kept: the user's own name for the file is the one that is shown."""
    if not os.fspath(path):  # as of a variable of a shell that is not set: `abspath` takes it for all there is here
        raise PerflintError("an empty path; the working directory is '.'")
    try:
        return Path(os.path.abspath(path))  # noqa: PTH100 - pathlib has no lexical normalisation
    except ValueError as error:  # a null character
        raise PerflintError(f"not a path: {path!r}") from error


def display_path(path: Path) -> str:
    """Relative to the working directory with forward slashes; absolute where there is no relative way."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path.as_posix()
    return relative.replace(os.sep, "/")


class _Walk:
    """Walks folders and gathers what went wrong on the way."""

    def __init__(self, settings: Settings) -> None:
        self._problems: dict[str, Problem] = {}
        self._settings = settings
        self.configured: set[str] = set()
        #: Files of attributes beside source files, as they are shown.
        self.left_out: set[str] = set()
        self._walked: list[str] = []
        self._there: set[str] = set()
        self._ignored: set[str] = set()

    def beside(self, files: Iterable[str]) -> Beside:
        """What else there is to import below what was walked, which has these files."""
        return Beside(
            tuple(sorted(self._walked)), tuple(files), tuple(sorted(self._there)), tuple(sorted(self._ignored))
        )

    def problems(self) -> Iterator[Problem]:
        for path in sorted(self._problems):
            yield self._problems[path]

    def files(self, top: Path) -> Iterable[tuple[str, Path]]:
        """Display and path of every Python file below `top`."""
        ignores = (*ignore_files_above(top), *self._excluded_above(top))
        # A folder given by name is read although something above excludes it: those patterns say nothing here.
        ignores = tuple(one for one in ignores if not is_ignored((one,), f"{top}{os.sep}", is_folder=True))
        pending = [(str(top), ignores)]
        real_top = os.path.realpath(top)
        self._walked.append(display_path(top))
        for one in ignores:
            self._ignored |= last_parts(one.lines)
        while pending:
            folder, ignores = pending.pop()
            entries = self._entries(folder)
            if any(entry.name == ".gitignore" for entry in entries):
                own = read_ignore_file(folder)
                ignores = (own, *ignores) if own is not None else ignores
                self._ignored.update(last_parts(own.lines) if own is not None else ())
            if folder != str(top) and any(entry.name in CONFIGURATIONS for entry in entries):
                ignores = (*self._excluded_in(folder), *ignores)
            prefix = _prefix(folder)
            folders, has_source = [], False
            for entry in entries:
                if self._is_folder(entry):
                    if self._enters(entry, ignores):
                        pending.append((entry.path, ignores))
                        folders.append(prefix + entry.name)
                    elif entry.name.isidentifier() and entry.name not in DEFAULT_EXCLUDES:
                        self._there.add(prefix + entry.name)
                elif entry.name.endswith(SUFFIXES) and self._reads(entry, real_top, ignores):
                    if entry.name.startswith(_ATTRIBUTES):
                        self.left_out.add(prefix + entry.name)
                    else:
                        has_source = True
                        yield prefix + entry.name, Path(entry.path)
                elif entry.name.endswith(CONFIGURED) and self._reads(entry, real_top, ignores):
                    self.configured.add(entry.path)
                elif entry.name.endswith(MODULES):
                    self._there.add(prefix + entry.name.partition(".")[0])
                elif entry.name == ".gitmodules":
                    self._there.update(prefix + path for path in _submodules(entry.path))
            if has_source:  # of data alone there may be thousands
                self._there.update(folders)

    def leaves_out(self, path: Path) -> bool:
        """Whether a walk from further up would not come to a path."""
        for above in (path, *path.parents):
            folder = above.parent
            ignores = (*ignore_files_above(folder), *self._excluded_above(folder))
            own = read_ignore_file(str(folder))
            ignores = (own, *ignores) if own is not None else ignores
            if is_ignored(ignores, str(above), is_folder=above.is_dir()):
                return True
            if os.path.exists(above / ".git"):  # noqa: PTH110
                break
        return False

    def _excluded_above(self, folder: Path) -> Iterator[IgnoreFile]:
        """What the configurations at and above a folder exclude, the nearest first; or the one that governs all."""
        ours = self._settings
        above = [] if ours.sole else [one for one in settings_above(folder) if one.file != ours.file]
        for one in (ours, *above):
            if one.exclude and one.root is not None:
                yield IgnoreFile.of_lines(str(one.root), one.exclude)

    def _excluded_in(self, folder: str) -> Iterator[IgnoreFile]:
        own = None if self._settings.sole else settings_in(Path(folder))
        if own is not None and own.exclude and own.file != self._settings.file:
            yield IgnoreFile.of_lines(folder, own.exclude)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except OSError as error:
            shown = display_path(Path(folder))
            self._problems[shown] = Problem(shown, f"cannot be read: {error.strerror or error}")
            return []

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError as error:  # a link to itself
            shown = display_path(Path(entry.path))
            self._problems[shown] = Problem(shown, f"cannot be read: {error.strerror or error}")
            return False

    def _enters(self, entry: os.DirEntry[str], ignores: tuple[IgnoreFile, ...]) -> bool:
        if entry.name in DEFAULT_EXCLUDES or entry.name.endswith(".egg-info"):
            return False
        if ignores and is_ignored(ignores, entry.path, is_folder=True):
            return False
        if entry.is_symlink():
            # Where the target is part of the project it is read under its own name; where it is not, it is not ours.
            self._note_loop(entry)
            return False
        if entry.name in OUTPUT_FOLDERS:
            return os.path.exists(os.path.join(entry.path, "__init__.py"))  # noqa: PTH110, PTH118 - hot
        return not os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))  # noqa: PTH110, PTH118 - hot

    def _note_loop(self, entry: os.DirEntry[str]) -> None:
        target = os.path.realpath(entry.path)
        folder = os.path.realpath(os.path.dirname(entry.path))  # noqa: PTH120 - as the lines around it
        if os.path.commonpath([target, folder]) == target:
            shown = display_path(Path(entry.path))
            self._problems[shown] = Problem(shown, f"directory loop: leads back to {display_path(Path(target))}")

    @staticmethod
    def _reads(entry: os.DirEntry[str], real_top: str, ignores: tuple[IgnoreFile, ...]) -> bool:
        if entry.is_symlink():
            # A link inside the walked folder is read under its own name; a broken one is no file.
            target = os.path.realpath(entry.path)
            if target.startswith(real_top + os.sep) or not os.path.isfile(target):  # noqa: PTH113
                return False
        elif not entry.is_file():
            return False
        return not (ignores and is_ignored(ignores, entry.path, is_folder=False))


def _submodules(path: str) -> list[str]:
    try:
        return submodules_in(Path(path).read_text("utf-8", "replace"))
    except OSError:
        return []


def _prefix(folder: str) -> str:
    shown = display_path(Path(folder))
    return "" if shown == "." else f"{shown}/"
