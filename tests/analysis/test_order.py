"""What is asked before changes no answer, where functions call each other in circles."""

from __future__ import annotations

import ast

import pytest

from perflint.analysis.program import Program
from perflint.analysis.values import Inference
from perflint.ir.survey import survey
from perflint.syntax.file import SourceFile
from perflint.syntax.tree import Tree

CALLING_EACH_OTHER = """\
import torch


def first(x, depth):
    return second(depth, x)


def second(depth, y):
    return third(y, depth - 1) if depth else y


def third(z, depth):
    return fourth(z, depth) + first(z, depth)


def fourth(u, depth):
    return fifth(u, depth)


def fifth(v, depth):
    return sixth(v) if depth else first(v, 1)


def sixth(w):
    return w + 1


def main(n):
    return third(torch.zeros(n).cuda(), n)
"""
TREE = Tree(SourceFile("a.py", CALLING_EACH_OTHER), ast.parse(CALLING_EACH_OTHER))
NAMES = [
    node
    for node in ast.walk(TREE.module)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in "xyzuvw"
]


def _asked(names: list[ast.Name]) -> dict[tuple[int, int], str]:
    inference = Inference(TREE, Program({"a.py": survey(TREE.module, TREE.source.lines)}))
    return {(name.lineno, name.col_offset): str(inference.kind(name)) for name in names}


@pytest.mark.parametrize("begin", range(len(NAMES)))
def test_functions_that_call_each_other(begin: int) -> None:
    alone = _asked([NAMES[begin]])

    after_all_others = _asked([*NAMES[:begin], *NAMES[begin + 1 :], NAMES[begin]])

    assert all(kind == after_all_others[place] for place, kind in alone.items())
