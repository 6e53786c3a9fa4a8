"""Findings of files that an earlier run inspected, which hold while the text and all answers are the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from perflint.analysis.program import Program
from perflint.analysis.queries.answers import Digests
from perflint.analysis.queries.asked import Asked, still_holds
from perflint.engine.cache import in_parts, key_of
from perflint.engine.stored import report_from_json, report_to_json
from perflint.finding import Finding, Report, Silenced

if TYPE_CHECKING:
    from perflint.engine.cache import Cache
    from perflint.project.discovery import FoundFile
    from perflint.rule_api.rule import Rule


class Reuse:
    """What is kept of the inspection of single files. `basis` is all that they depend on besides files.

    `texts` are hashes of the texts that `program` was made from.
    """

    def __init__(self, cache: Cache | None, basis: bytes, program: Program, texts: Mapping[str, bytes]) -> None:
        self.cache = cache
        self.program = program
        self.texts = texts
        self.digests = Digests(program, texts)
        self._basis = basis

    def known(self, files: Iterable[FoundFile]) -> dict[str, Report]:
        """By path, what inspecting the file would give again, for those of `files` where that is certain."""
        keys = {file.display: self._key(file) for file in files if file.display in self.texts}
        found: dict[str, Report] = {}
        if self.cache is None:
            return found
        for part in in_parts(keys):
            stored = self.cache.get([keys[path] for path in part])
            for path in part:
                report = self._again(stored.get(keys[path]))
                if report is not None:
                    found[path] = report
        return found

    def _again(self, entry: Any) -> Report | None:
        """What an entry says was found, if inspecting the file would find it again."""
        if not isinstance(entry, dict) or not isinstance(entry.get("asked"), dict):
            return None
        if not still_holds(self.program, self.digests, entry["asked"]):
            return None
        try:
            return report_from_json(entry, {})
        except ValueError:
            return None

    def asking(self, path: str) -> Asked | None:
        """What to inspect a file with instead of the program, so that the result can be kept; None where it cannot."""
        return Asked(self.program, path, self.digests) if path in self.texts else None

    @staticmethod
    def entry(asked: Asked, findings: Iterable[Finding], silenced: Iterable[Silenced]) -> dict[str, Any]:
        report = Report(tuple(findings), (), 1, {}, tuple(silenced))
        return {**report_to_json(report), "asked": asked.questions()}

    def _key(self, file: FoundFile) -> bytes:
        return key_of_file(file, self._basis, self.texts)


def key_of_file(file: FoundFile, basis: bytes, texts: Mapping[str, bytes]) -> bytes:
    """Under which the cache keeps the inspection of a file, as `Reuse` knows it again."""
    return key_of("file", basis, file.display, file.file, texts[file.display])


def stamp_of_rules(rules: Iterable[Rule]) -> list[str]:
    """The codes of rules, in order, with the state of the files that define them."""
    return [f"{rule.code}:{_stamp(type(rule).__module__)}" for rule in rules]


def _stamp(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return ""
    try:
        state = os.stat(file)  # noqa: PTH116 - of every rule at every start
    except OSError:
        return ""
    return f"{state.st_size}:{state.st_mtime_ns}"
