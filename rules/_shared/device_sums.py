"""The fix of `total += loss.item()`: sum on the device, and read the sum after the loop."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix, Heat, callee_name, walk

from .read_twice import read_after


def sum_on_device(node: ast.Call, ctx: Context) -> Fix | None:
    """`total += loss.item()` in a loop that does not look at `total`: sum on the device, read after the loop."""
    statement = ctx.tree.statement_of(node)
    loops = ctx.loops(node)
    if callee_name(node) != "item" or not loops or not isinstance(node.func, ast.Attribute):
        return None
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, ast.Add) or statement.value is not node:
        return None
    target, loop = statement.target, loops[0]
    if not isinstance(target, ast.Name) or ctx.body_heat(loop) < Heat.STEP or ctx.heat(loop) >= Heat.STEP:
        return None
    if _is_used(target.id, statement, loop) or read_after(node, node.func.value, loop, ctx):
        return None
    if _may_be_read_meanwhile(target.id, loop, ctx):
        return None
    value = ctx.tree.text(node.func.value)
    if not value.endswith(".detach()") and not ctx.grad_off(node):
        value = f"{ctx.edit.receiver(node.func.value)}.detach()"
    number = "int" if _is_count(node.func.value, ctx) else "float"
    return Fix(
        "Sum on the device and read after the loop",
        Applicability.UNSAFE,
        (ctx.edit.replace(node, value), ctx.edit.insert_after(loop, f"{target.id} = {number}({target.id})")),
        reason=f"`{target.id}` is summed in the tensor's precision instead of Python's float64",
        numerics="same to rounding",
    )


def _may_be_read_meanwhile(name: str, loop: ast.AST, ctx: Context) -> bool:
    """Whether a sum may be looked at before the line behind its loop: after an exception, or by another function."""
    around = ctx.tree.function_of(loop) or ctx.tree.module
    child = loop
    for outer in ctx.tree.ancestors(loop):
        if outer is around:
            break
        if isinstance(outer, ast.Try) and child in outer.body:
            return True
        child = outer
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names for part in walk(around)):
        return True
    return isinstance(around, ast.Module) and any(
        isinstance(part, ast.Name) and part.id == name and ctx.tree.function_of(part) is not None
        for part in walk(around)
    )


def _is_count(value: ast.expr, ctx: Context) -> bool:
    """`(prediction == target).sum()`, `torch.sum(prediction == target)`: a whole number."""
    if not (isinstance(value, ast.Call) and callee_name(value) == "sum" and isinstance(value.func, ast.Attribute)):
        return False
    counted = value.func.value
    if ctx.is_call_of(value, "torch.sum"):
        if len(value.args) != 1:
            return False
        counted = value.args[0]
    compared = isinstance(counted, ast.Call) and callee_name(counted) in ("eq", "ne", "gt", "ge", "lt", "le")
    return compared or isinstance(counted, ast.Compare)


def _is_used(name: str, statement: ast.AugAssign, loop: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name and part is not statement.target for part in walk(loop))
