"""Modes of modules are plain in the tree that is analysed only where they surely are of modules."""

from __future__ import annotations

import ast

import pytest

from perflint.syntax.file import SourceFile
from perflint.syntax.parse import plainly_parsed


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("net.train(False)\nnet(x)", "net.eval()\nnet(x)"),
        ("net.train(mode=False)\nnet.cuda()", "net.eval()\nnet.cuda()"),
        ("self.net.train(True)\nself.net(x)", "self.net.train()\nself.net(x)"),
        ("x = Variable(x, requires_grad=False)", "x = Variable(x)"),
    ],
)
def test_is_plain(text: str, plain: str) -> None:
    assert _unparsed(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        "session.train(False)",
        "net.train(False)\nsubnet(x)",
        "net.train(False, 3)\nnet(x)",
        "net.train(mode)\nnet(x)",
        "found = net.train(False)\nnet(x)",
        "x = Variable(x, requires_grad=True)",
        "x = Parameter(x, requires_grad=False)",
    ],
)
def test_is_left_as_it_is(text: str) -> None:
    assert _unparsed(text) == text


def _unparsed(text: str) -> str:
    return ast.unparse(plainly_parsed(SourceFile("module.py", text + "\n")))
