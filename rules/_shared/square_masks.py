"""Triangular masks of a square that is filled: `torch.tril(torch.ones(n, n))`, in all the ways to write it."""

from __future__ import annotations

import ast

from perflint.api import Context, callee_name, is_constant, tensors
from perflint.api.names import CACHE_ARGUMENT, SETS_UP_ONCE

_TRIANGLES = ("torch.tril", "torch.triu")
_SQUARES = ("torch.ones", "torch.full")
_NEW_SQUARES = frozenset({"new_ones", "new_full"})
_BETWEEN = tensors.VIEW_METHODS | tensors.CAST_METHODS | {"to", "cuda"}
#: Masks of fewer rows are not worth a word.
_SMALL = 16


def is_of_prompt(node: ast.AST, ctx: Context) -> bool:
    """Whether only a prompt is masked: in the forward of a generation, `if length > 1`, once before all tokens."""
    function = ctx.tree.function_of(node)
    if function is None or not any(CACHE_ARGUMENT.match(item.arg) for item in function.args.args):
        return False
    if ctx.role(node) == "train":
        return False  # each text that is learned from is longer than one token
    return any(
        holds
        and isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Gt)
        and is_constant(test.comparators[0], 1)
        for test, holds in ctx.conditions(node)
    )


def is_set_up(node: ast.AST, ctx: Context) -> bool:
    """Whether it is kept by what sets a generation up, `setup_caches`: once, before all its tokens."""
    function = ctx.tree.function_of(node)
    return function is not None and SETS_UP_ONCE.match(function.name) is not None


def square(node: ast.Call, ctx: Context) -> str | None:
    """The size of the square that `torch.tril(torch.ones(n, n))` or `torch.ones(n, n).tril()` cuts a triangle from."""
    if ctx.target(node.func) in _TRIANGLES:
        filled = node.args[0] if node.args else None
    else:
        filled = node.func.value if isinstance(node.func, ast.Attribute) else None
    for origin in [] if filled is None else ctx.inference.origins(filled):
        made = _filled_by(origin, ctx)
        if made is None:
            return None
        sizes = _sizes(made)
        if len(sizes) < 2 or ctx.text(sizes[-1]) != ctx.text(sizes[-2]) or not _are_numbers(sizes, ctx):
            return None
        if any(isinstance(size, ast.Constant) for size in sizes[-2:]) and _is_small(sizes[-1]):
            return None
        return ctx.text(sizes[-1])
    return None


def _filled_by(node: ast.expr, ctx: Context) -> ast.Call | None:
    """The constructor of a chain such as `torch.ones(n, n).bool()`."""
    while isinstance(node, ast.Call):
        if ctx.target(node.func) in _SQUARES or callee_name(node) in _NEW_SQUARES:
            return node
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _BETWEEN:
            return None
        node = node.func.value
    return None


def _sizes(made: ast.Call) -> list[ast.expr]:
    given = made.args or [item.value for item in made.keywords if item.arg == "size"]
    if given and isinstance(given[0], (ast.Tuple, ast.List)):
        return given[0].elts
    return list(given)


def _are_numbers(sizes: list[ast.expr], ctx: Context) -> bool:
    return not any(ctx.kind(size).holds_tensors or isinstance(size, ast.Starred) for size in sizes)


def _is_small(size: ast.expr) -> bool:
    return isinstance(size, ast.Constant) and isinstance(size.value, int) and size.value < _SMALL
