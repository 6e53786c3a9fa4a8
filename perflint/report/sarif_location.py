"""Places as SARIF writes them: URIs from the git root, regions in UTF-16 code units."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from perflint.finding import Finding, Hop, Span
from perflint.report import places
from perflint.report.visible import visible, visible_lines

Json = dict[str, Any]
_BASE = "%SRCROOT%"
_SAFE = "/-._~"


@dataclass(frozen=True, slots=True)
class Locator:
    """Places in SARIF: paths below the root of the git repository, or absolute where there is none."""

    texts: places.Texts
    root: Path | None

    def artifact(self, path: str) -> Json:
        """Relative to the root with the base named; a file outside the root by its absolute URI."""
        placed = places.from_root(path, self.root)
        if PurePosixPath(placed).is_absolute() or Path(placed).is_absolute():
            return {"uri": f"file://{_quoted(placed if placed.startswith('/') else f'/{placed}')}"}
        return {"uri": _quoted(placed.removeprefix("./")), "uriBaseId": _BASE}

    def bases(self) -> Json:
        described: Json = {"description": {"text": "The root of the git repository, or the working directory."}}
        if self.root is not None:
            uri = _quoted(self.root.resolve().as_posix())
            described = {"uri": f"file://{'' if uri.startswith('/') else '/'}{uri.rstrip('/')}/"}
        return {_BASE: described}

    def finding(self, finding: Finding) -> Json:
        """Where a finding is; one in a notebook's cell by its whole line."""
        span, exact = self.texts.raw_span(finding)
        lines = self.texts.lines(finding.path)
        if not exact:
            # The columns of a cell's line are not those of the JSON text around it: the whole line is meant.
            end = len(lines[span.end_line - 1]) + 1 if span.end_line <= len(lines) else 2
            span = Span(span.line, 1, span.end_line, max(end, 2))
        region = self.region(finding.path, span)
        snippet = self._snippet(finding)
        if snippet:
            region["snippet"] = {"text": snippet}
        return {"physicalLocation": {"artifactLocation": self.artifact(finding.path), "region": region}}

    def hop(self, hop: Hop, text: str, number: int | None = None) -> Json:
        """A step of a route; its region is the line without its indentation, where the text is known."""
        lines = self.texts.lines(hop.path)
        line = max(self.texts.raw_line(hop), 1)
        region: Json = {"startLine": line}
        if line <= len(lines) and lines[line - 1].strip():
            source = lines[line - 1]
            indent = len(source) - len(source.lstrip())
            region = self.region(hop.path, Span(line, indent + 1, line, len(source.rstrip()) + 1))
        location: Json = {
            "physicalLocation": {"artifactLocation": self.artifact(hop.path), "region": region},
            "message": {"text": text},
        }
        return location if number is None else {"id": number, **location}

    def place(self, path: str, line: int | None, column: int | None) -> Json:
        physical: Json = {"artifactLocation": self.artifact(path)}
        if line is not None:
            physical["region"] = {"startLine": max(line, 1)}
            if column is not None:
                physical["region"]["startColumn"] = max(column, 1)
        return {"physicalLocation": physical}

    def region(self, path: str, span: Span) -> Json:
        return {
            "startLine": span.line,
            "startColumn": self._utf16(path, span.line, span.column),
            "endLine": span.end_line,
            "endColumn": self._utf16(path, span.end_line, span.end_column),
        }

    def newline(self, path: str) -> str:
        """The line ending of the file, which inserted text has to share."""
        text = self.texts.texts.get(path, "")
        at = text.find("\n")
        if at == -1:
            return "\r" if "\r" in text else "\n"
        return "\r\n" if at and text[at - 1] == "\r" else "\n"

    def _utf16(self, path: str, line: int, column: int) -> int:
        lines = self.texts.lines(path)
        return places.utf16_column(lines[line - 1], column) if 0 < line <= len(lines) else column

    def _snippet(self, finding: Finding) -> str:
        """The flagged text; the whole of its lines where it spans several."""
        span = finding.span
        lines = self.texts.lines(finding.path, finding.cell)[span.line - 1 : span.end_line]
        if len(lines) == 1:
            return visible(lines[0][span.column - 1 : span.end_column - 1])
        return visible_lines("\n".join(lines))


def _quoted(path: str) -> str:
    """Percent-encoded UTF-8; bytes of a name that are no UTF-8 as they lie on disk."""
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raw = path.encode("utf-8", "surrogatepass")
    return quote(raw, safe=_SAFE)
