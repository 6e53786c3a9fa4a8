"""Values that are computed one index of a tensor at a time, as they would be for all of them."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.straight_bodies import straight_bodies
from perflint.ir.calls import argument, arguments_of, callee_name, is_constant
from perflint.syntax.named import is_name
from perflint.syntax.walk import walk
from perflint.torch_model.names import canonical
from perflint.torch_model.tensors import LOSSES_BY_ELEMENT

#: Methods that give the same for one row as for all rows at once, where no axis is named.
_BY_ELEMENT = frozenset(
    "exp log sqrt abs sin cos tanh sigmoid relu square clamp pow neg add sub mul div float long half to detach "
    "clone reciprocal rsqrt softplus unsqueeze".split()
)
#: Functions of a row that are the same for all rows at once, with the axis counted one further. `log_softmax` and
#: `logsumexp` go row by row on purpose, where the scores of all tokens would take too much memory.
_BY_ROW = frozenset("sum mean norm softmax normalize cosine_similarity amax amin prod".split())
_FOR_ALL = _BY_ELEMENT | _BY_ROW
#: What writes into the row that it is called on.
WRITES = frozenset("copy_ fill_ add_ mul_ sub_ div_".split())
_TAKES_APART = frozenset("detach clone to float long half double unsqueeze squeeze view reshape".split())
_SIZES = frozenset("shape size numel".split())


def _is_tensor(node: ast.expr, ctx: FileFacts) -> bool:
    return ctx.kind(node).tag is Tag.TENSOR


def computed_by_rows(node: ast.For, index: str, ctx: FileFacts, of_rows: Collection[str] = ()) -> str | None:
    """What a loop computes one index or row at a time, each from the same one of other tensors: rows of a tensor, a sum
    of what each row gives, or a list of that. `of_rows` are the names of the rows that the loop goes through.
    """
    found = {_computed(way, index, ctx, of_rows) for way in straight_bodies(node)}
    return found.pop() if len(found) == 1 else None


def _computed(body: list[ast.stmt], index: str, ctx: FileFacts, of_rows: Collection[str]) -> str | None:
    own: set[str] = set()
    written: set[str] = set()
    for statement in body:
        if name := _result(statement, index, of_rows):
            if name in written:
                return None
            written.add(name)
        elif (name := _local(statement) or "") and name not in own and name not in of_rows:
            own.add(name)
        else:
            return None
    if not written or own & written:
        return None
    known: set[str] = set(of_rows)
    for statement in body:
        name = "" if _result(statement, index, of_rows) else _local(statement) or ""
        unread = written - known | (own - known)  # what is not bound yet is of the turn before
        if not name:
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


def _result(statement: ast.stmt, index: str, of_rows: Collection[str]) -> str:
    """The name of what a statement writes a row of, adds to or appends to."""
    name = _written(statement, index) if index else ""
    if not name and (part := _part_of(statement, of_rows)) is not None:
        name = part.written
    return name


class _Part(NamedTuple):
    """What a statement does with a value of its turn: it adds it to a sum, appends it to a list (`is_listed`), or
    writes it into a row that the loop goes through (`is_row`).
    """

    written: str
    value: ast.expr
    is_listed: bool = False
    is_row: bool = False


def _part_of(statement: ast.stmt, of_rows: Collection[str]) -> _Part | None:
    """`total += value`, `total = total + value`, `rows.append(value)`, `row[:n] = value`, `row[:n].copy_(value)`."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Sub)):
        if isinstance(statement.target, ast.Name):
            is_row = statement.target.id in of_rows
            return _Part(statement.target.id, statement.value, is_row=is_row)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Subscript) and (row := _row_written(target, of_rows)):
            return _Part(row, value, is_row=True)
        if isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
            if is_name(value.left, target.id):
                return _Part(target.id, value.right)
            if is_name(value.right, target.id) and isinstance(value.op, ast.Add):
                return _Part(target.id, value.left)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    if isinstance(call.func, ast.Attribute):
        if call.func.attr == "append" and isinstance(call.func.value, ast.Name):
            return _Part(call.func.value.id, call.args[0], is_listed=True)
        if call.func.attr in WRITES and (row := _row_written(call.func.value, of_rows)):
            return _Part(row, call.args[0], is_row=True)
    return None


def _row_written(target: ast.expr, of_rows: Collection[str]) -> str:
    """The row of `row` and of `row[: x.shape[0], 1:]`."""
    if isinstance(target, ast.Subscript):
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        if not all(_is_fixed(part, of_rows) for part in parts):
            return ""
        target = target.value
    return target.id if isinstance(target, ast.Name) and target.id in of_rows else ""


def _is_fixed(part: ast.expr | None, of_rows: Collection[str]) -> bool:
    """Whether a part of an index is the same for all rows: a number, a slice between such, a size of a row."""
    if part is None or isinstance(part, ast.Constant):
        return True
    if isinstance(part, ast.UnaryOp):
        return _is_fixed(part.operand, of_rows)
    if isinstance(part, ast.Slice):
        return all(_is_fixed(bound, of_rows) for bound in (part.lower, part.upper, part.step))
    return _is_size(part, of_rows)


