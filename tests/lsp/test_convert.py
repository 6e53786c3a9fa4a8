"""Texts follow what is typed, whatever the units and line ends, and edits make of a text what they should."""

from __future__ import annotations

import pytest

pytest.importorskip("pygls")

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from pygls.workspace import PositionCodec

from perflint.finding import Applicability, Fix, Span
from perflint.fixes.apply import apply_fixes
from perflint.lsp import convert
from perflint.lsp.documents import smallest_edit
from perflint.syntax.file import SourceFile

TEXTS = st.lists(st.sampled_from(["a", "é", "\U0001f525", " ", "\n", "\r\n", "\f", "\u2028"]), max_size=12).map("".join)
ENCODINGS = st.sampled_from(list(types.PositionEncodingKind))


@given(TEXTS, TEXTS, st.integers(0, 12), st.integers(0, 12), ENCODINGS)
def test_a_change_of_a_part_changes_that_part(
    text: str, new: str, first: int, last: int, encoding: types.PositionEncodingKind
) -> None:
    start, end = sorted((min(first, len(text)), min(last, len(text))))
    if any(text[at - 1 : at + 1] == "\r\n" for at in (start, end) if at):
        return  # between the two characters of a line end is no position
    units = convert.Units(PositionCodec(encoding))
    source = SourceFile("x", text)

    def place(offset: int) -> tuple[int, int]:
        lines = SourceFile("x", text[:offset]).lines
        return len(lines), len(lines[-1]) + 1

    where = units.range(source, Span(*place(start), *place(end)))
    change = types.TextDocumentContentChangePartial(range=where, text=new)
    assert convert.changed(text, change, units.codec) == text[:start] + new + text[end:]


def test_places_beyond_the_end_mean_the_end() -> None:
    codec = PositionCodec()
    for line, character, wanted in ((0, 99, "ab!\ncd"), (1, 99, "ab\ncd!"), (9, 9, "ab\ncd!")):
        where = types.Range(types.Position(line, character), types.Position(line, character))
        change = types.TextDocumentContentChangePartial(range=where, text="!")
        assert convert.changed("ab\ncd", change, codec) == wanted
    assert convert.changed("ab", types.TextDocumentContentChangeWholeDocument("cd"), codec) == "cd"


LINES = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=6).map("\n".join)


@given(LINES, LINES)
def test_the_smallest_edit_makes_the_text(before: str, after: str) -> None:
    source = SourceFile("x", before)
    edit = smallest_edit(source, after)
    assert apply_fixes(source, [Fix("", Applicability.SAFE, (edit,))]).text == after
