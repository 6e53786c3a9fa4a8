"""What stands under a module's main guard: code of a script, and toys that show that a module works."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name
from perflint.ir.summary import MODULE
from perflint.syntax.named import gives
from perflint.syntax.walk import walk


def main_guard(node: ast.AST, ctx: FileFacts) -> ast.If | None:
    """The `if __name__ == "__main__"` that `node`, or the function that it stands in, is under."""
    for test, holds in ctx.conditions(node, outward=True):
        guard = ctx.tree.statement_of(test)
        if holds and isinstance(guard, ast.If) and is_main_guard(test):
            return guard
    return None


def is_main_guard(test: ast.expr) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in walk(test))


def is_trial_run(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether code stands under a module's main guard, beside a loop of a number of turns that is written there: a toy
    that shows that the module works.
    """
    guard = main_guard(node, ctx) if ctx.scope(node).function == MODULE else None
    return guard is not None and any(
        isinstance(part, ast.For) and _is_counted(part.iter, guard) for part in walk(guard)
    )


def _is_counted(turns: ast.expr, block: ast.If) -> bool:
    """`range(10)`, and `range(steps)` with `steps = 10` in the block."""
    if not (isinstance(turns, ast.Call) and callee_name(turns) == "range" and len(turns.args) == 1):
        return False
    count = turns.args[0]
    if isinstance(count, ast.Name):
        made = [item.value for item in walk(block) if isinstance(item, ast.Assign) and gives(item, count.id)]
        return len(made) == 1 and isinstance(made[0], ast.Constant)
    return isinstance(count, ast.Constant)
