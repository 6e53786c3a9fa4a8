"""Which calls say little of what a function is for: those that only show it, those that only users of a library run,
and those where all else failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.analysis.values.kind import Kind, Place, Tag, join
from perflint.analysis.values.origin import Origin, Provenance
from perflint.ir import guards
from perflint.ir.summary import MODULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflint.analysis.call_graph.edges import Edge
    from perflint.analysis.names.refs import Scope
    from perflint.analysis.values.evaluating import Evaluating
    from perflint.analysis.values.linked import Linked
    from perflint.ir.summary import Context


def is_last_resort(edge: Edge, program: Linked) -> bool:
    """Whether a call stands where something went wrong."""
    return any(item.kind == "guard" and item.detail == guards.RARE for item in _around(edge, program))


def tells_no_place(name: str, scope: Scope, edges: Sequence[Edge], inference: Evaluating, *, is_used: bool) -> bool:
    """Whether all calls of a function say nothing of where what it is given lies: they only show a forward, which
    others call besides where it `is_used`; or they stand in what only users of a library run, who call this as well.
    """
    if name == "forward" and all(_is_shown(edge, inference, elsewhere=is_used) for edge in edges):
        return True
    program = inference.program
    return bool(edges) and all(program.whole.is_for_users(edge.caller, edge.context, scope) for edge in edges)


def without_place(kind: Kind) -> Kind:
    """What is on the host wherever it lies and comes from, and what is held. Others give a mapping with other keys."""
    items = tuple((key, without_place(held)) for key, held in kind.items)
    element = kind.element and without_place(kind.element)
    if kind.tag is Tag.MAPPING:
        items, element = (), element or join([without_place(held) for _, held in kind.items])
    if kind.on_accelerator:
        return kind.but(items=items, element=element)
    origin = Origin(Provenance.USE) if kind.holds_tensors else kind.origin
    return kind.but(place=Place.UNKNOWN, device=None, items=items, element=element, origin=origin)


def _is_shown(edge: Edge, inference: Evaluating, *, elsewhere: bool) -> bool:
    """Whether a call only shows that a module runs, which is on the host: at the end of the module's own file, or in a
    function there that is given nothing and that nothing hot runs; of one that is called through its base `elsewhere`,
    once at the top of any file, as notebooks do.
    """
    caller, program = edge.caller, inference.program
    if caller.function != MODULE:
        is_there = (
            caller.path == inference.path and not program.summaries[caller.path].functions[caller.function].params
        )
        return is_there and not program.role(caller, edge.context)
    if caller.path == inference.path:
        return True
    return elsewhere and not any(item.kind == "loop" for item in _around(edge, program))


def _around(edge: Edge, program: Linked) -> Iterator[Context]:
    """What a call stands in, from inside."""
    contexts = program.summaries[edge.caller.path].functions[edge.caller.function].contexts
    context = edge.context
    while context >= 0:
        yield contexts[context]
        context = contexts[context].parent
