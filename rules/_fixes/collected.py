"""Statements that collect a value read from the device: `total += loss.item() * n`, `losses.append(loss.item())`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.api import Context, Dtype, Place, Tag, callee_name, walk
from perflint.api.waits import device_read

#: What has an `item` on the device, as far as anything is known of it.
_TENSORS = (Tag.TENSOR, Tag.OUTPUT, Tag.UNKNOWN)
_KEEPS_VALUE = frozenset({"detach", "cpu", "item"})


class Collected(NamedTuple):
    """One statement that adds what `read` brings to the host to what `into` holds, a sum or a list.

    `value` is the tensor that is read. `scaled`: the number is multiplied or divided by one of the host first. `whole`:
    Python adds whole numbers.
    """

    statement: ast.stmt
    into: ast.expr
    read: ast.Call
    value: ast.expr
    listed: bool
    scaled: bool
    whole: bool


def collected_by(statement: ast.stmt, ctx: Context) -> Collected | None:
    """What a statement collects, where all that it reads is one value of the device."""
    into, term, listed = _parts(statement, ctx)
    if into is None or term is None:
        return None
    read = _read_of(term, ctx)
    value = _value_of(read, ctx) if read is not None else None
    if read is None or value is None:
        return None
    is_float = callee_name(read) == "float"
    whole = not is_float and _is_whole(value, ctx)
    if (whole and read is not term) or (callee_name(read) == "int" and not whole):
        return None
    return Collected(statement, into, read, value, listed, read is not term, whole)


def _parts(statement: ast.stmt, ctx: Context) -> tuple[ast.expr | None, ast.expr | None, bool]:
    """The sum or list that a statement adds to, and what it adds."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return statement.target, statement.value, False
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.BinOp):
        into, sides = statement.targets[0], (statement.value.left, statement.value.right)
        others = [side for side in sides if ctx.text(side) != ctx.text(into)]
        if isinstance(statement.value.op, ast.Add) and len(others) == 1:
            return into, others[0], False
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append":
        if len(call.args) == 1 and not call.keywords:
            return call.func.value, call.args[0], True
    return None, None, False


def _read_of(term: ast.expr, ctx: Context) -> ast.Call | None:
    """The one read in a term that is otherwise made of factors of the host: `loss.item() * len(batch) / n`."""
    if isinstance(term, ast.Call):
        return term
    if not isinstance(term, ast.BinOp) or not isinstance(term.op, (ast.Mult, ast.Div)):
        return None
    if _is_factor(term.right, ctx):
        return _read_of(term.left, ctx)
    if isinstance(term.op, ast.Mult) and _is_factor(term.left, ctx):
        return _read_of(term.right, ctx)
    return None


def _is_factor(node: ast.expr, ctx: Context) -> bool:
    """Whether an operand is a number of the host: nothing says that it is a tensor or an array, and it reads none."""
    if ctx.kind(node).tag not in (Tag.NUMBER, Tag.UNKNOWN):
        return False
    return not any(device_read(part, ctx) for part in walk(node)) and not any(
        isinstance(part, ast.Call) and callee_name(part) in ("item", "numpy", "tolist") for part in walk(node)
    )


def _value_of(read: ast.Call, ctx: Context) -> ast.expr | None:
    """The tensor whose only number a call reads: `loss` of `loss.detach().cpu().item()` and of `float(loss)`."""
    if isinstance(read.func, ast.Attribute) and read.func.attr == "item" and not read.args:
        value: ast.expr = read
    elif ctx.is_call_of(read, "float", "int") and len(read.args) == 1 and not read.keywords:
        value = read.args[0]
        if not ctx.kind(value).is_tensor:
            return None
    else:
        return None
    kind = ctx.kind(value.func.value) if value is read else None  # type: ignore[attr-defined]
    may_read = kind is not None and kind.tag in _TENSORS and kind.place is not Place.HOST
    reads = may_read or device_read(read, ctx) is not None
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
            if value.func.attr not in _KEEPS_VALUE or value.keywords:
                break
            reads = reads or device_read(value, ctx) is not None
            value = value.func.value
        elif isinstance(value, ast.Attribute) and value.attr == "data":
            value = value.value
        else:
            break
    return value if reads and not isinstance(value, ast.Constant) else None


def _is_whole(value: ast.expr, ctx: Context) -> bool:
    """`(prediction == target).sum()`, `torch.sum(prediction == target)`: a whole number."""
    if ctx.kind(value).dtype in (Dtype.INT, Dtype.BOOL):
        return True
    if not (isinstance(value, ast.Call) and callee_name(value) == "sum" and isinstance(value.func, ast.Attribute)):
        return False
    counted = value.func.value
    if ctx.is_call_of(value, "torch.sum"):
        if len(value.args) != 1:
            return False
        counted = value.args[0]
    if ctx.kind(counted).dtype in (Dtype.INT, Dtype.BOOL):
        return True
    compared = isinstance(counted, ast.Call) and callee_name(counted) in ("eq", "ne", "gt", "ge", "lt", "le")
    return compared or isinstance(counted, ast.Compare)
