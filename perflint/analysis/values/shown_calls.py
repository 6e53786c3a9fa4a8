"""Which calls say little of what a function is for: those that only show it, and those where all else failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.ir import guards
from perflint.ir.summary import MODULE

if TYPE_CHECKING:
    from perflint.analysis.call_graph.edges import Edge
    from perflint.analysis.values.evaluating import Evaluating
    from perflint.analysis.values.linked import Linked
    from perflint.ir.summary import Context


def is_last_resort(edge: Edge, program: Linked) -> bool:
    """Whether a call stands where something went wrong."""
    return any(item.kind == "guard" and item.detail == guards.RARE for item in _around(edge, program))


def is_shown(edge: Edge, inference: Evaluating, *, elsewhere: bool) -> bool:
    """Whether a call only shows that a module runs, which is on the host: at the end of the module's own file; of one
    that is called through its base `elsewhere`, once at the top of any file, as notebooks do.
    """
    if edge.caller.function != MODULE:
        return False
    if edge.caller.path == inference.path:
        return True
    return elsewhere and not any(item.kind == "loop" for item in _around(edge, inference.program))


def _around(edge: Edge, program: Linked) -> Iterator[Context]:
    """What a call stands in, from inside."""
    contexts = program.summaries[edge.caller.path].functions[edge.caller.function].contexts
    context = edge.context
    while context >= 0:
        yield contexts[context]
        context = contexts[context].parent
