from __future__ import annotations

import pytest

from perflint.finding import Applicability, Edit, Fix, Span
from perflint.fixes.apply import apply_fixes
from perflint.syntax.file import SourceFile


def fix(*edits: tuple[int, int, int, int, str], title: str = "Mend it") -> Fix:
    return Fix(title, Applicability.SAFE, tuple(Edit(Span(*place), text) for *place, text in edits))


def source(text: str) -> SourceFile:
    return SourceFile("a.py", text)


def test_the_first_by_position_wins_and_the_other_waits() -> None:
    later, earlier = fix((1, 3, 1, 6, "Y")), fix((1, 1, 1, 4, "X"))
    applied = apply_fixes(source("abcdef"), [later, earlier])
    assert (applied.text, applied.taken, applied.left) == ("Xdef", (earlier,), (later,))


def test_the_order_of_the_fixes_does_not_matter() -> None:
    fixes = [fix((1, 1, 1, 4, "X")), fix((1, 3, 1, 6, "Y")), fix((1, 5, 1, 6, "Z")), fix((1, 3, 1, 3, "i"))]
    texts = {apply_fixes(source("abcdef"), order).text for order in (fixes, fixes[::-1], fixes[2:] + fixes[:2])}
    assert texts == {"XdZf"}


def test_edits_side_by_side_do_not_touch() -> None:
    assert apply_fixes(source("abcd"), [fix((1, 1, 1, 3, "X")), fix((1, 3, 1, 5, "Y"))]).text == "XY"


@pytest.mark.parametrize("column", [1, 2, 3])
def test_an_insertion_at_changed_text_waits(column: int) -> None:
    applied = apply_fixes(source("abcd"), [fix((1, 1, 1, 3, "X")), fix((1, column, 1, column, "i"))])
    assert len(applied.left) == 1


def test_a_fix_is_made_whole_or_not_at_all() -> None:
    applied = apply_fixes(source("ab\ncd"), [fix((1, 1, 1, 2, "X")), fix((1, 1, 1, 3, "Y"), (2, 1, 2, 2, "Z"))])
    assert applied.text == "Xb\ncd"


def test_fixes_that_ask_for_the_same_import_share_it() -> None:
    line = (1, 1, 1, 1, "import torch\n")
    applied = apply_fixes(source("a\nb"), [fix(line, (1, 1, 1, 2, "c")), fix(line, (2, 1, 2, 2, "d"))])
    assert (applied.text, len(applied.taken)) == ("import torch\nc\nd", 2)


def test_the_same_fix_twice_is_made_once() -> None:
    twice = [fix((1, 1, 2, 1, "")), fix((1, 1, 2, 1, ""))]
    applied = apply_fixes(source("a\nb"), twice)
    assert (applied.text, len(applied.taken)) == ("b", 2)


def test_different_insertions_at_one_place_wait_for_each_other() -> None:
    applied = apply_fixes(source("f()"), [fix((1, 3, 1, 3, "a=1")), fix((1, 3, 1, 3, "b=2"))])
    assert (applied.text, len(applied.left)) == ("f(a=1)", 1)


def test_insertions_of_one_fix_keep_their_order() -> None:
    both = fix((1, 1, 1, 1, "import re\n"), (1, 1, 1, 1, "\nP = re.X\n"))
    assert apply_fixes(source("x"), [both]).text == "import re\n\nP = re.X\nx"


@pytest.mark.parametrize(
    "place",
    [(0, 0, 0, 0), (1, 4, 1, 4), (3, 1, 3, 1), (2, 1, 1, 1), (1, 2, 1, 1), (1, 0, 1, 1)],
)
def test_edits_outside_the_text_are_refused(place: tuple[int, int, int, int]) -> None:
    wrong = fix((*place, "x"))
    applied = apply_fixes(source("ab\ncd"), [wrong])
    assert (applied.text, applied.refused) == ("ab\ncd", (wrong,))


def test_a_fix_whose_edits_overlap_is_refused() -> None:
    assert apply_fixes(source("abcd"), [fix((1, 1, 1, 3, "X"), (1, 2, 1, 4, "Y"))]).refused


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_are_those_of_the_file(end: str) -> None:
    text = f"a{end}é\f\x0bb{end}c"
    applied = apply_fixes(source(text), [fix((2, 2, 3, 1, "X\nY\n"))])
    assert applied.text == f"a{end}éX{end}Y{end}c"


def test_a_file_of_mixed_line_ends_keeps_each() -> None:
    text = "a\r\nb\nc\r\nd\r\n"
    assert apply_fixes(source(text), [fix((2, 1, 2, 2, "x\ny"))]).text == "a\r\nx\r\ny\nc\r\nd\r\n"


def test_columns_count_characters() -> None:
    assert apply_fixes(source("'𝛼é' + b"), [fix((1, 8, 1, 9, "c"))]).text == "'𝛼é' + c"
