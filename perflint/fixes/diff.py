"""Unified diffs, as `patch` and `git apply` read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff

#: A line with its end; only what ends a line in Python source does so here.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def file_diff(path: str, before: str, after: str, *, context: int = 3) -> str:
    """The diff of one file, empty when nothing differs. Lines keep their ends, so that a diff of CRLF text applies."""
    lines = unified_diff(_LINE.findall(before), _LINE.findall(after), path, path, n=context)
    return "".join(_ended(lines))


def _ended(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield line
        elif line.endswith("\r"):
            yield f"{line}\n"
        else:
            yield f"{line}\n\\ No newline at end of file\n"
