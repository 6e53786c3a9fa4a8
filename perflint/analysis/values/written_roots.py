"""Roots of a mean of squares or a variance as they are written: which value they scale by, and where that is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import argument, callee_name, is_constant, keyword

_ROOTS = {"torch.sqrt": True, "torch.rsqrt": False}
#: What `sqrt(v).clamp(min=eps)` does besides.
_BOUNDS = frozenset(("clamp", "clamp_min", "clamp_", "clamp_min_"))
#: Names of calls that are such a root, or that a root may be taken of by `** 0.5`.
ROOT_NAMES = ("rsqrt", "rsqrt_", "sqrt", "sqrt_", "pow", "std", "norm", "vector_norm")
MOMENT_NAMES = ("mean", "var", "var_mean")
#: How many sums, bounds and names stand between a moment and its root.
_FAR = 4


class Root(NamedTuple):
    """`node` is the root of `of`, by which one divides, or its reciprocal. Where `of` is None, `node` is a moment's own
    root: `x.std(...)`, or a norm.
    """

    node: ast.expr
    of: ast.expr | None
    divides: bool


def roots_at(node: ast.Call, ctx: FileFacts) -> Iterator[Root]:
    """The root that a call is, and the powers `(mean(...) + eps) ** 0.5` of what it gives."""
    root = root_of(node, ctx)
    if root is not None:
        yield root
    elif callee_name(node) in MOMENT_NAMES:
        yield from _powers(node, ctx, _FAR)


def root_of(node: ast.expr, ctx: FileFacts) -> Root | None:
    if isinstance(node, ast.BinOp):
        sign = _half(node.right) if isinstance(node.op, ast.Pow) else 0
        return Root(node, node.left, sign > 0) if sign else None
    if not isinstance(node, ast.Call):
        return None
    name = callee_name(node).rstrip("_")
    if name in ("sqrt", "rsqrt"):
        value = operand(node, ctx, tuple(_ROOTS))
        return Root(node, value, name == "sqrt") if value is not None else None
    if name == "pow":
        value, whole = operand(node, ctx, ("torch.pow",)), ctx.is_call_of(node, "torch.pow")
        exponent = argument(node, 1 if whole else 0, "exponent")
        sign = _half(exponent) if exponent is not None else 0
        return Root(node, value, sign > 0) if sign and value is not None else None
    if name in ("norm", "vector_norm"):  # what a root mean square is, once it is divided by the root of the width
        outer = ctx.tree.parent(node)
        is_scaled = isinstance(outer, ast.BinOp) and isinstance(outer.op, (ast.Mult, ast.Div)) and outer.left is node
        return Root(outer, None, divides=True) if is_scaled else None  # type: ignore[arg-type]
    return Root(node, None, divides=True) if name == "std" else None


def operand(node: ast.expr, ctx: FileFacts, functions: tuple[str, ...]) -> ast.expr | None:
    """`v` of `torch.rsqrt(v)` and of `v.rsqrt()`."""
    if not isinstance(node, ast.Call):
        return None
    if ctx.is_call_of(node, *functions):
        return node.args[0] if node.args else keyword(node, "input")
    if isinstance(node.func, ast.Attribute) and ctx.target(node.func) not in functions:
        names = {function.rpartition(".")[2] for function in functions}
        return node.func.value if node.func.attr.rstrip("_") in names else None
    return None


def scaled_by(root: Root, ctx: FileFacts) -> ast.expr | None:
    """`x` of `x * rsqrt(...)` and of `x / (sqrt(...) + eps)`, where the root has a name or none."""
    for use in uses_of(root, ctx):
        outer = ctx.tree.parent(use)
        if isinstance(outer, ast.BinOp):
            if isinstance(outer.op, ast.Mult) and not root.divides:
                return outer.right if use is outer.left else outer.left
            if isinstance(outer.op, ast.Div) and root.divides and use is outer.right:
                return outer.left
        elif isinstance(outer, ast.Call) and use in outer.args:
            scaled = operand(outer, ctx, ("torch.div",) if root.divides else ("torch.mul",))
            if scaled is not None and scaled is not use:
                return scaled
    return None


def uses_of(root: Root, ctx: FileFacts) -> Iterator[ast.expr]:
    """The root itself, with what is added to it, and where it is read under its name."""
    node = _with_bounds(root.node, ctx)
    yield node
    statement = ctx.tree.statement_of(node)
    if isinstance(statement, ast.Assign) and statement.value is node:
        yield from (_with_bounds(part, ctx) for part in _named_uses(statement, ctx))


def _with_bounds(node: ast.expr, ctx: FileFacts) -> ast.expr:
    """`std + eps` of `std`, `norm.clamp(min=eps)` of `norm`."""
    for _ in range(_FAR):
        outer = ctx.tree.parent(node)
        if isinstance(outer, ast.Attribute) and outer.attr in _BOUNDS:
            outer = ctx.tree.parent(outer)
        elif not (isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Add)):
            return node
        if not isinstance(outer, ast.expr):
            return node
        node = outer
    return node


def _powers(node: ast.expr, ctx: FileFacts, far: int) -> Iterator[Root]:
    node = _with_bounds(node, ctx)
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.BinOp) and node is outer.left and (root := root_of(outer, ctx)) is not None:
        yield root
    elif far and isinstance(outer, ast.Assign) and outer.value is node:
        for use in _named_uses(outer, ctx):
            yield from _powers(use, ctx, far - 1)


def _named_uses(statement: ast.Assign, ctx: FileFacts) -> Iterator[ast.expr]:
    """Where the one name is read that a statement gives a value, or one of two: `var, mean = torch.var_mean(x)`."""
    function = ctx.tree.function_of(statement)
    if len(statement.targets) != 1 or function is None:
        return
    target = statement.targets[0]
    if isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    if isinstance(target, ast.Name):
        yield from (part for part in ctx.tree.named(target.id, function) if isinstance(part.ctx, ast.Load))


def _half(node: ast.expr) -> int:
    """1 for `0.5` and `1 / 2`, -1 for `-0.5`, else 0."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_half(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return 1 if is_constant(node.right, 2) and is_constant(node.left, 1) else 0
    return 1 if is_constant(node, 0.5) else 0
