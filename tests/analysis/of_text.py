"""The facts of one file that is given as text, and the nodes in it that a test asks about."""

from __future__ import annotations

import ast
from typing import TypeVar

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.program import Program
from perflint.ir.survey import survey
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree

Node = TypeVar("Node", bound=ast.AST)


def facts_of(text: str, path: str = "a.py") -> FileFacts:
    source = SourceFile(path, text)
    tree = Tree(source, parse(source))
    return FileFacts(tree, Program({path: survey(tree.module, source.lines)}))


def node_at(facts: FileFacts, text: str, kind: type[Node]) -> Node:
    """The last node of a kind that is written so."""
    return [part for part in ast.walk(facts.tree.module) if isinstance(part, kind) and facts.text(part) == text][-1]


def call_at(facts: FileFacts, text: str) -> ast.Call:
    return node_at(facts, text, ast.Call)
