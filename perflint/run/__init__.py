"""The pipeline: files -> summaries -> program -> findings. It reads files and runs rules, and prints nothing."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import TYPE_CHECKING

from perflint.discovery import Discovery, FoundFile
from perflint.errors import PerflintError
from perflint.facts.sharing import Sharing
from perflint.finding import Problem, Report, Silenced
from perflint.inspection import Inspector
from perflint.placing import Placing
from perflint.program.program import Program
from perflint.run.known import Known
from perflint.run.options import Memory, Options
from perflint.run.spreading import spread
from perflint.run.texts import Texts
from perflint.run.worker import Inspected, Worker, gc_paused, not_inspected, not_surveyed

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Of fewer files, the summaries are small enough as they are.
_MANY_FILES = 1000


def check(discovery: Discovery, options: Options) -> Report:
    """Check the reported files of a project, knowing all analysed ones."""
    return check_overlay(discovery, options, {})


def check_overlay(discovery: Discovery, options: Options, overlay: Mapping[str, str]) -> Report:
    """As `check`, with texts by display path that stand in for what is on disk."""
    with gc_paused():
        return Run(discovery, options, overlay).report()


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
    from perflint.program.explain import explain_heat as explain

    with gc_paused():
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


class Run:
    """One run, from files to a report."""

    def __init__(self, discovery: Discovery, options: Options, overlay: Mapping[str, str]) -> None:
        self.discovery = discovery
        self.options = options
        self.texts = Texts(discovery.reported, options.stdin, overlay)
        self.known = Known(discovery, options, self.texts)
        self.worker = Worker(options, self.texts)
        self.problems: list[Problem] = list(discovery.problems)
        self._done = 0
        self._total = 0

    def report(self) -> Report:
        try:
            known = self.known.report()
            return known if known is not None else self._fresh_report()
        finally:
            self.known.close()

    def program(self) -> Program:
        """Survey every analysed file that neither memory nor cache know, and link the summaries."""
        self._total = len(self.discovery.analysed) + len(self.discovery.reported)
        if len(self.discovery.analysed) > _MANY_FILES:
            self.worker.sharing = Sharing()
        summaries = self.known.summaries(self.worker.sharing)
        unknown = [file for file in self.discovery.analysed if file.display not in summaries]
        self._progress(len(summaries))
        reported = {file.display for file in self.discovery.reported}
        for files, parts in spread(self.worker, self.worker.survey_all, unknown, not_surveyed):
            for file, part in zip(files, parts):
                if part.moved:
                    self.known.forget(file)
                if part.summary is not None:
                    summaries[file.display] = part.summary
                    if not part.problems:
                        self.known.add_summary(file, part.summary)
                # A file that is only read for what it calls is its owner's business, not this run's.
                if file.display in reported:
                    self.problems += part.problems
            self._progress(len(files))
        self.known.keep_summaries()
        self.worker.sharing = None
        return Program(summaries, self.known.torch_version(), self.known.pinned_torch())

    def placing(self) -> Placing:
        return Placing(lambda path: self.texts.source(FoundFile(path, self.discovery.file(path))))

    def _fresh_report(self) -> Report:
        program = self.program()
        gc.freeze()
        files = [file for file in self.discovery.reported if file.display in program.summaries]
        total = self._inspected(program, files)
        placing = self.placing()
        problems = [*self.problems, *map(placing.problem, total.problems)]
        report = Report(
            findings=tuple(sorted(map(placing.finding, total.findings), key=lambda item: item.sort_key)),
            errors=tuple(sorted(problems, key=lambda item: (item.path, item.line or 0, item.message))),
            files=len({file.display for file in self.discovery.reported}),
            texts=total.texts,
            silenced=tuple(Silenced(placing.finding(one.finding), one.line, one.reason) for one in total.silenced),
        )
        if not report.errors and not total.moved:
            self.known.keep_report(report)
        return report

    def _inspected(self, program: Program, files: Sequence[FoundFile]) -> Inspected:
        worker = self.worker
        worker.inspector = Inspector(program, self.options.rules)
        worker.reuse = reuse = self.known.reuse(program)
        parts = self.known.inspected(reuse, files) if reuse is not None else {}
        self._progress(len(parts))
        unknown = [file for file in files if file.display not in parts]
        for chunk, inspected in spread(worker, worker.inspect_all, unknown, not_inspected, program):
            parts.update((file.display, part) for file, part in zip(chunk, inspected))
            self._progress(len(chunk))
        total = Inspected()
        for file in files:
            total.add(parts[file.display])
        if reuse is not None:
            reuse.keep(files, total.entries)
        return total

    def _progress(self, files: int) -> None:
        self._done += files
        if self.options.progress is not None:
            self.options.progress(self._done, self._total)


__all__ = ["Memory", "Options", "Run", "check", "check_overlay", "explain_heat"]
