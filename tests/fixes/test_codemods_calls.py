from __future__ import annotations

import pytest
from editing import Editing

from perflint.fixes.layout import NOWHERE

ADDED = {
    "empty": ("f()", "f(k=1)"),
    "one": ("f(a)", "f(a, k=1)"),
    "string": ("f('a')", "f('a', k=1)"),
    "trailing comma": ("f(a, b,)", "f(a, b, k=1,)"),
    "parenthesised callee": ("(f)(a)", "(f)(a, k=1)"),
    "parenthesised argument": ("f(((a)))", "f(((a)), k=1)"),
    "lambda with commas": ("f(lambda a, b: (a, b))", "f(lambda a, b: (a, b), k=1)"),
    "bare generator": ("f(x for x in y)", "f((x for x in y), k=1)"),
    "generator": ("f((x for x in y))", "f((x for x in y), k=1)"),
    "unpacked mapping": ("f(a, **more)", "f(a, k=1, **more)"),
    "only a mapping": ("f(**more)", "f(k=1, **more)"),
    "mapping before a keyword": ("f(**more, a=1)", "f(**more, a=1, k=1)"),
    "unpacked list behind a keyword": ("f(a=1, *rest)", "f(a=1, *rest, k=1)"),
    "comment in the empty call": ("f(\n    # nothing\n)", "f(\n    # nothing\nk=1)"),
    "comment with a parenthesis": ("f(a  # :)\n  , b)", "f(a  # :)\n  , b\n  , k=1)"),
    "one per line": ("f(\n    a,\n    b=2,\n)", "f(\n    a,\n    b=2,\n    k=1,\n)"),
    "one per line, no last comma": ("f(\n    a,\n    b=2\n)", "f(\n    a,\n    b=2,\n    k=1\n)"),
    "comments behind": ("f(\n    a,  # one\n    b,  # two\n)", "f(\n    a,  # one\n    b,  # two\n    k=1,\n)"),
    "comment, no last comma": ("f(\n    a,\n    b  # two\n)", "f(\n    a,\n    b,  # two\n    k=1\n)"),
    "comment line at the end": ("f(\n    a,\n    # more\n)", "f(\n    a,\n    k=1,\n    # more\n)"),
    "mapping with its comment": (
        "f(\n    a,\n    # the rest\n    **more,\n)",
        "f(\n    a,\n    k=1,\n    # the rest\n    **more,\n)",
    ),
    "only a mapping, on its line": ("f(\n    **more,\n)", "f(\n    k=1,\n    **more,\n)"),
    "several in the line": ("f(\n    a, b,\n    c\n)", "f(\n    a, b,\n    c, k=1\n)"),
    "aligned": ("f(a,\n  b)", "f(a,\n  b,\n  k=1)"),
    "aligned, first holds the line": ("f(a, b,\n  c)", "f(a, b,\n  c, k=1)"),
    "leading commas": ("f(a\n , b\n )", "f(a\n , b\n , k=1\n )"),
    "leading commas and a mapping": ("f(a\n , **more)", "f(a\n , k=1\n , **more)"),
    "hugged list": ("f([\n    1,\n])", "f([\n    1,\n], k=1)"),
    "hugged list and comma": ("f([\n    1,\n],)", "f([\n    1,\n], k=1,)"),
    "tabs": ("if x:\n\tf(\n\t\ta,\n\t)", "if x:\n\tf(\n\t\ta,\n\t\tk=1,\n\t)"),
    "unicode before": ("d['é𝛼'] = f('ü')", "d['é𝛼'] = f('ü', k=1)"),
    "continuation": ("x = 1 + \\\n    f(a)", "x = 1 + \\\n    f(a, k=1)"),
    "continued inside": ("f(a, \\\n  b \\\n  )", "f(a, \\\n  b, k=1 \\\n  )"),
    "closing on the last line": ("f(\n    a,\n    b)", "f(\n    a,\n    b,\n    k=1)"),
    "string over lines": ('f("""\n  a, b)  # no\n""")', 'f("""\n  a, b)  # no\n""", k=1)'),
    "form feed": ("\ff(a)", "\ff(a, k=1)"),
    "decorator": ("@f(a)\ndef g(): pass", "@f(a, k=1)\ndef g(): pass"),
    "in another": ("g(f(a), b)", "g(f(a, k=1), b)"),
    "chain": ("(\n    f(\n        a\n    )\n    .g()\n)", "(\n    f(\n        a,\n        k=1\n    )\n    .g()\n)"),
}


@pytest.mark.parametrize(("before", "after"), ADDED.values(), ids=ADDED)
def test_a_keyword_is_added_in_the_calls_own_style(before: str, after: str) -> None:
    text = Editing(before)
    assert text.apply(text.codemods.set_keyword(text.call(), "k", "1")) == after


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("f(k=2, b=3)", "1", "f(k=1, b=3)"),
        ("f(\n    k=(  # why\n        2\n    ),\n)", "1", "f(\n    k=(  # why\n        1\n    ),\n)"),
        ("f(k = 2)", "a if b else c", "f(k = a if b else c)"),
        ("f(k=2)", "(yield)", "f(k=(yield))"),
        ("f()", "yield", "f(k=(yield))"),
        ("f()", "a, b", "f(k=(a, b))"),
    ],
)
def test_the_value_of_a_keyword_is_replaced(before: str, value: str, after: str) -> None:
    text = Editing(f"def g():\n    {before}" if "yield" in value else before)
    edited = text.apply(text.codemods.set_keyword(text.call(), "k", value))
    assert edited.removeprefix("def g():\n    ") == after


