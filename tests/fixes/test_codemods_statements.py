from __future__ import annotations

import pytest
from editing import Editing

from perflint.fixes.layout import NOWHERE

DELETED = {
    "line": ("a\nx()\nb\n", "a\nb\n"),
    "comment behind": ("a\nx()  # why\nb\n", "a\nb\n"),
    "comment above": ("a\n# why\nx()\nb\n", "a\n# why\nb\n"),
    "last line": ("a\nx()\n", "a\n"),
    "last line without end": ("a\nx()", "a"),
    "only one": ("x()\n", ""),
    "only one of a block": ("if a:\n    x()  # why\nb\n", "if a:\n    pass  # why\nb\n"),
    "only one of an else": ("if a:\n    b\nelse:\n    x()\n", "if a:\n    b\nelse:\n    pass\n"),
    "only one of a finally": ("try:\n    b\nfinally:\n    x()\n", "try:\n    b\nfinally:\n    pass\n"),
    "only one of a handler": ("try:\n    b\nexcept E:\n    x()\n", "try:\n    b\nexcept E:\n    pass\n"),
    "only one of a case": ("match a:\n    case 1:\n        x()\n", "match a:\n    case 1:\n        pass\n"),
    "one-line body": ("if a: x()\nb\n", "if a: pass\nb\n"),
    "one-line body, first": ("if a: x(); b\n", "if a: b\n"),
    "one-line body, last": ("if a: b; x()\n", "if a: b\n"),
    "first of a line": ("x(); a  # c\n", "a  # c\n"),
    "middle of a line": ("a; x(); b\n", "a; b\n"),
    "last of a line": ("a; x()  # c\n", "a  # c\n"),
    "last of a line, semicolon": ("a; x();\n", "a;\n"),
    "semicolon behind": ("a\nx();\nb\n", "a\nb\n"),
    "semicolon behind the last of a line": ("a; x();\nif b: c\n", "a;\nif b: c\n"),
    "semicolon and continuation": ("a; \\\n  x()\nb\n", "a\nb\n"),
    "several lines": ("a\nx() if y(\n  1\n) else 2\nb\n", "a\nb\n"),
    "several lines and another": ("if 1:\n  x() if y(\n  1\n  ) else 2; b\n", "if 1:\n  b\n"),
    "tabs": ("if a:\n\tx()\n\tb\n", "if a:\n\tb\n"),
    "form feed": ("a\n\fx()\nb\n", "a\nb\n"),
    "unicode": ("a = 'é'; x(); b\n", "a = 'é'; b\n"),
    "string like a comment": ('a\nx("""\n# no\n""")\nb\n', "a\nb\n"),
}


@pytest.mark.parametrize(("before", "after"), DELETED.values(), ids=DELETED)
def test_a_statement_is_deleted(before: str, after: str) -> None:
    file = Editing(before)
    statement = file.tree.statement_of(file.call("x"))
    assert file.apply(file.codemods.delete_statement(statement)) == after


def test_a_decorated_function_goes_with_its_decorators() -> None:
    file = Editing("a\n@b\n@ c(1)\ndef f():\n    pass\nd\n")
    assert file.apply(file.codemods.delete_statement(file.function("f"))) == "a\nd\n"


def test_an_elif_is_deleted_whole() -> None:
    file = Editing("if a:\n    b\nelif c:\n    d\ne\n")
    assert file.apply(file.codemods.delete_statement(file.statement("if c:"))) == "if a:\n    b\ne\n"


@pytest.mark.parametrize(
    ("source", "lost"),
    [
        ("a\nx()  # why\n", True),
        ("a\nx(  # why\n)\n", True),
        ("a\nx('# no')\n", False),
        ("a; x()  # why\n", False),
        ("if a:\n    x()  # why\n", False),
        ("# above\nx()\n", False),
    ],
)
def test_a_comment_that_goes_with_a_statement_is_known(source: str, lost: bool) -> None:
    file = Editing(source)
    assert file.codemods.would_lose_comment(file.tree.statement_of(file.call("x"))) is lost


