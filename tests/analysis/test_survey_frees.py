"""A survey leaves nothing behind but its summary: projects of thousands of files are surveyed without collecting."""

from __future__ import annotations

import ast
import gc
import weakref

import pytest

from perflint.ir.sharing import Sharing
from perflint.ir.survey import survey


class Lines(list[str]):
    """A list that can be watched."""


@pytest.mark.parametrize("sharing", [None, Sharing()], ids=["few files", "many files"])
def test_the_lines_of_a_file_are_freed_with_its_survey(sharing: Sharing | None) -> None:
    lines = Lines(["def f(x):\n", "    return g(x, 1)\n"])
    watched = weakref.ref(lines)
    gc.disable()
    try:
        summary = survey(ast.parse("".join(lines)), lines, sharing)
        del lines
        assert watched() is None
    finally:
        gc.enable()
    assert "f" in summary.functions
