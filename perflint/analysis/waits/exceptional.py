"""Code that runs when something went wrong, once, or on few steps."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir import guards
from perflint.syntax.walk import walk


def is_exceptional(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` runs only when something went wrong, in a handler or in the words of an error, or only when an
    every-N test to its left is true: `step % 100 == 0 and not finite`. Or where a batch lacks what it gives as a rule.
    """
    if any(_is_seldom(test, ctx, holds=holds) for test, holds in ctx.conditions(node, exits=False)):
        return True
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(outer, (ast.Raise, ast.ExceptHandler)) or (isinstance(outer, ast.Assert) and child is outer.msg):
            return True
        child = outer
    return False


def _is_seldom(test: ast.expr, ctx: FileFacts, *, holds: bool) -> bool:
    """Whether a test of a branch, or to the left in `and` and `or`, comes out so on few steps."""
    outer = ctx.tree.parent(test)
    if isinstance(outer, ast.BoolOp):
        decides = guards.classify if holds else guards.classify_negated
        return decides(test) is not None
    if isinstance(outer, ast.IfExp):
        return not holds and _looks_up(test)
    return holds and isinstance(outer, ast.If) and _fills_once(outer, ctx)


def _fills_once(branch: ast.If, ctx: FileFacts) -> bool:
    """`if scale is None: scale = ...` in a loop that does not empty it again: the first turn only."""
    test = branch.test
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and isinstance(test.left, ast.Name)):
        return False
    loops = ctx.tree.loops_around(branch)
    if not loops or not isinstance(test.comparators[0], ast.Constant) or test.comparators[0].value is not None:
        return False
    name = test.left.id
    inside = {id(part) for part in walk(branch)}
    stores = [
        part
        for part in walk(loops[0])
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
    ]
    return bool(stores) and all(id(part) in inside for part in stores)


def _looks_up(test: ast.expr) -> bool:
    """`"tokens" in batch`: what is computed otherwise stands in for what a batch gives as a rule."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.In)
        and isinstance(test.left, ast.Constant)
        and isinstance(test.left.value, str)
    )
