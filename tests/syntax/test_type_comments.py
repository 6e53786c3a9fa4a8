"""Types in comments are annotations, and stand where they are written."""

from __future__ import annotations

import ast

from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse

TEXT = """\
class Criterion:
    def loss(self, boxes, indices=None):
        # type: (list[Tensor], Optional[Tensor]) -> Tensor
        return boxes

    def one(
        self,
        boxes,  # type: Tensor
        count=1,  # type: int
        other=None,  # type: ignore
    ):
        return boxes


def told(x: Tensor, y):  # type: (int, Tensor) -> None
    pass


def rest(x, y):
    # type: (...) -> Tensor
    pass


def fewer(x, y, z):
    # type: (int) -> Tensor
    x = []  # type: list
    return x
"""


def annotated() -> dict[str, list[str]]:
    tree = parse(SourceFile("f.py", TEXT))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {
        node.name: [
            "" if item.annotation is None else ast.get_source_segment(TEXT, item.annotation) or "?"
            for item in node.args.args
        ]
        for node in functions
    }


def test_a_signature_in_a_comment_annotates_all_but_the_object_of_a_method() -> None:
    found = annotated()

    assert found["loss"] == ["", "list[Tensor]", "Optional[Tensor]"]
    assert found["one"] == ["", "Tensor", "int", ""]


def test_an_annotation_stays_and_what_fits_no_parameter_tells_nothing() -> None:
    found = annotated()

    assert found["told"] == ["Tensor", "Tensor"]
    assert found["rest"] == ["", ""]
    assert found["fewer"] == ["", "", ""]
