"""Which configuration governs which file: the nearest at or above it, however many are checked at once.

What a run reports of a file then depends on the file alone, not on the paths that were given.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perflint.project.requirements import Torch, torch_at
from perflint.project.selection import Selection
from perflint.project.settings import Settings, settings_in
from perflint.torch_model import versions

if TYPE_CHECKING:
    from perflint.project.discovery import Discovery
    from perflint.rule_api.rule import Rule

Version = tuple[int, int]


class Governed(NamedTuple):
    """What holds for a file: its settings, the `codes` of the rules that run, and whether these are all there are."""

    settings: Settings
    codes: frozenset[str]
    everything: bool

    @property
    def stamp(self) -> str:
        """The same for the same, in every process."""
        return f"{self.settings} {sorted(self.codes)} {self.everything}"


def governed(discovery: Discovery, selection: Selection, known: Sequence[type[Rule]]) -> dict[Path, Governed]:
    """By folder with reported files, what holds there, where that is another configuration than that of `selection`.

    The command line goes before all of them. Raises SettingsError.
    """
    base = selection.settings
    if base.sole:
        return {}
    nearest = _Nearest()
    made: dict[Path | None, Governed] = {}
    found: dict[Path, Governed] = {}
    for folder in {file.file.parent for file in discovery.reported}:
        own = nearest.at(folder)
        if own.file == base.file:
            continue
        if own.file not in made:
            over = {name: getattr(base, name) for name in base.decided}
            settings = dataclasses.replace(own, decided=base.decided, **over)
            codes = frozenset(rule.code for rule in selection._replace(settings=settings).resolve(known))
            made[own.file] = Governed(settings, codes, everything=len(codes) == len(known))
        found[folder] = made[own.file]
    return found


class _Nearest:
    """The nearest configuration of folders, each looked for once."""

    def __init__(self) -> None:
        self._known: dict[Path, Settings] = {}

    def at(self, folder: Path) -> Settings:
        found = self._known.get(folder)
        if found is None:
            found = settings_in(folder)
            if found is None:
                ends = os.path.exists(folder / ".git") or folder.parent == folder  # noqa: PTH110
                found = Settings() if ends else self.at(folder.parent)
            self._known[folder] = found
        return found


class Torches(NamedTuple):
    """The torch of each part of a project: of the whole, and of the folders where it is another one.

    Folders are as files are shown: relative to the working directory, "" for that itself.
    """

    whole: tuple[Version | None, Version | None] = (None, None)
    parts: Mapping[str, tuple[Version | None, Version | None]] = {}


def torches(discovery: Discovery, settings: Settings, nested: Mapping[Path, Governed]) -> Torches:
    """The lowest and the newest torch of the project and of the folders with reported files.

    What a configuration says goes first, then the requirements of the nearest folder that has any.
    """
    required = _Required(discovery.root)
    whole = _torch_of(settings, discovery.root, required)
    parts: dict[str, tuple[Version | None, Version | None]] = {}
    for shown, file in _folders(discovery):
        own = nested[file].settings if file in nested else settings
        found = _torch_of(own, file, required)
        if found != whole:
            parts[shown] = found
    return Torches(whole, parts)


def _folders(discovery: Discovery) -> Iterable[tuple[str, Path]]:
    return {(one.display.rpartition("/")[0], one.file.parent) for one in discovery.reported}


def _torch_of(settings: Settings, folder: Path | None, required: _Required) -> tuple[Version | None, Version | None]:
    if settings.target_torch is not None:
        target = versions.parse(settings.target_torch)
        return target, target
    found = required.at(folder) if folder is not None else Torch()
    return found.version, found.newest


class _Required:
    """The torch that the nearest folder requires, up to the root of the project; each is read once."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._known: dict[Path, Torch] = {}

    def at(self, folder: Path) -> Torch:
        found = self._known.get(folder)
        if found is None:
            found = torch_at(folder)
            if found == Torch() and self._root is not None and self._root in folder.parents:
                found = self.at(folder.parent)
            self._known[folder] = found
        return found


def torch_required(folder: Path, root: Path | None) -> Torch:
    """What the files of `folder` say, or else of the nearest folder above it within the project at `root`."""
    return _Required(root).at(folder)