REMOVED = {
    "only": ("f(k=1)", "f()"),
    "only, with comma": ("f(\n    k=1,\n)", "f()"),
    "only, with comment": ("f(\n    # why\n    k=1,\n)", "f(\n    # why\n    \n)"),
    "last": ("f(a, k=1)", "f(a)"),
    "last with comma": ("f(a, k=1,)", "f(a,)"),
    "first": ("f(k=1, b=2)", "f(b=2)"),
    "middle": ("f(a, k=1, b=2)", "f(a, b=2)"),
    "line": ("f(\n    a,\n    k=1,\n    b=2,\n)", "f(\n    a,\n    b=2,\n)"),
    "last line": ("f(\n    a,\n    k=1,\n)", "f(\n    a,\n)"),
    "last line, no comma": ("f(\n    a,\n    k=1\n)", "f(\n    a\n)"),
    "last line, comment above": ("f(\n    a,  # one\n    k=1\n)", "f(\n    a  # one\n)"),
    "last, comment above": ("f(a,  # one\n  k=1)", "f(a  # one\n  )"),
    "last line, backslash above": ("f(a,  # one\n  \\\n  k=1 \n)", "f(a  # one \n)"),
    "end of a line": ("f(a, k=1,\n  b=2)", "f(a,\n  b=2)"),
    "parenthesised": ("f(a, k=(1))", "f(a)"),
    "before a mapping": ("f(k=1, **more)", "f(**more)"),
}


@pytest.mark.parametrize(("before", "after"), REMOVED.values(), ids=REMOVED)
def test_a_keyword_is_removed_with_its_comma(before: str, after: str) -> None:
    text = Editing(before)
    assert text.apply(text.codemods.remove_keyword(text.call(), "k")) == after


def test_a_keyword_that_is_not_there_cannot_be_removed() -> None:
    text = Editing("f(a)")
    assert text.codemods.remove_keyword(text.call(), "k") == NOWHERE


def test_a_positional_argument_is_removed() -> None:
    text = Editing("f((a), b)")
    assert text.apply(text.codemods.remove_argument(text.call(), text.expr("a"))) == "f(b)"


@pytest.mark.parametrize(
    ("source", "lost"),
    [
        ("f(\n    a,\n    k=1,  # why\n)", True),
        ("f(\n    a,  # why\n    k=1,\n)", False),
        ("f(a, k=[  # why\n  1])", True),
        ("f(a, k='# no')", False),
    ],
)
def test_the_comment_of_an_argument_is_known(source: str, lost: bool) -> None:
    text = Editing(source)
    assert text.codemods.would_lose_comment(text.call().keywords[0]) is lost


def test_calls_in_strings_of_several_parts_are_only_edited_where_they_are() -> None:
    # Before Python 3.12 the second part's positions are counted from the first.
    text = Editing('x = f"{a} ü" f"{f(b)}"')
    edit = text.codemods.set_keyword(text.call(), "k", "1")
    assert edit == NOWHERE or text.apply(edit) == 'x = f"{a} ü" f"{f(b, k=1)}"'


def test_calls_in_simple_strings_are_edited() -> None:
    text = Editing('x = f"ü {f(b)} {f(c)}"')
    assert text.apply(text.codemods.set_keyword(text.call(), "k", "1")) == 'x = f"ü {f(b, k=1)} {f(c)}"'


@pytest.mark.parametrize("field", ["{f(b) = }", "{f(b)=!r}", "{(g(f(b)) ) =:>9}"])
def test_what_a_string_shows_as_text_is_not_edited(field: str) -> None:
    text = Editing(f'x = f"{field}"')
    assert text.codemods.set_keyword(text.call(), "k", "1") == NOWHERE


def test_a_comparison_in_a_string_is_edited() -> None:
    text = Editing('x = f"{f(b) == 1}"')
    assert text.apply(text.codemods.set_keyword(text.call(), "k", "1")) == 'x = f"{f(b, k=1) == 1}"'


IN_STRINGS = {
    "a quote": ('f"{f(x)}"', '"cuda"', None),
    "the other quote": ("f'{f(x)}'", '"cuda"', None),
    "a backslash": ('f"{f(x)}"', "'\\\\n'", None),
    "a comment": ('f"{f(x)}"', "d  # why\n", None),
    "a name": ('f"{f(x)}"', "device", 'f"{f(x, k=device)}"'),
}


@pytest.mark.parametrize(("text", "value", "after"), IN_STRINGS.values(), ids=IN_STRINGS)
def test_an_f_string_gets_no_text_that_ends_it_before_python_3_12(text: str, value: str, after: str | None) -> None:
    file = Editing(f"y = {text}\n")
    edit = file.codemods.set_keyword(file.call(), "k", value)
    if after is None:
        assert edit == NOWHERE
        assert file.codemods.replace(file.call(), f"g({value})") == NOWHERE
    else:
        assert file.apply(edit) == f"y = {after}\n"
