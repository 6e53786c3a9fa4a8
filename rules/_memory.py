"""What the rules about freeing memory share."""

from __future__ import annotations

import ast
import re

from perflint.api import Context

_PRESSURE = frozenset(
    "memory_allocated memory_reserved max_memory_allocated mem_get_info virtual_memory memory_percent memory_usage "
    "get_memory free_memory used_memory memory_summary memory_stats is_oom oom low_memory".split()
)

_RETRY = re.compile(r"(?:^|_)oom(?:$|_)|out_of_memory")


#: Switches that give up speed for memory: results that are kept on the host, sleep of what shares the device.
_SAVING = re.compile(
    r"offload|cpu_cache|low_?v?(?:ram|mem)|(?:^|_)sleep|save_?(?:v?ram|mem)|"
    r"(?:clear|empty|free)_?(?:cuda_?|gpu_?)?(?:cache|mem)",
    re.IGNORECASE,
)


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
            for part in ast.walk(outer.test):
                name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
                if name in _PRESSURE or _SAVING.search(name) or ("memory" in name and "pin" not in name):
                    return True
    return False