SWAPPED = {
    "lines": ("x()\ny()\n", "y()\nx()\n"),
    "comments behind": ("x()  # one\ny()  # two\n", "y()  # two\nx()  # one\n"),
    "comment on both": ("# both\nx()\ny()\n", "# both\ny()\nx()\n"),
    "comment on the second": ("x()\n# two\ny()\n", "# two\ny()\nx()\n"),
    "comment on each": ("# one\nx()\n# two\ny()\n", "# two\ny()\n# one\nx()\n"),
    "comment further left": ("if a:\n  x()\n# two\n  y()\n", "if a:\n# two\n  y()\n  x()\n"),
    "a line": ("x(); y()  # c\n", "y(); x()  # c\n"),
    "a block": ("if a:\n\t# two\n\tx()\n\ty(\n\t 1)\n", "if a:\n\t# two\n\ty(\n\t 1)\n\tx()\n"),
    "a blank line": ("x()\n\ny()\n", "y()\n\nx()\n"),
    "no end of line": ("x()\ny()  # c", "y()  # c\nx()"),
    "mixed": ("a; x()\ny()\n", "a; y()\nx()\n"),
    "one-line body": ("if a: x(); y()\n", "if a: y(); x()\n"),
}


@pytest.mark.parametrize(("before", "after"), SWAPPED.values(), ids=SWAPPED)
def test_two_statements_are_swapped(before: str, after: str) -> None:
    file = Editing(before)
    first, second = (file.tree.statement_of(file.call(name)) for name in "xy")
    assert file.apply(file.codemods.swap_statements(first, second)) == after


INSERTED = {
    "line": ("a\nx()\n", "a\nnew()\nx()\n", "a\nx()\nnew()\n"),
    "comment": ("x()  # c\nb\n", "new()\nx()  # c\nb\n", "x()  # c\nnew()\nb\n"),
    "tabs": ("if a:\n\tx()\n", "if a:\n\tnew()\n\tx()\n", "if a:\n\tx()\n\tnew()\n"),
    "a line of several": ("a; x(); b\n", "a; new(); x(); b\n", "a; x(); new(); b\n"),
    "one-line body": ("if a: x()\n", "if a: new(); x()\n", "if a: x(); new()\n"),
    "no end of line": ("x()", "new()\nx()", "x()\nnew()"),
    "several lines": ("if a:\n  x(\n1\n )\n", "if a:\n  new()\n  x(\n1\n )\n", "if a:\n  x(\n1\n )\n  new()\n"),
}


@pytest.mark.parametrize(("source", "before", "after"), INSERTED.values(), ids=INSERTED)
def test_a_statement_is_inserted(source: str, before: str, after: str) -> None:
    file = Editing(source)
    statement = file.tree.statement_of(file.call("x"))
    assert file.apply(file.codemods.insert_before(statement, "new()")) == before
    assert file.apply(file.codemods.insert_after(statement, "new()")) == after


def test_lines_inserted_above_a_function_stand_above_its_decorators() -> None:
    file = Editing("class A:\n    @b\n    def f(self): pass\n")
    edit = file.codemods.insert_before(file.function("f"), "if 1:\n    new()")
    assert file.apply(edit) == "class A:\n    if 1:\n        new()\n    @b\n    def f(self): pass\n"


def test_a_compound_statement_is_not_squeezed_into_a_line() -> None:
    file = Editing("a; x()\n")
    statement = file.tree.statement_of(file.call("x"))
    assert file.codemods.insert_before(statement, "if 1: new()") == NOWHERE


def test_a_decorator_goes_right_above_the_function() -> None:
    file = Editing("class A:\n\t@property\n\t# why\n\tdef f(self): pass\n")
    edited = file.apply(file.codemods.decorate(file.function("f"), "@torch.no_grad()"))
    assert edited == "class A:\n\t@property\n\t# why\n\t@torch.no_grad()\n\tdef f(self): pass\n"


def test_a_block_is_not_swapped_onto_a_line_of_several() -> None:
    file = Editing("a; x()\nif b:\n    c\n")
    assert file.codemods.swap_statements(file.statement("x()"), file.statement("if b:")) == (NOWHERE,)
