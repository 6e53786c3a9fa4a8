"""Loops of a few turns, though no number says so where they stand."""

from __future__ import annotations

import ast

from perflint.api import Context, callee_name, last_name, walk

from ._loops import names_in

_FEW = 8


def is_of_a_kind(node: ast.AST, loop: ast.stmt, ctx: Context) -> bool:
    """Whether `node` is for what is told by its name, `if "film" in key:`: there are few names."""
    if not isinstance(loop, ast.For):
        return False
    turns = set(names_in(loop.target))
    for outer in ctx.tree.ancestors(node):
        if outer is loop:
            return False
        if isinstance(outer, ast.If) and any(_tells_by_name(part, turns) for part in walk(outer.test)):
            return True
    return False


def _tells_by_name(test: ast.AST, turns: set[str]) -> bool:
    """`"film" in key`, `key == "film"`, of a loop's own name."""
    if not isinstance(test, ast.Compare):
        return False
    sides = [test.left, *test.comparators]
    has_word = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
    return has_word and any(isinstance(side, ast.Name) and side.id in turns for side in sides)


def turns_few_times(loop: ast.stmt, ctx: Context) -> bool:
    """`for _ in range(rollout_length)`, where the command line says few unless told otherwise."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or callee_name(loop.iter) != "range":
        return False
    turns = loop.iter.args[0] if len(loop.iter.args) == 1 else None
    if not isinstance(turns, (ast.Name, ast.Attribute)):
        return False
    defaults = ctx.program.whole.option_defaults(last_name(turns).strip("_"), ctx.path)
    return bool(defaults) and all(isinstance(item, int) and item <= _FEW for item in defaults)