def _is_size(node: ast.expr, of_rows: Collection[str]) -> bool:
    """`row.shape[0]`, `row.size(0)`, `row.numel()`, `len(row)`: all rows of a tensor have one size."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _is_size(node.value, of_rows)
    if isinstance(node, ast.Call):
        if is_name(node.func, "len") and len(node.args) == 1:
            return isinstance(node.args[0], ast.Name) and node.args[0].id in of_rows
        return isinstance(node.func, ast.Attribute) and _is_size(node.func, of_rows)
    if not isinstance(node, ast.Attribute) or node.attr not in _SIZES:
        return False
    return isinstance(node.value, ast.Name) and node.value.id in of_rows


def reads_a_row(node: ast.AST, of_rows: Collection[str]) -> bool:
    """Whether an expression reads numbers of a row; sizes of rows are known to the host."""
    if isinstance(node, ast.Name):
        return node.id in of_rows
    if isinstance(node, ast.expr) and _is_size(node, of_rows):
        return False
    return any(reads_a_row(part, of_rows) for part in ast.iter_child_nodes(node))


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
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and is_row(target, index):
        return target.value.id
    return ""


def is_row(node: ast.Subscript, index: str) -> bool:
    """Whether a subscript is exactly one index of the loop, with whole slices and indices of loops around beside it."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    own = [part for part in parts if isinstance(part, ast.Name) and part.id == index]
    rest = [part for part in parts if part not in own]
    return len(own) == 1 and all(_is_fixed(part, ()) or isinstance(part, ast.Name) for part in rest)


def _is_by_element(
    statement: ast.stmt, index: str, written: set[str], ctx: FileFacts, of_rows: Collection[str] = ()
) -> bool:
    """Whether a statement computes its row element by element, from the same row of other tensors."""
    part = _part_of(statement, of_rows)
    if part is not None:
        if part.is_row:
            return is_same_for_all_rows(part.value, index, written - {part.written}, ctx, of_rows)
        reads_row = not {index, *of_rows}.isdisjoint(names_in(part.value))
        works = not part.is_listed or _computes(part.value)
        return reads_row and works and is_same_for_all_rows(part.value, index, written, ctx, of_rows)
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


def _computes(value: ast.expr) -> bool:
    """Whether there is work in what is listed of each row: rows that are only taken apart cost little."""
    return any(
        isinstance(part, ast.BinOp) or (isinstance(part, ast.Call) and callee_name(part) not in _TAKES_APART)
        for part in walk(value)
    )


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
        if _is_size(node, of_rows):
            return True
        if not isinstance(node.value, ast.Name) or node.value.id in written:
            return False
        if not _is_tensor(node.value, ctx):
            return isinstance(node.slice, ast.Name) and node.slice.id == index and _is_of_single_rows(node.value, ctx)
        if node.value.id in of_rows:
            return _row_written(node, of_rows) != ""
        return is_row(node, index) or (isinstance(node.slice, ast.Name) and node.slice.id not in {index, *of_rows})
    if _is_size(node, of_rows):
        return True
    if isinstance(node, ast.Call) and _is_squeezed(node):
        return is_same_for_all_rows(node.func.value, index, written, ctx, of_rows)  # type: ignore[attr-defined]
    if isinstance(node, ast.Call) and _is_mean_loss(node, ctx):
        return all(is_same_for_all_rows(item, index, written, ctx, of_rows) for item in node.args)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FOR_ALL:
        given = arguments_of(node)
        whole = (ctx.target(node.func) or "").startswith("torch.")
        values = (
            given
            if whole and isinstance(node.func.value, ast.Name) and not _is_tensor(node.func.value, ctx)
            else [node.func.value, *given]
        )
        return all(is_same_for_all_rows(item, index, written, ctx, of_rows) for item in values)
    return False


def _is_mean_loss(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call is a loss that goes element by element and takes the mean, or the sum: rows are of one size, so
    that the losses of all rows add up to that of the whole, times their number.
    """
    return len(call.args) == 2 and (
        ctx.is_call_of(call, *LOSSES_BY_ELEMENT) or canonical(ctx.kind(call.func).qualified) in LOSSES_BY_ELEMENT
    )


def _is_squeezed(call: ast.Call) -> bool:
    """`row.squeeze()`: what a row has of dimensions of one, all rows have."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "squeeze" and not call.args and not call.keywords


def _is_of_single_rows(node: ast.Name, ctx: FileFacts) -> bool:
    """Whether a tuple is a tensor taken apart, row by row: `x.split(1, dim=1)`, `x.unbind(1)`."""
    made = ctx.inference.flow.definitions(node)
    call = made[0].value if len(made) == 1 and not made[0].path else None
    if not isinstance(call, ast.Call) or callee_name(call) not in ("split", "unbind"):
        return False
    whole = ctx.is_call_of(call, "torch.split", "torch.unbind")
    of = argument(call, 0, "input") if whole else getattr(call.func, "value", None)
    if of is None or not _is_tensor(of, ctx):
        return False
    size = argument(call, int(whole), "split_size_or_sections" if whole else "split_size")
    return callee_name(call) == "unbind" or (size is not None and is_constant(size, 1))
