"""The fix that gives a loader workers."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix, has_unpacking, keyword
from perflint.api.loading import option


def four_workers(node: ast.Call, ctx: Context) -> Fix | None:
    if has_unpacking(node) and keyword(node, "num_workers") is None and option(node, "num_workers", ctx) is not None:
        return None  # the dict that is spread says it, and saying it twice raises
    return Fix(
        "Load with four workers",
        Applicability.UNSAFE,
        (ctx.edit.set_keyword(node, "num_workers", "4"),),
        reason=(
            "augmentation uses per-worker seeds, state of the dataset stays in the worker, and every worker "
            "repeats an iterable dataset"
        ),
        numerics="changes training",
    )
