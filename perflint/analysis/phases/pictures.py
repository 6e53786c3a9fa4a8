"""Code that draws: it takes far longer than what it shows, and is not run on every step."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.syntax.walk import walk


def is_for_a_picture(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a node stands beside the drawing of a picture, in the same function or loop of a script."""
    around: ast.AST | None = ctx.tree.function_of(node)
    if around is None:  # a script may train in one loop and draw in another
        around = next(iter(ctx.loops(node)), None)
    return around is not None and any(
        isinstance(part, ast.Call) and (ctx.target(part.func) or "").startswith("matplotlib.") for part in walk(around)
    )
