"""What earlier runs left in the cache, and what this one leaves: summaries, findings of single files, whole reports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perflint.engine.cache import FOLDER, Cache, engine_fingerprint, in_parts, key_of
from perflint.engine.known import Known
from perflint.engine.reuse import Reuse, key_of_file, stamp_of_rules
from perflint.engine.shown import ShownTexts
from perflint.engine.stored import report_from_json, report_to_json
from perflint.engine.worker import Inspected
from perflint.errors import SourceError
from perflint.ir.packing import packed, unpacked
from perflint.ir.summary import Summary
from perflint.syntax.notebook_json import SUFFIX
from perflint.syntax.roles import is_named_as_test

if TYPE_CHECKING:
    from perflint.analysis.program import Program
    from perflint.engine.options import Options
    from perflint.engine.texts import Texts
    from perflint.finding import Report
    from perflint.ir.sharing import Sharing
    from perflint.project.discovery import Discovery, FoundFile


class Kept(Known):
    """What is known to a run with a cache. A text that stands in for a file's is in no cache."""

    def __init__(self, discovery: Discovery, options: Options, texts: Texts) -> None:
        super().__init__(discovery, options, texts)
        #: Nothing but files and settings decides the result: there may be a whole report.
        self._is_plain = not texts.overlay and options.memory is None
        self._cache: Cache | None = None
        self._fingerprint = ""
        self._result_key = b""
        self._fresh: dict[bytes, Summary] = {}

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()

    # Whole reports.

    def report(self) -> Report | None:
        if not self._is_plain:
            return None
        self._open_cache(self.discovery.analysed)
        if self._cache is None:
            return None
        self._result_key = key_of(
            "report",
            self._basis(),
            [file.display for file in self.discovery.reported],
            sorted(self.texts.digests.items()),
            [problem.path for problem in self.discovery.problems],
            self.configured.state,
            self.discovery.beside,
        )
        if self.discovery.problems or len(self.texts.digests) < len(self.discovery.analysed):
            return None
        stored = self._cache.get([self._result_key]).get(self._result_key)
        if stored is None:
            return None
        try:
            files = {file.display: file for file in self.discovery.reported}
            texts = {path: self.texts.source(files[path]).raw for path in stored["paths"]}
            return report_from_json(stored, texts) if not self.texts.moved else None
        except (ValueError, KeyError, TypeError, SourceError):
            return None

    def keep_report(self, report: Report) -> None:
        if self._cache is not None and self._result_key:
            self._cache.put({self._result_key: report_to_json(report)})

    # Summaries.

    def summaries(self, sharing: Sharing | None) -> dict[str, Summary]:
        found = super().summaries(sharing)
        if self._cache is None:
            self._open_cache([file for file in self.discovery.analysed if file.display not in found])
        memory = self.options.memory
        for display, summary in self._cached_summaries(sharing).items():
            found[display] = summary
            if memory is not None and display in self._states:
                memory.put(self.discovery.file(display), self._states[display], summary)
        return found

    def add_summary(self, file: FoundFile, summary: Summary) -> None:
        super().add_summary(file, summary)
        if self._cache is not None and file.display in self.texts.digests:
            self._fresh[self._summary_key(file.display)] = summary

    @property
    def wants_summaries(self) -> bool:
        return self._cache is not None or super().wants_summaries

    @property
    def keeps_inspected(self) -> bool:
        return self._cache is not None and self._is_plain

    def keep_summaries(self) -> None:
        if self._cache is not None:
            for part in in_parts(self._fresh):
                self._cache.put(dict(_packed(self._fresh, part)))
        self._fresh = {}

    def forget(self, file: FoundFile) -> None:
        self.texts.digests.pop(file.display, None)
        self._result_key = b""

    # Findings of single files.

    def reuse(self, program: Program) -> Reuse | None:
        if not self.keeps_inspected:
            return None
        return Reuse(self._cache, self._basis(), program, self.texts.digests)

    def inspected(self, reuse: Reuse, files: Sequence[FoundFile]) -> dict[str, Inspected]:
        by_path = {file.display: file for file in files}
        found: dict[str, Inspected] = {}
        for path, report in reuse.known(files).items():
            with contextlib.suppress(SourceError):  # it vanished since its digest was made
                texts = ShownTexts()
                if report.findings or report.silenced:
                    texts.add(path, self.texts.source(by_path[path]).raw)
                if path not in self.texts.moved:
                    found[path] = Inspected(list(report.findings), list(report.silenced), [], texts)
        return found

    def keep_inspected(self, files: Sequence[FoundFile], entries: Mapping[str, dict[str, Any]]) -> None:
        if self._cache is not None and entries:
            basis, texts = self._basis(), self.texts.digests
            found = (file for file in files if file.display in entries)
            self._cache.put({key_of_file(file, basis, texts): entries[file.display] for file in found})

    # The cache.

    def _basis(self) -> bytes:
        """What everything that is found depends on, besides the files."""
        options = self.options
        return key_of(
            self._fingerprint,
            stamp_of_rules(options.rules),
            options.everything,
            options.settings,
            sorted(options.codes or ()),
            sorted({one.stamp for one in options.nested.values()}),
            self.torches.whole,
            sorted(self.torches.parts.items(), key=str),
        )

    def _open_cache(self, files: Sequence[FoundFile]) -> None:
        """For what it knows of `files`."""
        root = self.discovery.root
        folder = self.options.settings.cache_dir or (root / FOLDER if root is not None else None)
        files = [file for file in files if file.display not in self.texts.overlay]
        if folder is None or not files:
            return
        self._fingerprint = engine_fingerprint()
        for file in files:
            with contextlib.suppress(SourceError):
                self.texts.digests[file.display] = key_of(self.texts.data(file))
        self._cache = Cache(folder)

    def _summary_key(self, display: str) -> bytes:
        kind = "notebook" if display.endswith(SUFFIX) else "named as a test" if is_named_as_test(display) else "summary"
        return key_of(kind, self._fingerprint, self.texts.digests[display])

    def _cached_summaries(self, sharing: Sharing | None) -> dict[str, Summary]:
        if self._cache is None:
            return {}
        keys = {display: self._summary_key(display) for display in self.texts.digests}
        found: dict[str, Summary] = {}
        for part in in_parts(keys):
            stored = self._cache.get({keys[display] for display in part})
            for display in part:
                if keys[display] in stored:
                    with contextlib.suppress(LookupError, TypeError, AttributeError, ValueError):
                        found[display] = unpacked(stored[keys[display]], sharing)
        return found


def _packed(summaries: Mapping[bytes, Summary], keys: Iterable[bytes]) -> Iterator[tuple[bytes, Any]]:
    for key in keys:
        with contextlib.suppress(RecursionError):  # what is nested too deep for it is surveyed again
            yield key, packed(summaries[key])
