"""Unified diffs, as `patch` and `git apply` read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff

#: A line with its end; only what ends a line in Python source does so here.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
#: Letters of a name that need no quotes in a patch.
_PLAIN = re.compile(r'[^\x00-\x1f\x7f-\x9f"\\]+')


def file_diff(path: str, before: str, after: str, *, context: int = 3) -> str:
    """The diff of one file, empty when nothing differs. Lines keep their ends, so that a diff of CRLF text applies."""
    name = _quoted(path)
    lines = unified_diff(_LINE.findall(before), _LINE.findall(after), name, name, n=context)
    return "".join(_ended(lines))


def _quoted(path: str) -> str:
    """The name as git and patch read it: in quotes with octal escapes where it could be taken for something else."""
    if _PLAIN.fullmatch(path) and path.isprintable():
        return path
    coded = path.encode("utf-8", "surrogateescape")
    return (
        '"'
        + "".join(chr(byte) if byte < 0x7F and _PLAIN.fullmatch(chr(byte)) else f"\\{byte:03o}" for byte in coded)
        + '"'
    )


def _ended(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield line
        elif line.endswith("\r"):
            yield f"{line}\n"
        else:
            yield f"{line}\n\\ No newline at end of file\n"
