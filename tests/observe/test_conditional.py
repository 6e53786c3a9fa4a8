"""Which parts of a line may be left out while it runs, and which of them holds an expression."""

from __future__ import annotations

import pytest

from perflint.finding import Span
from perflint.observe.conditional import conditional_parts, innermost_part

_MARK = "read()"


def _holds_mark(text: str) -> bool:
    at = text.index(_MARK)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return innermost_part(conditional_parts(text), Span(line, column, line, column + len(_MARK))) is not None


@pytest.mark.parametrize(
    "text",
    [
        "if half and read(): pass\n",
        "x = a or b or read()\n",
        "x = read() if a else b\n",
        "x = a if b else read()\n",
        "assert a, read()\n",
        "f = lambda x: read()\n",
        "if step % 10 == 0: read()\n",
        "for x in few: read()\n",
        "if (a and\n        b and read()):\n    pass\n",
        "if 'ä' == x and read():\n    pass\n",
    ],
)
def test_a_part_may_be_left_out(text: str) -> None:
    assert _holds_mark(text)


@pytest.mark.parametrize(
    "text",
    [
        "if read() and half: pass\n",
        "x = a if read() else b\n",
        "assert read(), a\n",
        "if step % 10 == 0:\n    read()\n",
        "if (a and\n        read()):\n    pass\n",
        "x = a + read()\n",
        "def (\nread()\n",
    ],
)
def test_a_part_runs_with_its_line(text: str) -> None:
    assert not _holds_mark(text)


def test_the_smallest_part_is_told() -> None:
    text = "x = a and (b or read())\n"
    part = innermost_part(conditional_parts(text), Span(1, 17, 1, 23))
    assert part == Span(1, 17, 1, 23)
    assert innermost_part(conditional_parts(text), Span(1, 12, 1, 13)) == Span(1, 12, 1, 23)
