"""Reads pinned cases: `# heat: WORD` behind the line it is about, in files and folders that are small programs.

A comment before the mark says more, separated by commas: `grad on`, `grad off`, `role WORD`, how sure the analysis is,
and `via FILE:LINE -> FILE:LINE` for the route (without `FILE:` in the case's own file). A `def` line is about how often
the function is called, `# inner heat: WORD` about an expression inside a statement. `# wrongly cold: WORD` and
`# wrongly hot: WORD` say what the engine does not see: such a case fails when it comes true, so that the list shrinks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from perflint.analysis.frequency.explain import place_of
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.finding import Heat
from perflint.ir.summary import Summary
from perflint.ir.survey import survey
from perflint.project.configured import CONFIGURED, Configured
from perflint.syntax.roles import holds_tests

FOLDER = Path(__file__).parents[2] / "fixtures" / "_engine" / "heat"
_MARK = re.compile(r"(?:#([^#]*))?#\s*(heat|inner heat|wrongly cold|wrongly hot): (\w+)$")


@dataclass(frozen=True)
class Case:
    program: Path
    path: str
    line: int
    heat: Heat
    extras: tuple[str, ...]
    route: str
    known_wrong: bool

    def __str__(self) -> str:
        name = self.program.name if self.program.suffix else f"{self.program.name}/{self.path}"
        return f"{name}:{self.line}"


def programs() -> list[Path]:
    return sorted(item for item in FOLDER.iterdir() if item.suffix == ".py" or (item.is_dir() and item.stem[0] != "_"))


def files_of(program: Path) -> dict[str, str]:
    """Texts by path as the program sees them."""
    files = sorted(program.rglob("*.py")) if program.is_dir() else [program]
    base = program if program.is_dir() else program.parent
    return {item.relative_to(base).as_posix(): item.read_text(encoding="utf-8") for item in files}


def cases() -> Iterator[Case]:
    for program in programs():
        for path, text in files_of(program).items():
            for number, line in enumerate(text.split("\n"), 1):
                found = _MARK.search(line)
                if found:
                    more, verb, heat = found.groups(default="")
                    words = [item.strip() for item in more.split(",") if item.strip()]
                    route = next((item.removeprefix("via ") for item in words if item.startswith("via ")), "")
                    extras = tuple(item for item in words if not item.startswith("via "))
                    yield Case(program, path, number, Heat[heat.upper()], extras, route, verb.startswith("wrongly"))


def _surveyed(path: str, text: str) -> Summary:
    module = ast.parse(text)
    return survey(module, text.split("\n"), outlined=holds_tests(path, module))


@lru_cache
def linked(program: Path) -> Program:
    texts = files_of(program)
    configurations = sorted(str(item) for item in program.rglob("*") if item.suffix in CONFIGURED)
    summaries = {path: _surveyed(path, text) for path, text in texts.items()}
    return Program(summaries, configured=Configured(configurations))


def place(case: Case) -> tuple[Scope, int]:
    """Where the first word of the case's line stands; a `def` line stands for the function it makes."""
    text = files_of(case.program)[case.path].split("\n")[case.line - 1]
    column = len(text) - len(text.lstrip())
    program = linked(case.program)
    if re.match(r"\s*(?:async )?def ", text):
        functions = program.summaries[case.path].functions
        (name,) = (name for name, facts in functions.items() if facts.line == case.line and not name.startswith("<"))
        return Scope(case.path, name), -1
    return place_of(program, case.path, case.line, column)


def told(case: Case, extra: str) -> str:
    """What the program says where a case says `extra`."""
    program = linked(case.program)
    scope, context = place(case)
    if extra.startswith("grad"):
        return "grad off" if program.grad_off(scope, context) else "grad on"
    if extra.startswith("role"):
        return f"role {program.role(scope, context)}"
    return program.route(scope, context)[2].label


ALL = list(cases())


def _parameter(case: Case) -> object:
    marks = [pytest.mark.xfail(reason="a known wrong")] if case.known_wrong else []
    return pytest.param(case, id=str(case), marks=marks)


@pytest.mark.parametrize("case", [_parameter(case) for case in ALL])
def test_heat(case: Case) -> None:
    program = linked(case.program)
    scope, context = place(case)
    heat, hops, _ = program.route(scope, context)
    way = " -> ".join(f"{hop.path}:{hop.line} `{hop.text}`" for hop in hops)
    assert heat == program.heat_at(scope, context)
    assert heat.name.lower() == case.heat.name.lower(), f"by way of {way or 'nothing'}"
    assert [told(case, extra) for extra in case.extras] == list(case.extras)
    if case.route:
        short = " -> ".join(f"{'' if hop.path == case.path else hop.path + ':'}{hop.line}" for hop in hops)
        assert short == case.route


def test_a_third_of_the_cases_are_cold() -> None:
    cold = [case for case in ALL if case.heat is Heat.ONCE]
    assert len(ALL) >= 80
    assert len(cold) * 3 >= len(ALL)


@pytest.mark.parametrize("program", programs(), ids=lambda item: item.name)
def test_everything_hot_says_why(program: Path) -> None:
    """A route ends where the heat comes from, and no step of it is invented."""
    made = linked(program)
    texts = files_of(program)
    for path, summary in made.summaries.items():
        for qualname, facts in summary.functions.items():
            for context in range(-1, len(facts.contexts)):
                heat, hops, _ = made.route(Scope(path, qualname), context)
                assert bool(hops) is (heat > Heat.ONCE)
                assert all(1 <= hop.line <= len(texts[hop.path].split("\n")) and hop.text for hop in hops)


def test_heat_does_not_hang_on_how_nodes_are_dumped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.15 leaves `ctx=Load()` out, and `ctx=Store()` not."""
    text = (FOLDER / "guards_in_loop.py").read_text(encoding="utf-8")
    known = survey(ast.parse(text), text.splitlines())
    dump = ast.dump
    monkeypatch.setattr(ast, "dump", lambda node: dump(node).replace(", ctx=Load()", ""))
    assert survey(ast.parse(text), text.splitlines()) == known


def test_a_choice_between_names_that_lead_to_each_other_ends() -> None:
    text = """
from torch.utils.data import DataLoader
def f(data, n=None):
    every = n or limit
    limit = every or 3
    for i, batch in enumerate(DataLoader(data)):
        if i % every == 0:
            print(i)
"""
    program = Program({"a.py": survey(ast.parse(text), text.splitlines())})
    assert program.heat_at(Scope("a.py", "f"), 0) is Heat.STEP
