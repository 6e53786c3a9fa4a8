"""Kinds of all expressions of programs, asked in several orders, and how often the answers differ."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from perflint.analysis.program import Program
from perflint.analysis.values import Kind
from perflint.analysis.values.siblings import Siblings
from perflint.errors import SourceError
from perflint.ir.survey import survey
from perflint.syntax.file import SourceFile
from perflint.syntax.flow import Flow
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree

SEEDS = (0, 1, 2)
ORDERS = ("forward", "reverse", *(f"shuffled by {seed}" for seed in SEEDS))


class Difference(NamedTuple):
    """An expression with the answers it got, by order."""

    path: str
    line: int
    text: str
    answers: tuple[str, ...]

    def __str__(self) -> str:
        said = "; ".join(f"{order}: {answer}" for order, answer in zip(ORDERS, self.answers))
        return f"{self.path}:{self.line}: `{self.text}`: {said}"


def linked(texts: dict[str, str]) -> tuple[Program, dict[str, Tree]]:
    """A program of files, given by path, and their trees. Files that do not parse are left out."""
    trees: dict[str, Tree] = {}
    for path, text in sorted(texts.items()):
        try:
            source = SourceFile(path, text)
            trees[path] = Tree(source, parse(source))
        except SourceError:
            continue
    summaries = {path: survey(tree.module, tree.source.lines) for path, tree in trees.items()}
    program = Program(summaries)
    program.flow = {path: Flow(tree) for path, tree in trees.items()}.get
    return program, trees


def folder_texts(folder: Path) -> dict[str, str]:
    """The Python files of a folder by their paths in it. Files that are no UTF-8 are left out."""
    found = {}
    for file in sorted(folder.rglob("*.py")):
        try:
            found[file.relative_to(folder).as_posix()] = file.read_text("utf-8")
        except UnicodeDecodeError:
            continue
    return found


def programs_in(group: Path) -> Iterator[dict[str, str]]:
    """The texts of each file and of each folder in a folder, by path."""
    for case in sorted(group.iterdir()) if group.is_dir() else ():
        texts = folder_texts(case) if case.is_dir() else {case.name: case.read_text("utf-8")}
        if case.is_dir() or case.suffix == ".py":
            yield texts


def expressions(tree: Tree) -> list[ast.expr]:
    """All expressions of a file that may be asked for, linked."""
    return [node for top in tree.module.body for node in tree.walk(top) if isinstance(node, ast.expr)]


def answers(tree: Tree, program: Program, asked: list[ast.expr]) -> dict[int, Kind]:
    """The kinds of expressions, by their identity, asked of one inference in this order."""
    flow = program.flow(tree.source.path)
    assert flow is not None
    siblings = Siblings(program)
    inference = siblings.of(flow)
    found = {id(node): inference.kind(node) for node in asked}
    siblings.close()
    return found


def told(kind: Kind) -> str:
    """All that a kind says, where it comes from included."""
    return repr(tuple(kind))


def differences(program: Program, trees: dict[str, Tree]) -> Iterator[tuple[int, list[Difference]]]:
    """For each file how many expressions it has, and those whose answers depend on what was asked before."""
    for path, tree in trees.items():
        asked = expressions(tree)
        orders = [asked, asked[::-1], *(random.Random(seed).sample(asked, len(asked)) for seed in SEEDS)]
        given = [answers(tree, program, order) for order in orders]
        found = []
        for node in asked:
            said = tuple(told(each[id(node)]) for each in given)
            if len(set(said)) > 1:
                found.append(Difference(path, node.lineno, ast.unparse(node)[:60], said))
        yield len(asked), found
