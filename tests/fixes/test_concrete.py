"""libcst's nodes for the nodes that rules are shown, and edits made of them."""

import ast

import libcst as cst
import libcst.matchers as m
import pytest
from libcst.metadata import ParentNodeProvider

from perflint.errors import RuleError
from perflint.fixes.concrete import Concrete
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree

TEXT = """\
@decorated
def f(a, *rest, key=None):
    s = "\u65e5\u672c"; g((h(a)), key=a)  # after a wide text
    return sum(x for x in rest), [*rest]


class C(Base): pass
if a: b
"""


def tree_of(text: str) -> Tree:
    source = SourceFile("m.py", text)
    return Tree(source, parse(source))


@pytest.fixture
def concrete() -> Concrete:
    return Concrete(tree_of(TEXT))


def nodes(concrete: Concrete, *types: type[ast.AST]) -> list[ast.AST]:
    return [node for node in ast.walk(concrete.tree.module) if isinstance(node, types)]


def test_every_expression_and_statement_has_its_node(concrete: Concrete) -> None:
    for node in nodes(concrete, ast.expr, ast.stmt):
        found = concrete.node_of(node)
        if isinstance(node, ast.Name):
            assert isinstance(found, cst.Name)
            assert found.value == node.id
        if isinstance(node, ast.Call):
            assert isinstance(found, cst.Call)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            assert isinstance(found, (cst.FunctionDef, cst.ClassDef))
            assert found.name.value == node.name


def test_metadata_is_that_of_libcst(concrete: Concrete) -> None:
    (call,) = (node for node in nodes(concrete, ast.Call) if ast.unparse(node) == "h(a)")
    parent = concrete.metadata(ParentNodeProvider, concrete.node_of(call))
    assert m.matches(parent, m.Arg())


def test_a_replaced_node_changes_nothing_around_it(concrete: Concrete) -> None:
    (call,) = (node for node in nodes(concrete, ast.Call) if ast.unparse(node) == "h(a)")
    old = concrete.node_of(call)
    (edit,) = concrete.replace(old, cst.parse_expression("other(1)"))
    assert edit.text == "other(1)"
    line = TEXT.splitlines()[edit.span.line - 1]
    assert line[edit.span.column - 1 : edit.span.end_column - 1] == "h(a)"


def test_what_has_no_place_is_said(concrete: Concrete) -> None:
    with pytest.raises(RuleError, match="no node for this arguments"):
        concrete.node_of(nodes(concrete, ast.arguments)[0])
