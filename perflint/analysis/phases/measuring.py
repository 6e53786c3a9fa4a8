"""Code that is there to measure: loops whose turns are timed, classes that watch memory, profilers that are told."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.phases import MEASURES_MEMORY, PROFILER, PROFILING_FILE
from perflint.analysis.phases.loop_purpose import CLOCKS
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name


def is_measured_each_turn(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether each turn waits for the device and takes its time, by events or in a loop of its own: a benchmark, of
    which this is a result.
    """
    loops = ctx.loops(node)[:1]
    if any(_called(loop, ctx) >= {"record", "synchronize"} for loop in loops):
        return True
    return any(
        isinstance(part, (ast.For, ast.While)) and part is not loop and _is_timed(part, ctx)
        for loop in loops
        for part in ctx.walk(loop)
    )


def _is_timed(loop: ast.stmt, ctx: FileFacts) -> bool:
    called = _called(loop, ctx)
    return "synchronize" in called and not CLOCKS.isdisjoint(called)


def _called(loop: ast.AST, ctx: FileFacts) -> set[str]:
    return {callee_name(part) for part in ctx.walk(loop) if isinstance(part, ast.Call)}


def is_for_a_profiler(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a class that is there to measure memory asks, or a profiler is told."""
    owner = ctx.tree.class_of(node)
    if (owner is not None and MEASURES_MEMORY.search(owner.name)) or PROFILING_FILE.search(ctx.path):
        return True
    statement = ctx.tree.statement_of(node)
    told = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(told, ast.Call)
        and isinstance(told.func, ast.Attribute)
        and bool(PROFILER.search(last_name(told.func.value)))
    )
