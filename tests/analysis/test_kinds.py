"""Reads pinned cases: `# kind: EXPRESSION = WORDS; EXPRESSION = WORDS` behind the line it is about.

WORDS are those of `str(Kind)`. `fresh` and its opposite `aliased`, types of numbers (`bool`, `int`, `half`), ranks
(`1-d`, `many` for one or more), and the certainties `certain` and `likely` count only where a case names them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from perflint.analysis.program import Program
from perflint.analysis.values import Inference, Kind
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.origin import Origin, Provenance
from perflint.analysis.values.ranks import SCALAR
from perflint.analysis.values.siblings import siblings_of
from perflint.finding import Confidence
from perflint.ir.survey import survey
from perflint.syntax.file import SourceFile
from perflint.syntax.flow import Flow
from perflint.syntax.tree import Tree

FOLDER = Path(__file__).parents[2] / "fixtures" / "_engine" / "kinds"
_MARK = "# kind:"


@dataclass(frozen=True)
class Case:
    program: Path
    path: str
    line: int
    expression: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}-{self.expression}"


def programs() -> list[Path]:
    """Files that are programs by themselves, and folders whose files are one program."""
    found = [item for item in FOLDER.iterdir() if item.suffix == ".py" or (item / "__init__.py").exists()]
    return sorted(found)


def files_of(program: Path) -> list[Path]:
    return sorted(program.glob("*.py")) if program.is_dir() else [program]


def cases() -> Iterator[Case]:
    for program in programs():
        for path in files_of(program):
            for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                _, mark, claims = text.partition(_MARK)
                for claim in claims.split(";") if mark else ():
                    expression, _, wanted = claim.rpartition(" = ")
                    yield Case(program, str(path.relative_to(FOLDER)), number, expression.strip(), wanted.strip())


class Loaded:
    """A program of the cases, ready to be asked."""

    def __init__(self, program: Path) -> None:
        trees = {}
        for path in files_of(program):
            source = SourceFile(str(path.relative_to(FOLDER)), path.read_text(encoding="utf-8"))
            trees[source.path] = Tree(source, ast.parse(source.text))
        linked = Program({name: survey(tree.module, tree.source.lines) for name, tree in trees.items()})
        flows = {name: Flow(tree) for name, tree in trees.items()}
        linked.flow = flows.get
        self.trees = trees
        self.inferences = {name: siblings_of(linked).of(flow) for name, flow in flows.items()}

    def kind(self, case: Case) -> Kind:
        tree = self.trees[case.path]
        wanted = ast.unparse(ast.parse(case.expression, mode="eval").body)
        found = [
            node
            for node in ast.walk(tree.module)
            if isinstance(node, ast.expr) and node.lineno == case.line and ast.unparse(node) == wanted
        ]
        if not found:
            raise LookupError(f"{case}: no such expression on the line")
        # Where a line both reads and binds a name, the case is about what it binds.
        found.sort(key=lambda node: not isinstance(getattr(node, "ctx", None), ast.Store))
        return self.inferences[case.path].kind(found[0])


def agrees(kind: Kind, wanted: str) -> bool:
    words = wanted.split()
    extra = {"fresh": kind.fresh, "aliased": not kind.fresh}
    extra |= {dtype.value: kind.dtype is dtype for dtype in Dtype}
    extra |= {f"{rank}-d": kind.rank == rank for rank in (1, 2, 3, 4)}
    extra["many"] = kind.rank is not None and kind.rank != SCALAR
    extra["certain"] = kind.certainty is Confidence.HIGH
    extra["likely"] = kind.certainty is Confidence.MEDIUM
    if not all(extra[word] for word in words if word in extra):
        return False
    return " ".join(word for word in words if word not in extra) == str(kind.but(fresh=False))


ALL = list(cases())


@lru_cache
def loaded(program: Path) -> Loaded:
    return Loaded(program)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_kind(case: Case) -> None:
    kind = loaded(case.program).kind(case)
    assert agrees(kind, case.wanted), f"{case} is {kind} ({kind.certainty.label}), not {case.wanted}"


def test_a_third_of_the_cases_are_look_alikes() -> None:
    """What must come out unknown, or as something that lives on no device."""
    quiet = ("unknown", "number", "string", "none", "sequence", "mapping", "array", "instance", "shape", "dtype")
    silent = [case for case in ALL if case.wanted.split()[0] in quiet or case.wanted == "tensor"]
    assert len(ALL) >= 120
    assert len(silent) * 3 >= len(ALL)


def test_a_helper_keeps_what_each_of_its_callers_gives_apart() -> None:
    text = (
        "import torch\n"
        "def same(x):\n    return x\n"
        "made = same(torch.zeros(2))\nread = same(torch.from_numpy(rows))\nprint(made, read)\n"
    )
    tree = Tree(SourceFile("a.py", text), ast.parse(text))
    call = tree.module.body[-1]
    tree.walk(call)
    made, read = call.value.args  # type: ignore[attr-defined]
    for asked in ((made, read), (read, made)):
        inference = Inference(tree, Program({"a.py": survey(tree.module, tree.source.lines)}))
        why = {node.id: inference.kind(node).origin for node in asked}
        assert why == {
            "made": Origin(Provenance.CONSTRUCTOR, "torch.zeros"),
            "read": Origin(Provenance.CONSTRUCTOR, "torch.from_numpy"),
        }
