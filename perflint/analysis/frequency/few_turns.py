"""Loops of a few turns, though no number says so where they stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.trip_count import most_turns
from perflint.analysis.naming.loops import MANY_TEXTS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import callee_name
from perflint.ir.control_flow import Condition
from perflint.syntax.walk import walk

_FEW = 8
#: What gives the names of a mapping or of a model's parts.
_OF_NAMES = frozenset(
    "items keys list sorted tuple enumerate reversed state_dict named_parameters named_modules named_children "
    "named_buffers".split()
)


def is_of_a_kind(node: ast.AST, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether `node` is for what is told by its name, `if "film" in key:`: there are few names. Files have names too,
    and lines of text: of these there are many.
    """
    if not isinstance(loop, ast.For) or any(MANY_TEXTS.search(name) for name in names_in(loop.iter)):
        return False
    if any(isinstance(part, ast.Call) and callee_name(part) not in _OF_NAMES for part in walk(loop.iter)):
        return False
    turns = set(names_in(loop.target))
    return any(holds and _tells_by_name(test, turns) for test, holds in _tests_in(loop, node, ctx))


def _tests_in(loop: ast.stmt, node: ast.AST, ctx: FileFacts) -> Iterator[Condition]:
    """The tests by which a turn of a loop comes to `node`."""
    return ((test, holds) for test, holds in ctx.conditions(node) if loop in ctx.loops(test))


def _tells_by_name(test: ast.expr, turns: set[str]) -> bool:
    """`"film" in key`, `key == "film"`, of a loop's own name; not what all but one pass."""
    if isinstance(test, ast.BoolOp):
        told = [_tells_by_name(value, turns) for value in test.values]
        return any(told) if isinstance(test.op, ast.And) else all(told)
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.In)):
        return False
    sides = [test.left, *test.comparators]
    has_word = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
    return has_word and any(isinstance(side, ast.Name) and side.id in turns for side in sides)


def is_for_one_turn(call: ast.Call, loop: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts) -> bool:
    """Whether the call stands under `if t == last:`, a test of the loop's own variable that few turns pass."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    turns = set(names_in(loop.target))
    return any(_picks(test, turns, holds=holds) for test, holds in _tests_in(loop, call, ctx))


def _picks(test: ast.expr, turns: set[str], *, holds: bool) -> bool:
    """`i == 0`, `step % 100 == 0`, `not i`"""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return holds and all(_picks(value, turns, holds=holds) for value in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _picks(test.operand, turns, holds=not holds)
    if isinstance(test, ast.Name):
        return not holds and test.id in turns
    if not (holds and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)):
        return False
    return any(_counts(side, turns) for side in (test.left, *test.comparators))


def _counts(side: ast.expr, turns: set[str]) -> bool:
    """Not `kinds[i]`, which may be the same on most turns, nor every second turn."""
    if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod):
        often = isinstance(side.right, ast.Constant) and side.right.value in (1, 2)
        return not often and _counts(side.left, turns)
    if isinstance(side, ast.BinOp) and isinstance(side.op, (ast.Add, ast.Sub)):
        return _counts(side.left, turns)
    return isinstance(side, ast.Name) and side.id in turns


def turns_few_times(loop: ast.stmt | ast.comprehension, ctx: FileFacts, most: int = _FEW) -> bool:
    """Whether a loop has a handful of turns by default, and not none."""
    turns = most_turns(loop, ctx)
    return turns is not None and 0 < turns <= most


def is_now_and_then(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a guard lets few turns of the loop by: `if step % 100 == 0`."""
    contexts, index = ctx.facts(node).contexts, ctx.context(node)
    while index >= 0 and contexts[index].kind != "loop":
        if contexts[index].kind == "guard" and contexts[index].detail in ("periodic", "first", "rare"):
            return True
        index = contexts[index].parent
    return False
