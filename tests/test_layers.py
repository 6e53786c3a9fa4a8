"""Arrows point down: what each room of the engine may import, held against every import statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

_WORDS = {"errors", "finding", "system.patterns"}
_ANALYSIS = _WORDS | {"syntax", "ir", "torch_model", "analysis"}
_ENGINE = _ANALYSIS | {"rule_api", "project", "engine", "system"}

# Package (or module) below `perflint/` -> what it may import besides itself: packages, or single modules of them.
MAY_IMPORT = {
    "errors": set(),
    "finding": set(),
    "system": {"errors"},
    "syntax": _WORDS | {"system.globs"},
    "torch_model": _WORDS,
    "ir": _WORDS | {"syntax", "torch_model"},
    "analysis": _WORDS | {"syntax", "ir", "torch_model"},
    "fixes": _WORDS | {"syntax", "system.atomic"},
    # `fixes` builds the edits that a rule asks its context for.
    "rule_api": _ANALYSIS | {"fixes", "system.entry_points"},
    "api": _ANALYSIS | {"rule_api", "fixes"},
    # A rule's metadata is handed to the reports; they never see the engine that found something.
    "report": _WORDS | {"syntax.notebook_json", "rule_api.rule", "rule_api.page"},
    # A configuration names an output format and is told when there is none such.
    "project": _WORDS | {"syntax", "torch_model", "report", "rule_api.rule", "system"},
    "engine": _ENGINE | {"fixes"},
    # Counts on a simulated device are observed.
    "verify": _ENGINE | {"fixes", "observe"},
    # What a program did, beside what is found in it.
    "observe": _ENGINE | {"fixes", "report"},
    "testing": _ENGINE | {"fixes"},
}
#: Rooms at the top: they may use everything below, and nothing below uses them.
TOP = {"cli", "__main__", "lsp", "codemods"}

HEAVY = {"click", "libcst", "numpy", "packaging", "pathspec", "rich", "scipy", "torch"}


def imports(file: Path, *, top_level_only: bool = False) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything `file` imports, relative imports resolved."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = _loaded_at_once(tree.body) if top_level_only else ast.walk(tree)
    package = file.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            # `from perflint import finding` names a room; `from perflint.finding import Fix` does not name another.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def _loaded_at_once(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from _loaded_at_once(statement.orelse)
            continue
        yield statement
        if isinstance(statement, (ast.If, ast.Try)):
            yield from _loaded_at_once([*statement.body, *statement.orelse])


def room_of(file: Path) -> str:
    return file.relative_to(ROOT / "perflint").with_suffix("").parts[0]


ENGINE = sorted(file for file in (ROOT / "perflint").rglob("*.py") if file != ROOT / "perflint" / "__init__.py")
RULES = sorted((ROOT / "rules").rglob("*.py"))


@pytest.mark.parametrize("file", ENGINE, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_room_imports_only_what_lies_below_it(file: Path) -> None:
    room = room_of(file)
    assert room in MAY_IMPORT or room in TOP, f"tests/test_layers.py says nothing about perflint/{room}: where is it?"
    wrong = []
    for line, name in imports(file):
        parts = name.split(".")
        if parts[0] in {"rules", "fixtures"} or parts[:2] == ["perflint", "rules"]:
            wrong.append(f"line {line}: the engine names the rules ({name})")
        if parts[0] != "perflint" or len(parts) == 1 or parts[1] in {room, "__version__", "fixtures"}:
            continue
        if (room, parts[1]) in {("cli", "lsp"), ("codemods", "cli")}:
            continue  # the command that starts the server; fixes as the command line makes them
        if parts[1] in TOP - {room} and room != "__main__":
            wrong.append(f"line {line}: nothing imports {name}")
        elif room not in TOP and not {parts[1], ".".join(parts[1:3])} & MAY_IMPORT[room]:
            wrong.append(f"line {line}: {room} may not know {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_rule_imports_the_stable_face_and_its_helpers(file: Path) -> None:
    wrong = []
    for line, name in imports(file):
        parts = name.split(".")
        if parts[0] == "perflint" and parts[:2] != ["perflint", "api"]:
            wrong.append(f"line {line}: {name} is no part of perflint.api")
        if parts[0] == "rules" and not parts[1].startswith("_"):
            wrong.append(f"line {line}: a rule builds on helpers, not on another rule ({name})")
    assert not wrong, "\n".join(wrong)


_MADE_OF = {"cli": {"click"}, "codemods": {"libcst"}}


@pytest.mark.parametrize("file", [*ENGINE, *RULES], ids=lambda file: file.relative_to(ROOT).as_posix())
def test_nothing_heavy_is_imported_before_it_is_needed(file: Path) -> None:
    # click is what the command line is made of, and loads fast; codemods are imported by libcst's own tool only.
    allowed = _MADE_OF.get(room_of(file), set()) if file in ENGINE else set()
    if _records(file):
        allowed = {"torch"}
    found = {name.split(".")[0] for _, name in imports(file, top_level_only=True)} & HEAVY
    assert not found - allowed


#: Made of torch: they stand in for its parts, and run in the process of the observed program only.
_RECORDING = ("perflint.observe.device", "perflint.observe.recording")


def _records(file: Path) -> bool:
    return file.relative_to(ROOT).as_posix().replace("/", ".").startswith(_RECORDING)


@pytest.mark.parametrize(
    "file", [file for file in ENGINE if not _records(file)], ids=lambda file: file.relative_to(ROOT).as_posix()
)
def test_what_is_made_of_torch_is_imported_when_it_is_needed(file: Path) -> None:
    assert not [name for _, name in imports(file, top_level_only=True) if name.startswith(_RECORDING)]


def test_the_check_sees_an_upward_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "perflint" / "syntax" / "sample.py"
    file.parent.mkdir(parents=True)
    file.write_text("def late():\n    from perflint import engine\n    from ..cli import main\n")
    monkeypatch.setattr("test_layers.ROOT", tmp_path)
    with pytest.raises(
        AssertionError, match=r"may not know perflint\.engine(.|\n)*nothing imports perflint\.cli\.main"
    ):
        test_a_room_imports_only_what_lies_below_it(file)
