"""One run that uses what the cache knows against one that knows nothing."""

from __future__ import annotations

from pathlib import Path

from perflint.engine import Options, check
from perflint.engine.worker import Inspected, Worker
from perflint.finding import Report
from perflint.project.discovery import FoundFile, discover
from perflint.project.selection import Selection
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules


def checked(*, cache: bool, jobs: int = 1) -> tuple[Report, list[str]]:
    """The report on the working directory, and the files that this process inspected for it."""
    settings = load_settings(Path.cwd())
    rules = [rule() for rule in Selection(settings).resolve(load_rules())]
    inspected: list[str] = []
    whole = Worker._inspected

    def noted(self: Worker, file: FoundFile) -> Inspected:
        inspected.append(file.display)
        return whole(self, file)

    Worker._inspected = noted  # type: ignore[method-assign]
    try:
        report = check(discover(["."], settings), Options(settings, rules, cache=cache, jobs=jobs))
    finally:
        Worker._inspected = whole  # type: ignore[method-assign]
    return report, inspected
