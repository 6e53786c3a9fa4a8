"""Bytes in, text out, and the same bytes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.errors import SourceError
from perflint.finding import Span
from perflint.syntax.file import SourceFile
from perflint.syntax.read import decode_source, read_source


def fault_of(data: bytes) -> SourceError:
    with pytest.raises(SourceError) as caught:
        decode_source(data, "f.py")
    return caught.value


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\n",
        b"",
        b"x = 1",
        "# é\nx = '日本'\n".encode(),
        b"\xef\xbb\xbfx = 1\n",
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\ry = 2\r",
        b"x = 1\r\ny = 2\nz = 3\r",
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        b"#!/usr/bin/env python\r\n# vim: set fileencoding=cp1252 :\r\nx = '\x80'\r\n",
        b"\xef\xbb\xbf# coding: utf-8\nx = 1\n",
        "# coding: euc-jp\nx = '日本'\n".encode("euc-jp"),
        b"x = 1\n\x0cy = 2\n",
    ],
)
def test_bytes_come_back_as_they_were(data: bytes) -> None:
    source = decode_source(data, "f.py")

    assert source.encode(source.text) == data


def test_cookie_says_how_to_decode() -> None:
    assert "é" in decode_source(b"# coding: latin-1\nx = '\xe9'\n", "f.py").text


def test_cookie_of_a_file_with_old_line_ends() -> None:
    assert "é" in decode_source(b"# first\r# coding: latin-1\rx = '\xe9'\r", "f.py").text


def test_cookie_below_the_second_line_says_nothing() -> None:
    assert fault_of(b"x = 1\n\n# coding: latin-1\ny = '\xe9'\n").line == 4


def test_not_utf8_names_the_line() -> None:
    error = fault_of(b"x = 1\r\ny = 2\r\nz = '\xff'\r\n")

    assert error.line == 3
    assert "not UTF-8" in error.message
    assert "name its encoding in the first line" in error.message
    assert "0xff" in error.message


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"# coding: no-such-thing\n", 1, "no-such-thing"),
        (b"\n# coding: rot13\nx = 1\n", 2, "rot13"),
        (b"x = 1\ny = '\0'\n", 2, "null byte"),
        ("x = 1\n".encode("utf-16"), 1, "UTF-16"),
        (b"\xef\xbb\xbf# coding: latin-1\n", 1, "utf-8"),
        (b"# coding: ascii\nx = '\xe9'\n", 2, "ascii"),
    ],
)
def test_what_python_refuses_is_refused(data: bytes, line: int, words: str) -> None:
    error = fault_of(data)

    assert error.line == line
    assert words in error.message


def test_missing_file_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_source(tmp_path / "gone.py", "gone.py")


def test_a_folder_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        read_source(tmp_path, "folder")


def test_inserted_lines_take_the_files_own_ending() -> None:
    source = decode_source(b"x = 1\r\ny = 2\r\n", "f.py")

    assert source.newline == "\r\n"
    assert source.encode("import a\nx = 1\r\ny = 2\r\n") == b"import a\r\nx = 1\r\ny = 2\r\n"


def test_a_character_the_encoding_lacks_is_refused() -> None:
    source = decode_source(b"# coding: ascii\nx = 1\n", "f.py")

    with pytest.raises(SourceError, match="cannot be written as ascii"):
        source.encode("x = 'é'\n")


def test_columns_count_characters() -> None:
    source = SourceFile("f.py", "é = 😀\tx\n")

    assert source.column(1, len("é = 😀\t".encode())) == 7
    assert source.slice(Span(1, 5, 1, 6)) == "😀"


def test_slices_join_lines_whatever_their_ending() -> None:
    source = SourceFile("f.py", "f(\r\n  1,\r  2)\n")

    assert source.slice(Span(1, 1, 3, 5)) == "f(\n  1,\n  2)"
