"""Ways into a function on which gradients are off."""

from __future__ import annotations

from perflint.analysis.call_graph.ways_in import ways_in
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.torch_model.names import last

#: Calls on the way to a forward that are looked at.
_CALLERS = 3
#: Methods of one name, of which each may be meant where it is called.
_NAMESAKES = 3


def is_switched_off_by_some(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a way into a function has no gradients: a forward on another one, which nothing calls, is for users."""
    return any(ctx.program.grad_off(edge.caller, edge.context) for edge in ways_in(scope, ctx))


def is_called_without_gradients(scope: Scope, ctx: FileFacts, depth: int = _CALLERS) -> bool:
    """Whether all that leads to a function has gradients off; of a method that nothing is known to call, whether one of
    its name is called so, on whatever: `self.algorithm.act(seen)`.
    """
    callers = ctx.program.callers(scope)
    if callers:
        return depth > 0 and all(
            ctx.program.grad_off(edge.caller, ctx.program.function(edge.caller).calls[edge.index].context)
            or is_called_without_gradients(edge.caller, ctx, depth - 1)
            for edge in callers
        )
    name = last(scope.function)
    if name == "forward" or len(ctx.program.named(name)) > _NAMESAKES:
        return False  # the name tells nothing
    return ctx.program.whole.is_method_called_without_grad(name)
