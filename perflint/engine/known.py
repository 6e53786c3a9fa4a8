"""What is known before a run begins: of a process that checks again and again, and of the cache of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perflint.engine.governing import Torches, torches
from perflint.ir.summary import Summary
from perflint.project.configured import Configured

if TYPE_CHECKING:
    from perflint.analysis.program import Program
    from perflint.engine.options import Options
    from perflint.engine.reuse import Reuse
    from perflint.engine.texts import Texts
    from perflint.engine.worker import Inspected
    from perflint.finding import Report
    from perflint.ir.sharing import Sharing
    from perflint.project.discovery import Discovery, FoundFile


def known_for(discovery: Discovery, options: Options, texts: Texts) -> Known:
    if not options.cache:
        return Known(discovery, options, texts)
    # Imported late: hashes, databases and what is kept in them take longer to import than a small file to check.
    from perflint.engine.kept import Kept

    return Kept(discovery, options, texts)


class Known:
    """What a run without a cache knows: the summaries in memory, where there is one. `Kept` knows more."""

    def __init__(self, discovery: Discovery, options: Options, texts: Texts) -> None:
        self.discovery = discovery
        self.options = options
        self.texts = texts
        self._states: dict[str, object] = {}

    def close(self) -> None:
        """Nothing more will be asked or kept."""

    # Whole reports.

    def report(self) -> Report | None:
        """The report of an earlier run that read just the same, None where there is none."""
        return None

    def keep_report(self, report: Report) -> None:
        """Keep what was found, for a run that reads just the same."""

    # Summaries.

    def summaries(self, _sharing: Sharing | None) -> dict[str, Summary]:
        """By display path, the summaries of analysed files that need not be surveyed."""
        found: dict[str, Summary] = {}
        memory = self.options.memory
        if memory is not None:
            self._states = self.texts.states(self.discovery.analysed)
            for file in self.discovery.analysed:
                summary = memory.get(file.file, self._states.get(file.display))
                if summary is not None:
                    found[file.display] = summary
        return found

    def add_summary(self, file: FoundFile, summary: Summary) -> None:
        """Take in what the survey of a file gave. `keep_summaries` writes it."""
        memory = self.options.memory
        if memory is not None and file.display in self._states:
            memory.put(file.file, self._states[file.display], summary)

    @property
    def wants_summaries(self) -> bool:
        """Whether what `add_summary` takes in is of any use."""
        return self.options.memory is not None

    @property
    def keeps_inspected(self) -> bool:
        """Whether what was found in single files is kept."""
        return False

    def keep_summaries(self) -> None:
        """Write what was taken in."""

    def forget(self, file: FoundFile) -> None:
        """The file is not what it was when the run began: nothing that follows from it is to be kept."""

    # Findings of single files.

    def reuse(self, _program: Program) -> Reuse | None:
        """What can be said again of single files, and be kept of them; None where nothing is."""
        return None

    def inspected(self, _reuse: Reuse, _files: Sequence[FoundFile]) -> dict[str, Inspected]:
        """What an earlier run found in files that would be inspected just so again."""
        return {}

    def keep_inspected(self, files: Sequence[FoundFile], entries: Mapping[str, dict[str, Any]]) -> None:
        """Keep what was found in files, and all that was asked about them, for `inspected`."""

    # What answers depend on.

    @cached_property
    def configured(self) -> Configured:
        """What the configurations of the project name."""
        return Configured(self.discovery.configured)

    @cached_property
    def torches(self) -> Torches:
        """The torch that advice is for, in each part of the project."""
        return torches(self.discovery, self.options.settings, self.options.nested)
