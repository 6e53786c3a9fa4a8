"""The `sarif` format: SARIF 2.1.0 as GitHub code scanning and editors read it.

GitHub ignores `uriBaseId` and takes URIs from the git root, so they are written that way; columns are UTF-16 code
units, because viewers disagree where that is not declared. Text from outside is made visible everywhere: a lone
surrogate is no UTF-8, and readers other than Python's refuse it even when it is escaped.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perflint.finding import Finding, Problem, Report, Silenced
from perflint.report import places
from perflint.report.fingerprint import finding_keys, line_hashes
from perflint.report.sarif_location import Locator
from perflint.report.sarif_result import result_of
from perflint.report.sarif_tool import NOTIFICATIONS, Json, Tool
from perflint.report.visible import visible_lines

if TYPE_CHECKING:
    from perflint.report import Options

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: What code scanning takes; more makes it refuse the whole upload.
MOST_RESULTS = 25_000
MOST_BYTES = 10 * 1000 * 1000


@dataclass(frozen=True, slots=True)
class _Entry:
    """A finding to print, and its partial fingerprints, which count over all findings, cut or not."""

    finding: Finding
    fingerprints: Mapping[str, str]
    silenced: Silenced | None


def render(report: Report, options: Options) -> str:
    texts = places.Texts(report.texts)
    entries = _entries(report, texts, options)
    locator = Locator(texts, options.root)
    tool = Tool.of(options.rules, [entry.finding for entry in entries], options.version)
    results = [_dump(_result(entry, tool, locator)) for entry in entries[:MOST_RESULTS]]
    while True:
        text = _document(report, results, len(entries), tool, locator)
        size = _packed(text)
        if size <= MOST_BYTES or not results:
            return text
        results = results[: int(len(results) * min(MOST_BYTES / size, 0.98) * 0.95)]


def _entries(report: Report, texts: places.Texts, options: Options) -> list[_Entry]:
    """Worst first, silenced ones (if wanted at all) last: what is cut is cut from the end."""
    findings = places.worst_first(places.in_reading_order(report))
    hushed = list(report.silenced) if options.silenced else []
    everything = [*findings, *(one.finding for one in hushed)]
    lines = _line_hashes(everything, texts, report.texts)
    marks: list[Silenced | None] = [*[None] * len(findings), *hushed]
    # Numbered in reading order, so that a change of impact elsewhere does not rename a finding.
    ordered = sorted(range(len(everything)), key=lambda index: everything[index].sort_key)
    keys = dict(zip(ordered, finding_keys([everything[index] for index in ordered], texts)))
    return [
        _Entry(one, {**lines[index], "perflint/v1": keys[index]}, marks[index]) for index, one in enumerate(everything)
    ]


def _line_hashes(findings: Sequence[Finding], texts: places.Texts, raw: Mapping[str, str]) -> list[dict[str, str]]:
    lines = [texts.raw_span(one)[0].line for one in findings]
    wanted: dict[str, set[int]] = {}
    for one, line in zip(findings, lines):
        wanted.setdefault(one.path, set()).add(line)
    hashes = {path: line_hashes(raw[path], numbers) for path, numbers in wanted.items() if path in raw}
    found = [hashes.get(one.path, {}).get(line) for one, line in zip(findings, lines)]
    return [{"primaryLocationLineHash": name} if name else {} for name in found]


def _result(entry: _Entry, tool: Tool, locator: Locator) -> Json:
    result = result_of(entry.finding, tool, locator)
    result["partialFingerprints"] = dict(entry.fingerprints)
    if entry.silenced is not None:
        reason = {"justification": visible_lines(entry.silenced.reason)} if entry.silenced.reason else {}
        result["suppressions"] = [{"kind": "inSource", "status": "accepted", **reason}]
    return result


def _document(report: Report, results: Sequence[str], found: int, tool: Tool, locator: Locator) -> str:
    notifications = [_problem(problem, locator) for problem in report.errors]
    if len(results) < found:
        left = f"{found - len(results)} of {found} findings"
        cut = f"{left} are left out, the least important: code scanning takes no more."
        notifications.append({"level": "warning", "message": {"text": cut}, "descriptor": _descriptor(1)})
    run: Json = {
        "tool": tool.described(),
        "automationDetails": {"id": "perflint/check/"},
        "invocations": [{"executionSuccessful": not report.errors, "toolExecutionNotifications": notifications}],
        "originalUriBaseIds": locator.bases(),
        "columnKind": "utf16CodeUnits",
        "defaultSourceLanguage": "python",
    }
    # One result a line: a diff of two runs is readable, and the fast encoder can be used.
    listed = "[\n" + ",\n".join(results) + "\n]" if results else "[]"
    head = f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": ['
    return f'{head}{_dump(run)[:-1]}, "results": {listed}}}]}}\n'


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=True)


def _problem(problem: Problem, locator: Locator) -> Json:
    notification: Json = {
        "level": "error",
        "message": {"text": visible_lines(problem.message) or "unknown error"},
        "descriptor": _descriptor(0),
    }
    if problem.path:
        notification["locations"] = [locator.place(problem.path, problem.line, problem.column)]
    return notification


def _descriptor(index: int) -> Json:
    return {"id": NOTIFICATIONS[index][0], "index": index}


def _packed(text: str) -> int:
    """Bytes after gzip; a text that is small as it is need not be packed to know."""
    return len(text) if len(text) <= MOST_BYTES else len(gzip.compress(text.encode("ascii"), 6))
