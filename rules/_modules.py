"""What the rules about loading modules share."""

from __future__ import annotations

import ast

from perflint.api import Context


def is_part(first: ast.expr, second: ast.expr, ctx: Context) -> bool:
    """Whether one of two modules is reached through the other: `model` and `model.body[0]`."""
    left, right = ctx.text(first), ctx.text(second)
    return left != right and (right.startswith((f"{left}.", f"{left}[")) or left.startswith((f"{right}.", f"{right}[")))
