"""Writing a file as a whole: it is its old self or its new one, whatever goes wrong in between."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path


def write_whole(file: Path, content: bytes) -> None:
    """Raises OSError. What is no file, such as a terminal or a pipe, is written to as it stands."""
    target = Path(os.path.realpath(file))
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            with temporary.open("xb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
        except PermissionError:
            if not target.exists():
                raise
            target.write_bytes(content)  # a file that may be written in a folder that may not
            return
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
