"""Patterns are compiled when they are first used: that they can be is seen here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.system.patterns import pattern

ROOT = Path(__file__).parents[2]
FILES = [
    file
    for folder in ("perflint", "rules")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if "pattern(" in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_every_pattern_compiles_without_a_warning(file: Path, recwarn: pytest.WarningsRecorder) -> None:
    module = __import__(".".join(_module(file)), fromlist=["_"])
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "pattern":
            made = eval(compile(ast.Expression(node), str(file), "eval"), dict(vars(module)))
            assert made.groups >= 0
    assert not list(recwarn)


def test_a_pattern_is_used_as_one_of_re() -> None:
    word = pattern(r"(\w+) ")
    assert word.search("two words") is not None
    assert word.sub("one ", "two words") == "one words"
    assert (word.pattern, word.groups) == (r"(\w+) ", 1)


def _module(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ("perflint", *parts) if parts[0] == "rules" else parts
