"""Functions have one name, in the tree of a file and in what summaries say of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.ir.summary import MODULE
from perflint.ir.survey import survey
from perflint.syntax.qualnames import qualnames

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
AGAIN = """
from typing import overload
@overload
def size(x: int) -> int: ...
def size(x):
    def inner(y):
        return y
    if x:
        def inner(y):
            def deep(): pass
            return deep
    return inner(x)
class Net:
    @property
    def width(self): return 1
    @width.setter
    def width(self, value):
        def note(): pass
class Net:
    def width(self): return 2
match size(1):
    case 1:
        def _(): pass
    case _:
        def _(): pass
try:
    def _(): pass
finally:
    async def _(): pass
"""


def names(text: str) -> tuple[set[str], set[str]]:
    module = ast.parse(text)
    functions = {name for name, node in qualnames(module) if not isinstance(node, ast.ClassDef)}
    told = survey(module, text.splitlines()).functions
    return functions, {name for name in told if name != MODULE and "<lambda" not in name.rpartition(".")[2]}


@pytest.mark.parametrize("folder", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_fixtures(folder: str) -> None:
    for file in sorted((FIXTURES / folder).rglob("*.py")):
        functions, told = names(file.read_text(encoding="utf-8"))
        assert functions == told, file


def test_what_is_defined_again_gets_a_number() -> None:
    functions, told = names(AGAIN)
    assert functions == told
    assert {"size.<locals>.inner~2.<locals>.deep", "Net.width~2.<locals>.note", "Net.width~3", "_~4"} <= functions
    assert "size~overload" in functions
