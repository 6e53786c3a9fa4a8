"""Whatever text is given, there is an answer: findings whose spans hold what was matched, or an error entry."""

from __future__ import annotations

import ast
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import faults, read
from grammar import programs
from mutants import mutants

from perflint.engine import Options, check, worker
from perflint.finding import Finding, Impact, Report
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.context import Context
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Classes, Functions, Rule

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
#: Mutated programs. `PERFLINT_MUTANTS` asks for more.
MUTANTS = int(os.environ.get("PERFLINT_MUTANTS", "150"))
LOOP = "def train(model, loader, optimizer):\n    for batch in loader:\n        loss = model(batch.cuda()).sum()\n"
TAIL = "        loss.backward()\n        optimizer.step()\n        gc.collect()\n"


def checked(folder: Path, *, jobs: int = 1) -> Report:
    settings = load_settings(folder)
    rules = [rule() for rule in load_rules()]
    return check(discover([folder], settings), Options(settings, rules, cache=False, jobs=jobs, everything=True))


def sane(report: Report, folder: Path) -> None:
    assert not list(faults(report, read(report, folder)))


def test_mutated_training_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perflint.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    files = sorted(file for file in FIXTURES.rglob("*.py") if ".unsafe" not in file.name and ".fixed" not in file.name)
    made = mutants(files, random.Random(20))
    for number in range(MUTANTS):
        (tmp_path / f"m{number}.py").write_bytes(next(made))
    report = checked(tmp_path, jobs=2)
    sane(report, tmp_path)
    assert report.findings


@pytest.mark.parametrize(
    "text",
    [
        b"x = '" + b"a" * 1_000_000 + b"'\n",
        b"x = [" + b"1, " * 50_000 + b"]\n",
        b"x = " + b"(" * 5_000 + b"1" + b")" * 5_000 + b"\n",
        b"x = " + b"-" * 20_000 + b"1\n",
        b"x = a" + b".b" * 5_000 + b"\n",
        b"x = a" + b"(1)" * 3_000 + b"\n",
        b"x = 1" + b" + 1" * 20_000 + b"\n",
        b"".join(b" " * depth + b"if x:\n" for depth in range(95)) + b" " * 95 + b"pass\n",
        b"".join(b" " * depth + b"if x:\n" for depth in range(5_000)) + b" " * 5_000 + b"pass\n",
        b"if x == 0:\n    pass\n" + b"".join(b"elif x == %d:\n    pass\n" % number for number in range(5_000)),
        b"if x == 0:\n    pass\n" + b"".join(b"elif x == %d:\n    pass\n" % number for number in range(100_000)),
        b"x = " + b"9" * 100_000 + b"\n",
        b"\0\0\0",
        b"x = 1\0\n",
        b"\xef\xbb\xbf\xef\xbb\xbfx = 1\n",
        b"\xff\xfex\0",
        b"# coding: utf-7\nx = 1\n",
        b"# coding: rot13\nk = 1\n",
        b"# coding: \xff\n",
        b"\r\r\r",
        b"\x0c\x0c",
        b"def f():\n\treturn 1\n        return 2\n",
        b"f'{" * 200,
        b"lambda: " * 3_000 + b"1\n",
        b"@d\n" * 20_000 + b"def f(): pass\n",
        b"async " * 1_000,
        b"x = 1;" * 10_000,
        b"with a" + b", a" * 5_000 + b": pass\n",
        b"def f(" + b"".join(b"a%d=1, " % number for number in range(20_000)) + b"): pass\n",
        b"match x:\n" + b"".join(b"    case %d: pass\n" % number for number in range(10_000)),
    ],
    ids=lambda text: f"{text[:12]!r}x{len(text)}",
)
def test_extreme_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    (tmp_path / "perflint.toml").write_text("")
    (tmp_path / "extreme.py").write_bytes(text)
    (tmp_path / "within.py").write_bytes(
        b"import gc\n"
        + LOOP.encode()
        + b"".join(b"        " + line + b"\n" for line in text.splitlines()[:1])
        + TAIL.encode()
    )
    (tmp_path / "train.py").write_text("import gc\n" + LOOP + TAIL)
    monkeypatch.chdir(tmp_path)
    before = sys.getrecursionlimit()
    report = checked(tmp_path)
    assert sys.getrecursionlimit() == before
    sane(report, tmp_path)
    assert "TPL303" in {finding.code for finding in report.findings if finding.path == "train.py"}


