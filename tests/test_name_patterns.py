"""Names are evidence in one table, `analysis.naming`: patterns over identifiers elsewhere only become fewer."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("rules", "perflint/analysis", "perflint/ir", "perflint/rule_api")
#: The table of names: what the analyses trust a name to say, and below them what the guards do.
TABLE = (
    *sorted((ROOT / "perflint" / "analysis" / "naming").glob("*.py")),
    ROOT / "perflint" / "analysis" / "evidence.py",
    ROOT / "perflint" / "ir" / "words.py",
)

#: Lower it with each pattern that a fact has replaced.
MOST = {"rules": 3, "perflint/analysis": 5, "perflint/ir": 0, "perflint/rule_api": 6}
#: What makes a pattern of a text, or looks for one in another text.
_OF_RE = frozenset({"compile", "search", "match", "fullmatch", "findall", "finditer"})


def patterns_in(room: str) -> dict[str, int]:
    """By file, how many regular expressions it makes or looks for."""
    found: dict[str, int] = {}
    for file in sorted((ROOT / room).rglob("*.py")):
        if file in TABLE:
            continue
        calls = (node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call))
        made = sum(_makes_pattern(call.func) for call in calls)
        if made:
            found[file.relative_to(ROOT).as_posix()] = made
    return found


def _makes_pattern(func: ast.expr) -> bool:
    if isinstance(func, ast.Name):
        return func.id == "pattern"
    return isinstance(func, ast.Attribute) and func.attr in _OF_RE and ast.unparse(func.value) == "re"


def test_patterns_over_names_become_fewer() -> None:
    for room, most in MOST.items():
        found = patterns_in(room)
        assert sum(found.values()) <= most, f"{room}: a name says nothing by itself; ask a fact, or add it to the table"


def test_a_pattern_is_seen() -> None:
    module = ast.parse("pattern('x')\nre.compile('y')\nre.search('v', name)\nother.compile('z')\npatterns('w')")
    assert sum(_makes_pattern(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)) == 3
