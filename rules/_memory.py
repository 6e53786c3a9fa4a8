"""What the rules about freeing memory share."""

from __future__ import annotations

import ast
import re

from perflint.api import Context, callee_name, last_name, pattern, walk

from ._loops import names_in

_PRESSURE = frozenset(
    "memory_allocated memory_reserved max_memory_allocated mem_get_info virtual_memory memory_percent memory_usage "
    "get_memory free_memory used_memory memory_summary memory_stats is_oom oom low_memory".split()
)

_RETRY = pattern(r"(?:^|_)oom(?:$|_)|out_of_memory")


#: Switches that give up speed for memory: results that are kept on the host, sleep of what shares the device.
_SAVING = pattern(
    r"offload|cpu_cache|low_?v?(?:ram|mem)|(?:^|_)sleep|save_?(?:v?ram|mem)|"
    r"(?:clear|empty|free)_?(?:cuda_?|gpu_?)?(?:cache|mem)",
    re.IGNORECASE,
)


#: Names of flags by which a step is given up.
_GIVEN_UP = pattern(r"(?:^|_)(?:skip|nans?|infs?|bad|broken|invalid|non_?finite|overflow(?:ed)?|failed|corrupt)(?:_|$)")
_MEASURING = ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats")


def measures_memory(node: ast.AST, ctx: Context) -> bool:
    """Whether the call stands beside one that sets the measured peak back: a clean start for a measurement."""
    block = ctx.tree.parent(ctx.tree.statement_of(node))
    beside = [item for item in getattr(block, "body", []) if isinstance(item, ast.Expr)]
    return any(isinstance(item.value, ast.Call) and callee_name(item.value) in _MEASURING for item in beside)


def gives_up_the_step(node: ast.AST, ctx: Context) -> bool:
    """Whether the call stands where a batch is left out: `if has_nan: ...; continue`."""
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(outer, ast.If) and isinstance(outer.body[-1], (ast.Continue, ast.Return)):
            if any(_GIVEN_UP.search(name) for name in names_in(outer.test)):
                return True
    return False


def is_load_shedding(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` runs only when memory is short: under a test of how much is used, or in what tries again then; or
    where a switch says that speed is given up for it.
    """
    inside = True
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = False
            if _RETRY.search(outer.name):
                return True
        if not inside:
            continue
        if isinstance(outer, ast.If):
            for part in walk(outer.test):
                name = last_name(part)
                if name in _PRESSURE or _SAVING.search(name) or ("memory" in name and "pin" not in name):
                    return True
    return False
