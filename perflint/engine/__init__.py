"""The pipeline: files -> summaries -> program -> findings. It reads files and runs rules, and prints nothing."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from perflint.analysis.program import Program
from perflint.engine.known import known_for
from perflint.engine.options import Memory, Options
from perflint.engine.parallel import WORTH_IT, can_fork
from perflint.engine.spreading import Linking, spread
from perflint.engine.texts import Texts
from perflint.engine.worker import (
    Inspected,
    Surveyed,
    Worker,
    gc_paused,
    keep_heap,
    not_inspected,
    not_surveyed,
    room_to_nest,
    with_room,
)
from perflint.errors import PerflintError
from perflint.finding import Problem, Report, Silenced
from perflint.ir.sharing import Sharing
from perflint.project.discovery import Discovery, FoundFile
from perflint.rule_api.behind_waits import settled
from perflint.syntax.cells import Placing

if TYPE_CHECKING:
    from perflint.analysis.frequency.reach import Reach
    from perflint.engine.crewed import Crewed
    from perflint.ir.summary import Summary

#: Of fewer files, the summaries are small enough as they are.
_MANY_FILES = 1000
#: Each has all summaries for itself, and links by itself what cannot be shared.
_MOST_MEMBERS = 8
_STORED_AT_ONCE = 16


def check(discovery: Discovery, options: Options) -> Report:
    """Check the reported files of a project, knowing all analysed ones."""
    return check_overlay(discovery, options, {})


@with_room
def check_overlay(discovery: Discovery, options: Options, overlay: Mapping[str, str]) -> Report:
    """As `check`, with texts by display path that stand in for what is on disk."""
    keep_heap()
    with gc_paused(ends=options.ends), room_to_nest():
        run = Run(discovery, options, overlay)
        report = run.report()
        run.worker.leave(run)
        return report


def explain_heat(
    discovery: Discovery,
    options: Options,
    path: str,
    line: int,
    cell: int | None = None,
    overlay: Mapping[str, str] | None = None,
) -> str:
    """Why a line, in a notebook one of a cell, is as hot as it is, as text.

    Raises PerflintError when the file or cell is not part of the program.
    """
    from perflint.analysis.frequency.explain import explain_heat as explain

    with gc_paused(), room_to_nest():
        run = Run(discovery, options, overlay or {})
        try:
            program = run.program()
        finally:
            run.known.close()
    if path not in program.summaries:
        raise PerflintError(f"--explain-heat: {path} is not a file of this project that can be read")
    placing = run.placing()
    words = explain(program, path, placing.module_line(path, line, cell))
    return placing.words("\n".join(words), path, cell)


def reach_of(discovery: Discovery, options: Options) -> Reach:
    """How much of the program is reached, with what `check` has read of it before."""
    from perflint.analysis.frequency.reach import reach

    with gc_paused(), room_to_nest():
        run = Run(discovery, options, {})
        try:
            return reach(run.program())
        finally:
            run.known.close()


class Run:
    """One run, from files to a report."""

    def __init__(self, discovery: Discovery, options: Options, overlay: Mapping[str, str]) -> None:
        self.discovery = discovery
        self.options = options
        self.texts = Texts(discovery.reported, options.stdin, overlay)
        self.known = known_for(discovery, options, self.texts)
        self.worker = Worker(options, self.texts)
        #: What is wrong with the files that were surveyed.
        self._faults: dict[str, tuple[Problem, ...]] = {}
        self._reported = frozenset(file.display for file in discovery.reported)
        self._done = 0
        self._total = 0

    def report(self) -> Report:
        try:
            known = self.known.report()
            return known if known is not None else self._fresh_report()
        finally:
            self.known.close()

    def program(self) -> Program:
        """The whole program, linked."""
        return self._linked(self._begin())

    def _begin(self) -> dict[str, Summary]:
        """The summaries that need not be made."""
        self._total = len(self.discovery.analysed) + len(self.discovery.reported)
        if len(self.discovery.analysed) > _MANY_FILES:
            self.worker.sharing = Sharing()
        summaries = self.known.summaries(self.worker.sharing)
        self._progress(len(summaries))
        return summaries

    def _linked(self, summaries: dict[str, Summary], *, apart: bool = False) -> Program:
        """Survey every analysed file that has no summary yet, and link them all."""
        unknown = [file for file in self.discovery.analysed if file.display not in summaries]
        for files, parts in spread(self.worker, self.worker.survey_all, unknown, not_surveyed, apart=apart):
            for file, part in zip(files, parts):
                self._take_in(file, part)
                if part.summary is not None:
                    summaries[file.display] = part.summary
                    if not part.problems:
                        self.known.add_summary(file, part.summary)
                self._progress(1)  # which may end the run: what was read so far is known to the next one
        self.known.keep_summaries()
        self.worker.sharing = None
        torches = self.known.torches
        return Program(
            summaries,
            *torches.whole,
            self._helpers(summaries),
            torch_in=torches.parts,
            configured=self.known.configured,
            beside=self.discovery.beside,
        )

    def _helpers(self, summaries: Mapping[str, Summary]) -> Linking | None:
        """Processes that help with the link, where a project is large enough for it."""
        is_worth_it = len(summaries) > _MANY_FILES and self.options.jobs > 1 and can_fork()
        return Linking(self.options.jobs) if is_worth_it and self.options.executor is None else None

    def _take_in(self, file: FoundFile, part: Surveyed) -> None:
        if part.moved:
            self.known.forget(file)
        self._faults[file.display] = part.problems

    def found(self, path: str) -> FoundFile | None:
        """An analysed file by the path that it is shown under."""
        try:
            return FoundFile(path, self.discovery.file(path))
        except KeyError:
            return None

    def placing(self) -> Placing:
        return Placing(lambda path: self.texts.source(FoundFile(path, self.discovery.file(path))))

    def _fresh_report(self) -> Report:
        summaries = self._begin()
        crew = self._crew(summaries)
        parts = self._crewed(crew, summaries) if crew is not None else {}
        if crew is None or not crew.complete:
            # What a process has died of must not come here.
            program = self._linked(summaries, apart=crew is not None)
            gc.freeze()
            self._inspect(program, parts, apart=crew is not None)
        total = Inspected()
        files = [file for file in self.discovery.reported if file.display in parts]
        for file in files:
            total.add(parts[file.display])
        findings = settled(total.findings, (one.finding for one in total.silenced))
        self.known.keep_inspected(files, total.entries)
        placing = self.placing()
        # A file that is only read for what it calls is its owner's business, not this run's.
        faults = [fault for path, found in self._faults.items() if path in self._reported for fault in found]
        problems = [*self.discovery.problems, *faults, *map(placing.problem, total.problems)]
        report = Report(
            findings=tuple(sorted(map(placing.finding, findings), key=lambda item: item.sort_key)),
            errors=tuple(sorted(problems, key=lambda item: (item.path, item.line or 0, item.message))),
            files=len({file.display for file in self.discovery.reported}),
            texts=total.texts,
            silenced=tuple(Silenced(placing.finding(one.finding), one.line, one.reason) for one in total.silenced),
        )
        if not report.errors and not total.moved:
            self.known.keep_report(report)
        return report

    def _crew(self, summaries: Mapping[str, Summary]) -> Crewed | None:
        """A crew, where most of a small project's files are to be read and there are processors for it."""
        files, options = self.discovery.analysed, self.options
        unknown = len(files) - len(summaries)
        suits = unknown >= WORTH_IT and 2 * unknown >= len(files) <= _MANY_FILES and self.texts.trees.keeps_all
        if options.jobs <= 1 or not suits or not can_fork() or options.executor is not None or self.texts.overlay:
            return None
        from perflint.engine.crewed import Crewed

        size = min(options.jobs, _MOST_MEMBERS, 2 * unknown // WORTH_IT)
        asks = self.known.keeps_inspected
        return Crewed(
            self.worker,
            size,
            files,
            self._reported,
            summaries,
            self.known.torches,
            self.known.configured,
            self.discovery.beside,
            asks=asks,
        )

    def _crewed(self, crew: Crewed, summaries: dict[str, Summary]) -> dict[str, Inspected]:
        """What a crew finds, by file. If it did not do everything, `summaries` has more of them afterwards."""
        parts: dict[str, Inspected] = {}
        if self.known.wants_summaries:
            crew.store = self._store
        with contextlib.closing(crew.parts()) as found:
            for file, part in found:
                if isinstance(part, Inspected):
                    parts[file.display] = part
                else:
                    self._take_in(file, part)
                self._progress(1)
        if not crew.complete:
            summaries.update(crew.summaries())
        return parts

    def _store(self, summaries: Iterator[tuple[str, Summary]]) -> Iterator[None]:
        """Keep the summaries of files that were read without a fault, a few at a time."""
        for number, (path, summary) in enumerate(summaries):
            if not self._faults.get(path):
                self.known.add_summary(FoundFile(path, self.discovery.file(path)), summary)
            if number % _STORED_AT_ONCE == 0:
                self.known.keep_summaries()
                yield
        self.known.keep_summaries()

    def _inspect(self, program: Program, parts: dict[str, Inspected], *, apart: bool) -> None:
        """Inspect the reported files that are not in `parts`, or say again what was found in them, into `parts`."""
        files = [
            file for file in self.discovery.reported if file.display in program.summaries and file.display not in parts
        ]
        worker = self.worker
        worker.ask_of(program, self.found)
        worker.reuse = reuse = self.known.reuse(program)
        if reuse is not None:
            known = self.known.inspected(reuse, files)
            parts.update(known)
            self._progress(len(known))
        unknown = [file for file in files if file.display not in parts]
        for chunk, inspected in spread(worker, worker.inspect_all, unknown, not_inspected, program, apart=apart):
            parts.update((file.display, part) for file, part in zip(chunk, inspected))
            self._progress(len(chunk))

    def _progress(self, files: int) -> None:
        self._done = min(self._done + files, self._total)  # what a lost process had done is done again
        if self.options.progress is not None:
            # Most files are worked on twice, and each is one file to whoever watches.
            whole = len(self.discovery.analysed)
            self.options.progress(self._done * whole // max(self._total, 1), whole)


__all__ = ["Memory", "Options", "Run", "check", "check_overlay", "explain_heat"]
