"""Annotations that stand in comments, as code that once ran on Python 2 has them and TorchScript reads them.

`# type: (Tensor, list[Tensor]) -> Tensor` below the head of a function, and `# type: Tensor` behind a parameter, become
annotations of the tree, at the places where they stand.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator

from perflint.syntax.walk import statements

_MARK = "# type:"
_SIGNATURE = re.compile(r"# type: *\((.*)\) *->")
_OF_PARAMETER = re.compile(r"[ ,=\w.-]*# type:(?! *ignore) *([^#(]+)$")


def annotate(module: ast.Module, text: str) -> None:
    """Give the parameters of `module` that have no annotation the one that a comment tells."""
    if _MARK not in text:
        return
    lines = text.split("\n")
    marked = [number for number, line in enumerate(lines, 1) if _MARK in line]
    for node in statements(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            head = marked[bisect_left(marked, node.lineno) : bisect_left(marked, node.body[0].lineno)]
            if head:
                _annotate(node, head, lines)


def _annotate(function: ast.FunctionDef | ast.AsyncFunctionDef, head: list[int], lines: list[str]) -> None:
    given = [*function.args.posonlyargs, *function.args.args]
    for number in head:
        line = lines[number - 1]
        signature = _SIGNATURE.search(line)
        if signature is not None:
            types = _types(signature[1], number, signature.start(1))
            # The object of a method has no type there.
            told = given[len(given) - len(types) :] if len(given) - len(types) in (0, 1) else []
            for parameter, annotation in zip(told, types, strict=False):
                parameter.annotation = parameter.annotation or annotation
            continue
        for parameter in (*given, *function.args.kwonlyargs):
            if parameter.lineno != number or parameter.annotation is not None:
                continue
            if (behind := _OF_PARAMETER.fullmatch(line, parameter.end_col_offset or 0)) is not None:
                parameter.annotation = next(iter(_types(behind[1], number, behind.start(1))), None)


def _types(text: str, line: int, column: int) -> list[ast.expr]:
    """What is written between commas, with its places; nothing where it cannot be read."""
    try:
        read = ast.parse(f"({text.rstrip()},)", mode="eval").body
    except (SyntaxError, ValueError):
        return []
    types = read.elts if isinstance(read, ast.Tuple) else []
    if any(isinstance(part, ast.Starred) or _is_rest(part) for part in types):
        return []
    for part in _parts(types):
        part.lineno = part.end_lineno = line
        part.col_offset += column - 1
        part.end_col_offset = (part.end_col_offset or 0) + column - 1
    return types


def _is_rest(part: ast.expr) -> bool:
    """`(...) -> Tensor` tells nothing of the parameters."""
    return isinstance(part, ast.Constant) and part.value is Ellipsis


def _parts(types: list[ast.expr]) -> Iterator[ast.expr]:
    for one in types:
        yield from (part for part in ast.walk(one) if isinstance(part, ast.expr))
