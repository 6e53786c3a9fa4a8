"""Pairs of bindings are taken apart only where no value reads what a target before it is given, and edited whole."""

from __future__ import annotations

import ast

import pytest

from perflint.fixes.codemods import Codemods
from perflint.fixes.layout import NOWHERE
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import plainly_parsed
from perflint.syntax.tree import Tree


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("loss, _ = model(x), None", "loss = model(x)\n_ = None"),
        ("a, b, c = 1, 2, 3", "a = 1\nb = 2\nc = 3"),
        ("a, b = (f(x),\n  g(y))", "a = f(x)\nb = g(y)"),
        ("self.loss, total = f(x), 0", "self.loss = f(x)\ntotal = 0"),
        ("if x:\n  a, b = f(x), g(y)", "if x:\n  a = f(x)\n  b = g(y)"),
        (
            "try:\n  f()\nexcept ValueError:\n  a, b = f(x), g(y)",
            "try:\n  f()\nexcept ValueError:\n  a = f(x)\n  b = g(y)",
        ),
        ("match x:\n  case 1:\n    a, b = f(x), g(y)", "match x:\n  case 1:\n    a = f(x)\n    b = g(y)"),
    ],
)
def test_is_taken_apart(text: str, plain: str) -> None:
    assert _unparsed(text) == ast.unparse(ast.parse(plain))


@pytest.mark.parametrize(
    "text",
    [
        "a, b = b, a",
        "a, b = f(x), a + 1",
        "self.a, b = f(x), g(self.a)",
        "self.a, b = f(x), g(y)",
        "a, b = f(x)",
        "a, *b = f(x), 1, 2",
        "a, b = c = f(x), 1",
        "a[i], b = f(x), 1",
        "a, b = (c := 1), 2",
    ],
)
def test_is_left_as_it_is(text: str) -> None:
    assert _unparsed(text) == ast.unparse(ast.parse(text))


def test_parts_stand_one_after_the_other_and_are_edited_as_one() -> None:
    source = SourceFile("a.py", "first()\na, b = f(x), g(y)\n")
    tree = Tree(source, plainly_parsed(source))
    before, one, other = tree.module.body
    edit = Codemods(tree)
    assert isinstance(one, ast.Assign)
    assert isinstance(other, ast.Assign)
    assert (tree.text(one), tree.text(other)) == ("a, b = f(x)", "g(y)")
    assert [tree.text(each.value) for each in (one, other)] == ["f(x)", "g(y)"]
    assert edit.delete_statement(other) == (NOWHERE,)
    assert edit.replace(other, "pass") == NOWHERE
    assert edit.swap_statements(before, one) == (NOWHERE,)
    assert edit.insert_before(other, "x = 1") == edit.insert_before(one, "x = 1") != NOWHERE


def _unparsed(text: str) -> str:
    return ast.unparse(plainly_parsed(SourceFile("a.py", f"{text}\n")))
