"""The text of files that are no part of the program."""

from __future__ import annotations

import codecs
from pathlib import Path

_LARGEST = 4_000_000


def text_of(file: Path) -> str:
    """The text of a file, nothing where there is none to read. `pip freeze` in PowerShell writes UTF-16."""
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:  # a link may lead to a device without end
            return ""
        data = file.read_bytes()
    except (OSError, ValueError):
        return ""
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
