"""The fix that collects objects before the cache is emptied."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix

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


def collect_first(statement: ast.stmt, after: ast.stmt, ctx: Context, *, plain: bool) -> Fix:
    assert isinstance(after, ast.Expr)
    assert isinstance(after.value, ast.Call)
    reason = ""
    if not plain:
        reason = "the calls run functions of the project, which may have other effects"
    elif not all(isinstance(item, ast.Constant) for item in (*after.value.args, *_values(after.value))):
        reason = "the argument of `gc.collect` would be evaluated first"
    elif ctx.program.named("__del__") or ctx.program.mentions(_TELLING):
        reason = "objects of the project run code when they are collected, which would run before the cache is emptied"
    return Fix(
        "Collect first, then empty the cache",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        ctx.edit.swap_statements(statement, after),
        reason=reason,
    )


def _values(call: ast.Call) -> list[ast.expr]:
    return [item.value for item in call.keywords]
