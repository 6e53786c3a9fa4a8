"""Values that are computed one index of a tensor at a time, as they would be for all of them."""

from __future__ import annotations

import ast
from collections.abc import Collection

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag

#: Methods that give the same for one row as for all rows at once, where no axis is named.
_BY_ELEMENT = frozenset(
    "exp log sqrt abs sin cos tanh sigmoid relu square clamp pow neg add sub mul div float long half to detach "
    "clone reciprocal rsqrt softplus".split()
)
#: Functions of a row that are the same for all rows at once, with the axis counted one further. `log_softmax` and
#: `logsumexp` go row by row on purpose, where the scores of all tokens would take too much memory.
_BY_ROW = frozenset("sum mean norm softmax normalize cosine_similarity amax amin prod".split())
_FOR_ALL = _BY_ELEMENT | _BY_ROW


def _is_tensor(node: ast.expr, ctx: FileFacts) -> bool:
    return ctx.kind(node).tag is Tag.TENSOR


def computed_by_rows(node: ast.For, index: str, ctx: FileFacts) -> str | None:
    """The tensor that a loop computes one index at a time, each from the same index of other tensors."""
    own: set[str] = set()
    written: set[str] = set()
    for statement in node.body:
        if (name := _local(statement)) is not None and name not in own:
            own.add(name)
        elif name := _written(statement, index):
            if name in written:
                return None
            written.add(name)
        else:
            return None
    if not written or own & written:
        return None
    known: set[str] = set()
    for statement in node.body:
        name = _local(statement)
        unread = written | (own - known)  # what is not bound yet is of the turn before
        if name is None:
            if not _is_by_element(statement, index, unread, ctx, known):
                return None
        else:
            assert isinstance(statement, ast.Assign)
            values = [statement.value]
            if isinstance(statement.value, ast.IfExp):
                if not _compares_turns(statement.value.test, ctx):
                    return None
                values = [statement.value.body, statement.value.orelse]
            if not all(is_same_for_all_rows(value, index, unread, ctx, known) for value in values):
                return None
            known.add(name)
    return min(written)


def _local(statement: ast.stmt) -> str | None:
    """The name that a statement binds: `row = x[i] * 2`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _compares_turns(test: ast.expr, ctx: FileFacts) -> bool:
    """`j == k`: numbers that the loops count."""
    return isinstance(test, ast.Compare) and all(
        isinstance(side, (ast.Name, ast.Constant)) and ctx.kind(side).tag is Tag.NUMBER
        for side in (test.left, *test.comparators)
    )


def _written(statement: ast.stmt, index: str) -> str:
    """The tensor that a statement writes one row of: `x[i] = …`, `x[:, i] += …`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    else:
        return ""
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and _is_row(target, index):
        return target.value.id
    return ""


def _is_row(node: ast.Subscript, index: str) -> bool:
    """Whether a subscript is exactly one index of the loop, with whole slices and indices of loops around beside it."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    own = [part for part in parts if isinstance(part, ast.Name) and part.id == index]
    rest = [part for part in parts if part not in own]
    return len(own) == 1 and all(_is_whole(part) or isinstance(part, ast.Name) for part in rest)


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None


def _is_by_element(
    statement: ast.stmt, index: str, written: set[str], ctx: FileFacts, of_rows: Collection[str] = ()
) -> bool:
    """Whether a statement computes its row element by element, from the same row of other tensors."""
    if isinstance(statement, ast.Assign):
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AugAssign):
        target, value = statement.target, statement.value
    else:
        return False
    if not isinstance(target, ast.Subscript) or not _is_tensor(target.value, ctx):
        return False
    reads_row = isinstance(statement, ast.AugAssign) or not {index, *of_rows}.isdisjoint(names_in(value))
    return reads_row and is_same_for_all_rows(value, index, written, ctx, of_rows)


def is_same_for_all_rows(
    node: ast.expr, index: str, written: set[str], ctx: FileFacts, of_rows: Collection[str] = ()
) -> bool:
    """Whether a value is computed from one index of tensors as it would be from all of them. `of_rows` are names that
    hold such values.
    """
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.Name):
        return node.id not in written
    if isinstance(node, ast.Attribute):
        return not written & set(names_in(node)) and index not in names_in(node)
    if isinstance(node, ast.UnaryOp):
        return is_same_for_all_rows(node.operand, index, written, ctx, of_rows)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            return False
        return all(is_same_for_all_rows(side, index, written, ctx, of_rows) for side in (node.left, node.right))
    if isinstance(node, ast.Subscript):
        if not isinstance(node.value, ast.Name) or node.value.id in written or not _is_tensor(node.value, ctx):
            return False
        return _is_row(node, index) or (isinstance(node.slice, ast.Name) and node.slice.id not in {index, *of_rows})
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FOR_ALL:
        given = [*node.args, *(item.value for item in node.keywords)]
        whole = (ctx.target(node.func) or "").startswith("torch.")
        values = (
            given
            if whole and isinstance(node.func.value, ast.Name) and not _is_tensor(node.func.value, ctx)
            else [node.func.value, *given]
        )
        return all(is_same_for_all_rows(item, index, written, ctx, of_rows) for item in values)
    return False
