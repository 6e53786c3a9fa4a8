"""Calls are plain in the tree that is analysed only where they surely are of what is written."""

from __future__ import annotations

import ast

import pytest

from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse, plainly_parsed


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('getattr(self, "step")(x)', "self.step(x)"),
        ('getattr(self.model, "module").train()', "self.model.module.train()"),
        ("functools.partial(step, model, lr=1)(batch)", "step(model, batch, lr=1)"),
        ("step = self.step\n    return step(x) + step(y)", "step = self.step\n    return self.step(x) + self.step(y)"),
    ],
)
def test_is_plain(text: str, plain: str) -> None:
    assert _unparsed(text) == ast.unparse(ast.parse(f"def f(self, x, y):\n    {plain}\n"))


@pytest.mark.parametrize(
    "text",
    [
        'getattr(self, "step", None)(x)',
        "getattr(self, name)(x)",
        "functools.partial(step, *given)(batch)",
        "functools.partial(step, lr=1)(batch, lr=2)",
        "step = self.step\n    self.step = other\n    step(x)",
        "step = self.step\n    self = other\n    step(x)",
        "step = self.step\n    step = self.other\n    step(x)",
        "step = self.step\n    keep(step)\n    step(x)",
        "for step in steps:\n        step(x)\n    step = self.step",
    ],
)
def test_is_left_as_it_is(text: str) -> None:
    assert _unparsed(text) == ast.unparse(ast.parse(f"def f(self, x, y):\n    {text}\n"))


def test_every_statement_with_one_is_plain() -> None:
    """Those are told by the text; a decorator stands before the line that its function begins on."""
    text = 'a = getattr(x, "y")\nb = 1\n@getattr(x, "z")\n@other\ndef f():\n    c = getattr(f(g(x)), "y")\n'
    plain = "a = x.y\nb = 1\n@x.z\n@other\ndef f():\n    c = f(g(x)).y\n"
    assert ast.unparse(plainly_parsed(SourceFile("a.py", text))) == ast.unparse(ast.parse(plain))


def test_stands_where_the_call_is_written() -> None:
    source = SourceFile("a.py", 'def f(self, x):\n    return getattr(self, "step")(x)\n')
    written, plain = (next(node for node in ast.walk(tree) if isinstance(node, ast.Return)) for tree in _both(source))
    assert isinstance(written.value, ast.Call)
    assert isinstance(plain.value, ast.Call)
    assert ast.get_source_segment(source.text, plain.value.func) == ast.get_source_segment(
        source.text, written.value.func
    )


def _both(source: SourceFile) -> tuple[ast.Module, ast.Module]:
    return parse(source), plainly_parsed(source)


def _unparsed(text: str) -> str:
    return ast.unparse(plainly_parsed(SourceFile("a.py", f"def f(self, x, y):\n    {text}\n")))
