"""Bytes to text, as Python itself reads source: byte order marks, PEP 263 cookies, UTF-8 otherwise."""

from __future__ import annotations

import codecs
import io
import os
import stat
import tokenize
from pathlib import Path

from perflint.errors import SourceError
from perflint.syntax.file import SourceFile
from perflint.syntax.notebook_json import SUFFIX
from perflint.system.patterns import pattern

_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
#: Its tree would take some four gigabytes.
_MOST_BYTES = 100_000_000
_LINE_END = pattern(rb"\r\n|\r|\n")
_OTHER_MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def read_source(file: Path, display_path: str) -> SourceFile:
    """Read one file. Raises SourceError when it cannot be read or decoded."""
    return decode_source(read_bytes(file), display_path)


def read_bytes(file: Path) -> bytes:
    """The content of `file`. Raises SourceError when it cannot be read, and for what may have no end."""
    try:
        # A pipe is not waited for; for a file this says nothing.
        with open(file, "rb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE)) as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SourceError("cannot be read: not a regular file; '-' reads standard input")
            if status.st_size > _MOST_BYTES:
                raise SourceError(f"too large to be read: more than {_MOST_BYTES // 1_000_000} MB")
            return opened.read()
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a name with a null character
        raise SourceError(f"cannot be read: {error}") from error


def decode_source(data: bytes, path: str) -> SourceFile:
    """Decode the bytes of one file; `path` is how findings name it.

    Raises SourceError, with the line where there is one, for what Python would refuse: bytes that are not of the
    file's encoding, an encoding nobody knows, null bytes. A `.ipynb` is a notebook.
    """
    if path.endswith(SUFFIX):
        return _decode_notebook(data, path)
    for mark, encoding_name in _OTHER_MARKS.items():
        if data.startswith(mark):
            raise SourceError(f"not UTF-8: the byte order mark says {encoding_name}", 1)
    encoding, bom = _encoding_of(data)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    if b"\0" in body:
        raise SourceError("null byte in source", _line_of(body, body.index(b"\0")))
    return SourceFile(path, _decode(body, encoding), encoding=encoding, bom=bom)


def _decode_notebook(data: bytes, path: str) -> SourceFile:
    from perflint.syntax.notebook import Notebook

    bom = data.startswith(codecs.BOM_UTF8)
    return Notebook(path, _decode(data[len(codecs.BOM_UTF8) :] if bom else data, "utf-8"), bom=bom)


def _encoding_of(data: bytes) -> tuple[str, bool]:
    """The encoding and whether the file begins with the UTF-8 mark."""
    head = b"\n".join(_first_lines(data))
    bom = head.startswith(codecs.BOM_UTF8)
    if b"coding" not in head:
        return "utf-8", bom
    try:
        # `detect_encoding` splits at `\n` only, so the two lines are handed over that way.
        encoding, _ = tokenize.detect_encoding(io.BytesIO(head + b"\n").readline)
    except (SyntaxError, LookupError) as error:  # the latter from Python 3.14 on, of what is no encoding of text
        raise SourceError(str(error.msg if isinstance(error, SyntaxError) else error), _cookie_line(data)) from error
    return ("utf-8" if encoding == "utf-8-sig" else encoding), bom


def _first_lines(data: bytes) -> list[bytes]:
    lines: list[bytes] = []
    start = 0
    while len(lines) < 2:
        end = _LINE_END.search(data, start)
        lines.append(data[start : end.start() if end else len(data)])
        if end is None:
            break
        start = end.end()
    return lines


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = "UTF-8" if encoding == "utf-8" else encoding
        line = _line_of(data, error.start)
        words = f"not {name}: byte 0x{data[error.start]:02x} cannot be decoded; save it as {name}, or name its encoding"
        raise SourceError(f"{words} in the first line (`# -*- coding: latin-1 -*-`)", line) from error
    except (LookupError, UnicodeError) as error:  # `rot13` is an encoding, but none of text
        raise SourceError(f"cannot be decoded as {encoding}: {error}", _cookie_line(data)) from error


def _cookie_line(data: bytes) -> int:
    return next((number for number, text in enumerate(_first_lines(data), 1) if b"coding" in text), 1)


def _line_of(data: bytes, offset: int) -> int:
    return len(_LINE_END.findall(data, 0, offset)) + 1