@pytest.mark.parametrize(
    "before", ["\U0001f525", "e\u0301", "\u202e", "\u200d", "\t", "\ufeff", "\U00020000\U0001f469\u200d\U0001f4bb"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
def test_spans_hold_what_was_matched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, end: str, mark: str
) -> None:
    tail = TAIL.replace("        gc.collect()", f'        note = "{before}"; gc.collect()  # {before}')
    text = mark + ("import gc\n" + f"# {before}\n" + LOOP + tail).replace("\n", end)
    (tmp_path / "perflint.toml").write_text("")
    (tmp_path / "train.py").write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    found = [one for one in checked(tmp_path).findings if one.code == "TPL303"]
    assert len(found) == 1
    span = found[0].span
    line = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))[span.line - 1]
    assert line[span.column - 1 : span.end_column - 1] == "gc.collect()"


class _Definitions(Rule):
    code = "TPL999"
    name = "definitions"
    impact = Impact.LOW
    listens = (Functions(), Classes())

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        yield self.finding(node, ctx, "a definition")


@pytest.mark.parametrize(
    "place",
    [
        "f = lambda x=(lambda: gc.collect()): x",
        "f = lambda *, x=(lambda: gc.collect()): x",
        "def f(x=lambda: gc.collect()): pass",
        "def f(x: (lambda: gc.collect())): pass",
        "def f(*x: (lambda: gc.collect()), **y: (lambda: gc.collect())): pass",
        "def f() -> (lambda: gc.collect()): pass",
        "x: (lambda: gc.collect()) = 1",
        "assert (lambda: gc.collect()), (lambda: gc.collect())",
        "match x:\n            case _ if (lambda: gc.collect()): pass",
        "with (lambda: gc.collect())() as x[lambda: gc.collect()]: pass",
        "del x[lambda: gc.collect()]",
        "x[lambda: gc.collect()] += 1",
        "for x[lambda: gc.collect()] in y: pass",
        "class A(B, m=lambda: gc.collect()): pass",
        "@f(lambda: gc.collect())\n        class A: pass",
        "f'{(lambda: gc.collect())():{(lambda: gc.collect())()}}'",
        "[x async for x in y if (lambda: gc.collect())]",
        "raise f(lambda: gc.collect()) from f(lambda: gc.collect())",
    ],
)
def test_functions_without_a_name_may_stand_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "perflint.toml").write_text("")
    (tmp_path / "train.py").write_text("import gc\n" + LOOP + f"        {place}\n" + TAIL)
    monkeypatch.chdir(tmp_path)
    report = checked(tmp_path)
    assert not report.errors
    sane(report, tmp_path)


def test_programs_that_nobody_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perflint.toml").write_text("")
    for number, program in enumerate(programs(random.Random(21), MUTANTS)):
        (tmp_path / f"m{number}.py").write_bytes(program)
    monkeypatch.chdir(tmp_path)
    report = checked(tmp_path, jobs=2)
    assert not report.errors
    assert report.findings
    sane(report, tmp_path)


@pytest.mark.parametrize("part", ["survey", "silence"])
def test_a_mistake_of_ours_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    (tmp_path / "perflint.toml").write_text("")
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("import gc\n" + LOOP + TAIL + f"# {name}\n")
    monkeypatch.chdir(tmp_path)
    works = getattr(worker, part)

    def fails(*arguments: Any, **options: Any) -> Any:
        lines = arguments[0].lines if part == "silence" else arguments[1]
        if "# b.py" in lines:
            raise KeyError("mistake")
        return works(*arguments, **options)

    monkeypatch.setattr(worker, part, fails)
    report = checked(tmp_path)
    assert [(one.path, "KeyError: 'mistake'" in one.message) for one in report.errors] == [("b.py", True)]
    assert {one.path for one in report.findings} == {"a.py", "c.py"}


def test_definitions_are_pointed_at_by_their_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perflint.toml").write_text("")
    (tmp_path / "short.py").write_text(
        "def e(): pass\nasync  def  d(x: int): pass\nclass  s: pass\n@f\nclass a(b): pass\ndef \\\n    f(): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    settings = load_settings(tmp_path)
    report = check(discover(["."], settings), Options(settings, [_Definitions()], cache=False))
    lines = (tmp_path / "short.py").read_text().splitlines()
    texts = [lines[one.span.line - 1][one.span.column - 1 : one.span.end_column - 1] for one in report.findings]
    assert texts == ["def e", "async  def  d", "class  s", "class a", "def \\"]
