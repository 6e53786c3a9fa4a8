"""What leads to a function."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope


def ways_in(scope: Scope, ctx: FileFacts) -> Iterator[Edge]:
    """The calls of a function, those of its callers, and so on, each once."""
    seen, waiting = {scope}, [scope]
    while waiting:
        for edge in ctx.program.callers(waiting.pop()):
            yield edge
            if edge.caller not in seen:
                seen.add(edge.caller)
                waiting.append(edge.caller)
