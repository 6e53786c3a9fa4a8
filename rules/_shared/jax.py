"""Files whose steps JAX runs: it copies arrays by itself, and compiles for one shape."""

from __future__ import annotations

from perflint.api import Context

_LIBRARIES = ("jax", "flax")


def trains_with_jax(ctx: Context) -> bool:
    """Whether a file uses JAX, and takes no steps with torch: many that do ask JAX for something."""
    return not ctx.mentions("backward", "zero_grad") and any(
        target.partition(".")[0] in _LIBRARIES for target in ctx.summary.imports.values()
    )
