"""Text to trees: what does not parse becomes one error, warnings stay quiet."""

from __future__ import annotations

import warnings

import pytest

from perflint.errors import SourceError
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse


def fault_of(text: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        parse(SourceFile("f.py", text))
    return caught.value


def test_parses() -> None:
    assert len(parse(SourceFile("f.py", "x = 1\ny = 2\n")).body) == 2


def test_syntax_error_has_its_line() -> None:
    error = fault_of("x = 1\ny = = 2\n")

    assert error.line == 2
    assert "does not parse" in error.message


def test_mistake_after_newer_syntax_is_the_one_reported() -> None:
    assert fault_of('def f[T](x: T) -> T: ...\nlazy import a\ny = f"{d["k"]}"\n\nz = = 3\n').line == 5


def test_warnings_about_the_code_are_not_ours_to_show() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse(SourceFile("f.py", "x = '\\d'\nassert (x, 'always true')\ny = 1 is 1\n"))


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "[" * 300 + "]" * 300,
        "x = " + "-" * 50_000 + "1",
        "x = " + "f'{" * 500,
    ],
)
def test_nesting_too_deep_is_an_error_of_the_file(text: str) -> None:
    fault_of(text)


@pytest.mark.parametrize("text", ["x = '\ud800'", "x = \0"])
def test_characters_no_source_may_hold(text: str) -> None:
    assert "does not parse" in fault_of(text).message
