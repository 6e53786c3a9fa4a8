"""TPL305: the cache emptied before the garbage that fills it is collected."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Impact, Rule


class EmptyCacheBeforeGc(Rule):
    """Emptying the cache before a garbage collection keeps the memory that the collection frees reserved.

    What it does

    Reports `torch.cuda.empty_cache()` directly before `gc.collect()`.

    Why is this slow?

    `gc.collect()` frees tensors in reference cycles, and their blocks return to PyTorch's cache. A
    `torch.cuda.empty_cache()` that ran before does not release them.

    What to do

    Call `gc.collect()` first and `torch.cuda.empty_cache()` second.

    Fix safety

    Safe: the two are adjacent statements whose results are not used. Same bits. Unsafe if objects of the project run
    code when they are collected (`__del__`, weak references, `gc` callbacks), or if the argument of `gc.collect` is
    computed.

    Not reported

    - Calls that are not adjacent.
    - Calls on the hot path: gc-in-hot-loop and empty-cache-in-hot-loop report those.

    References

    - `torch.cuda.memory.empty_cache`:
      https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html
    - gc: https://docs.python.org/3/library/gc.html
    """

    code, name = "TPL305", "empty-cache-before-gc"
    numerics = "same bits"
    impact = Impact.LOW
    listens = (Calls("empty_cache"),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not ctx.is_call_of(node, "torch.cuda.empty_cache", "torch.xpu.empty_cache"):
            return
        statement = ctx.tree.statement_of(node)
        if not (isinstance(statement, ast.Expr) and statement.value is node):
            return
        after = _next_statement(statement, ctx)
        if not (isinstance(after, ast.Expr) and ctx.is_call_of(after.value, "gc.collect")):
            return
        if isinstance(last := _next_statement(after, ctx), ast.Expr) and ctx.is_call_of(
            last.value, "torch.cuda.empty_cache", "torch.xpu.empty_cache"
        ):
            return  # emptied behind it as well
        if isinstance(before := _previous_statement(statement, ctx), ast.Expr) and ctx.is_call_of(
            before.value, "gc.collect"
        ):
            return  # collected before as well
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` runs before `{ctx.text(after)}`, so what the collection frees stays reserved.",
            advice=f"Put `{ctx.text(after)}` first.",
            fix=_fix(statement, after, ctx),
        )


#: What makes it show when objects are collected.
_TELLING = (
    "finalize",
    "callbacks",
    "WeakValueDictionary",
    "WeakKeyDictionary",
    "WeakSet",
    "ref",
    "proxy",
    "DEBUG_STATS",
)


def _fix(statement: ast.stmt, after: ast.Expr, ctx: Context) -> Fix:
    assert isinstance(after.value, ast.Call)
    reason = ""
    if not all(isinstance(item, ast.Constant) for item in (*after.value.args, *_values(after.value))):
        reason = "what `gc.collect` is given would be evaluated first"
    elif ctx.program.named("__del__") or ctx.program.mentions(_TELLING):
        reason = "objects of the project tell when they are collected, which would be before the cache is emptied"
    return Fix(
        "Collect first, then empty the cache",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        ctx.edit.swap_statements(statement, after),
        reason=reason,
    )


def _values(call: ast.Call) -> list[ast.expr]:
    return [item.value for item in call.keywords]


def _siblings(statement: ast.stmt, ctx: Context) -> list[ast.stmt]:
    parent = ctx.tree.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def _next_statement(statement: ast.stmt, ctx: Context) -> ast.stmt | None:
    block = _siblings(statement, ctx)
    index = block.index(statement) + 1
    return block[index] if index < len(block) else None


def _previous_statement(statement: ast.stmt, ctx: Context) -> ast.stmt | None:
    block = _siblings(statement, ctx)
    index = block.index(statement) - 1
    return block[index] if index >= 0 else None
