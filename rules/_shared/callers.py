"""What leads to a function."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.api import Context, Edge, Scope


def ways_in(scope: Scope, ctx: Context) -> Iterator[Edge]:
    """The calls of a function, those of its callers, and so on, each once."""
    seen, waiting = {scope}, [scope]
    while waiting:
        for edge in ctx.program.callers(waiting.pop()):
            yield edge
            if edge.caller not in seen:
                seen.add(edge.caller)
                waiting.append(edge.caller)
