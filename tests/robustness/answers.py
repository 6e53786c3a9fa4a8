"""What every answer of a check owes its user, whatever the input: for tests, the fuzzer and runs over large trees."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from perflint.finding import Finding, Report

_LINE_END = re.compile("\r\n|\r|\n")
#: What no input deserves: a rule or the tool at fault, or no end.
_FAULTS = re.compile(r"\bfailed\b|internal|processor time|Traceback")
#: Limits that the tool sets to what it reads, and says so.
_LIMITS = re.compile("too deep|too large")
_HEADERS = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Place = tuple[tuple[int, int], tuple[int, int]]


class Texts:
    """The lines of a text, and what of its places are those of syntax; worked out apart from the tool."""

    def __init__(self, data: bytes) -> None:
        self.tree = _tree(data)
        # Python's own reading of the bytes: its mark, its cookie, its line ends.
        self.lines: list[str] = [] if self.tree is None else _LINE_END.split(_decoded(data))

    def places(self) -> Iterator[_Place]:
        assert self.tree is not None
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.expr, ast.stmt, ast.keyword, ast.arg, ast.alias, ast.excepthandler)):
                yield self._place(node)
            if isinstance(node, _HEADERS):
                yield self._header(node)

    def _place(self, node: ast.AST) -> _Place:
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return (line, self._column(line, column)), (end, self._column(end, end_column))

    def _column(self, line: int, offset: int) -> int:
        return len(self.lines[line - 1].encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace")) + 1

    def _header(self, node: ast.AST) -> _Place:
        start = self._place(node)[0]
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return start, self._place(node.iter)[1]
        if isinstance(node, ast.While):
            return start, self._place(node.test)[1]
        line = self.lines[start[0] - 1]
        words = re.compile(r"(?:async\s+)?(?:def|class)\s+\w+").match(line, start[1] - 1)
        return start, (start[0], (words.end() if words else len(line)) + 1)

    def text(self, finding: Finding) -> str:
        span = finding.span
        lines = self.lines[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return "\n".join(lines)


def _tree(data: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _decoded(data)
            return ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError, LookupError):
            return None


def _decoded(data: bytes) -> str:
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(_LINES.sub(b"\n", data)).readline)
    return data.decode(encoding)


_LINES = re.compile(rb"\r\n|\r")


def faults(report: Report, inputs: Mapping[str, bytes]) -> Iterator[str]:
    """What is wrong with a report about `inputs`, files by path; one line each."""
    for error in report.errors:
        if _FAULTS.search(error.message):
            yield f"{error.path}: {error.message}"
    errors = {error.path: error.message for error in report.errors}
    findings: dict[str, list[Finding]] = {}
    for finding in report.findings:
        findings.setdefault(finding.path, []).append(finding)
    for path, data in inputs.items():
        if path.endswith(".ipynb"):
            yield from _notebook_faults(findings.get(path, []), data)
            continue
        message = errors.get(path, "")
        if not message and path not in findings:
            continue
        texts = Texts(data)
        if texts.tree is None:
            continue  # refused, or newer syntax than this Python's
        if message and not _LIMITS.search(message) and not _FAULTS.search(message):
            yield f"{path}: refused ({message}), though Python reads it"
        yield from _span_faults(findings.get(path, []), texts)


def _span_faults(findings: list[Finding], texts: Texts) -> Iterator[str]:
    places = set(texts.places()) if findings else set()
    for finding in findings:
        span = finding.span
        place = ((span.line, span.column), (span.end_line, span.end_column))
        if place in places:
            continue
        # What is said about a comment points at that comment.
        if not (span.line == span.end_line and texts.text(finding).startswith("#")):
            yield f"{finding.path}:{span.line}: {finding.code} points at {texts.text(finding)[:60]!r}, which is no node"


def _notebook_faults(findings: list[Finding], data: bytes) -> Iterator[str]:
    """A finding in a notebook lies in the cell that it names."""
    if not findings:
        return
    cells = json.loads(data)["cells"]
    for finding in findings:
        span, cell = finding.span, finding.cell
        where = f"{finding.path}:{cell}:{span.line}: {finding.code}"
        if cell is None or not 1 <= cell <= len(cells):
            yield f"{where} names no cell"
            continue
        source = cells[cell - 1]["source"]
        lines = _LINE_END.split(source if isinstance(source, str) else "".join(source))
        if not (1 <= span.line <= span.end_line <= len(lines) and span.end_column <= len(lines[span.end_line - 1]) + 1):
            yield f"{where} lies outside of its cell"


def read(report: Report, folder: Path) -> dict[str, bytes]:
    """The content of the files that a report speaks of, by path as seen from `folder`."""
    paths = {one.path for one in report.findings} | {one.path for one in report.errors}
    found = {}
    for path in paths:
        try:
            found[path] = (folder / path).read_bytes()
        except (OSError, ValueError):
            continue
    return found
