"""Functions that whoever calls them has put the model into evaluation mode for: `self.model.eval()`, then
`self.evaluate(loader)`.
"""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope

#: Calls on the way from the switch to the evaluation.
_CALLERS = 2


def evaluated_by_callers(function: ast.FunctionDef | ast.AsyncFunctionDef, ctx: FileFacts) -> set[str]:
    """The last names of the models that are in evaluation mode on every call of a function, as it calls them."""
    scope = ctx.own_scope(function)
    found: set[str] | None = None
    for edge in ctx.program.callers(scope):
        here = {name.rpartition(".")[2] for name in _switched(edge, scope, ctx, _CALLERS)}
        found = here if found is None else found & here
        if not found:
            return set()
    return found or set()


def _switched(edge: Edge, callee: Scope, ctx: FileFacts, depth: int) -> set[str]:
    """What the callee of a call has in evaluation mode, by its names there: attributes of the same object, and
    parameters.
    """
    facts = ctx.program.function(edge.caller)
    call = facts.calls[edge.index]
    modes: dict[str, bool] = {}
    for other in sorted(facts.calls, key=lambda item: (item.line, item.column)):
        if (other.line, other.column) >= (call.line, call.column):
            break
        if type(other.func) is str and other.func.endswith((".eval", ".train")):
            model, _, mode = other.func.rpartition(".")
            modes[model] = mode == "eval" and not other.args
    evaluated = {model for model, is_evaluated in modes.items() if is_evaluated}
    if not modes and depth > 1:
        around = [_switched(outer, edge.caller, ctx, depth - 1) for outer in ctx.program.callers(edge.caller)]
        evaluated = set.intersection(*around) if around else set()
    found = {model for model in evaluated if model.startswith("self.") and str(call.func).startswith("self.")}
    for param in ctx.program.function(callee).params:
        passed = ctx.program.argument(edge, param.name.lstrip("="))
        if type(passed) is str and passed in evaluated:
            found.add(param.name.lstrip("="))
    return found
