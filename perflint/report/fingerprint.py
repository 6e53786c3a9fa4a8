"""Names for findings that stay the same when lines above them come and go."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from perflint.finding import Finding
from perflint.report.places import Texts

_WINDOW = 100
_BASE = 37
_WRAP = 1 << 64
_OLDEST = pow(_BASE, _WINDOW, _WRAP)
_END = 0xFFFF


def line_hashes(text: str, wanted: Iterable[int]) -> dict[int, str]:
    """GitHub's `primaryLocationLineHash` of the `wanted` lines (from 1): code scanning tracks an alert by it alone.

    A line's hash covers the first hundred characters (UTF-16 units, blanks and tabs left out, every line ending read
    as `\\n`) from its start, an end mark and zeros after the text; `:n` counts lines of the file with the same hash.
    """
    left = set(wanted)
    units, starts = _units(text)
    found: dict[int, str] = {}
    seen: Counter[str] = Counter()
    value = 0
    for unit in units[:_WINDOW]:
        value = (value * _BASE + unit) % _WRAP
    begin = 0
    for number, start in enumerate(starts, 1):
        # Rolled on from line to line, as every line before a wanted one counts towards `:n`.
        for at in range(begin, start):
            value = (value * _BASE + units[at + _WINDOW] - _OLDEST * units[at]) % _WRAP
        begin = start
        name = f"{value:x}"
        seen[name] += 1
        if number in left:
            found[number] = f"{name}:{seen[name]}"
            left.discard(number)
            if not left:
                break
    return found


def _units(text: str) -> tuple[list[int], list[int]]:
    """The characters that count, padded, and where each line starts among them."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace(" ", "").replace("\t", "")
    coded = plain.encode("utf-16-le", "surrogatepass")
    units = [low | high << 8 for low, high in zip(coded[::2], coded[1::2])]
    starts = [0, *(at + 1 for at, unit in enumerate(units) if unit == 0x0A)]
    return [*units, _END, *([0] * _WINDOW)], starts


def finding_keys(findings: Sequence[Finding], texts: Texts) -> list[str]:
    """One key a finding: its rule, file and line of source without blanks, and its number among equal ones.

    Two findings of one rule on one line get two keys, unlike `line_hashes`. Numbers follow the order of `findings`.
    """
    seen: Counter[str] = Counter()
    squeezed: dict[tuple[str, int | None, int], str] = {}
    keys = []
    for one in findings:
        at = (one.path, one.cell, one.span.line)
        if at not in squeezed:
            lines = texts.lines(one.path, one.cell)
            squeezed[at] = "".join(lines[one.span.line - 1].split()) if one.span.line <= len(lines) else ""
        name = "\0".join([one.code, one.path, squeezed[at]])
        seen[name] += 1
        digest = hashlib.sha256(f"{name}\0{seen[name]}".encode("utf-8", "surrogatepass"))
        keys.append(digest.hexdigest()[:32])
    return keys
