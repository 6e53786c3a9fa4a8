"""Functions that someone else has put the model into evaluation mode for: who calls them, `net.eval()` and then
`infer(net, image)`, or the constructor of their class.
"""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.ways_in import ways_in
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.naming.phases import EVALUATES, HOOK
from perflint.finding import Heat
from perflint.ir.summary import FunctionFacts

#: Calls on the way from the switch to the evaluation.
_CALLERS = 2


def evaluated_elsewhere(function: ast.FunctionDef | ast.AsyncFunctionDef, ctx: FileFacts) -> tuple[set[str], Heat]:
    """The last names of the models that a function finds in evaluation mode on every call, as it calls them, and how
    often a forward has to run there. What is not named for an evaluation is one where nothing that leads to it trains.
    """
    if HOOK.search(function.name):
        return set(), Heat.EPOCH
    scope = ctx.own_scope(function)
    if EVALUATES.search(function.name):
        return _by_all_callers(scope, ctx), Heat.EPOCH
    if ctx.program.peak(scope) < Heat.STEP or _is_of_module(scope, ctx):
        return set(), Heat.STEP  # a module runs as whoever runs it has set it
    found = _by_all_callers(scope, ctx) | _by_constructor(scope, ctx)
    if found and any(ctx.program.trains(edge.caller) for edge in ways_in(scope, ctx)):
        return set(), Heat.STEP
    return found, Heat.STEP


def _is_of_module(scope: Scope, ctx: FileFacts) -> bool:
    owner = ctx.program.function(scope).in_class
    return bool(owner) and ctx.program.is_module(Ref(CLASS, scope.path, owner))


def _by_constructor(scope: Scope, ctx: FileFacts) -> set[str]:
    """The attributes that the constructor of the class puts into evaluation mode, and no method out of it."""
    owner = ctx.program.function(scope).in_class
    functions = ctx.program.summaries[scope.path].functions
    constructor = functions.get(f"{owner}.__init__") if owner else None
    if constructor is None:
        return set()
    switched = {model for model, is_on in _modes(constructor).items() if is_on and model.startswith("self.")}
    methods = (facts for facts in functions.values() if facts.in_class == owner) if switched else ()
    for facts in methods:
        switched -= {model for model, is_on in _modes(facts).items() if not is_on}
    return {model.rpartition(".")[2] for model in switched}


def _by_all_callers(scope: Scope, ctx: FileFacts) -> set[str]:
    found: set[str] | None = None
    for edge in ctx.program.callers(scope):
        if ctx.program.never_runs(edge.caller):
            continue
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
    modes = _modes(facts, before=(call.line, call.column))
    evaluated = {model for model, is_evaluated in modes.items() if is_evaluated}
    if not modes and depth > 1:
        around = [_switched(outer, edge.caller, ctx, depth - 1) for outer in ctx.program.callers(edge.caller)]
        evaluated = set.intersection(*around) if around else set()
    holder = f"{str(call.func).rpartition('.')[0]}."
    found = {f"self.{model.removeprefix(holder)}" for model in evaluated if model.startswith(holder) and holder != "."}
    for param in ctx.program.function(callee).params:
        passed = ctx.program.argument(edge, param.name.lstrip("="))
        if type(passed) is str and passed in evaluated:
            found.add(param.name.lstrip("="))
    return found


def _modes(facts: FunctionFacts, before: tuple[int, int] | None = None) -> dict[str, bool]:
    """The models that a function switches above a place, and whether it last put them into evaluation mode."""
    modes: dict[str, bool] = {}
    calls = [call for call in facts.calls if type(call.func) is str and call.func.endswith((".eval", ".train"))]
    for call in sorted(calls, key=lambda item: (item.line, item.column)) if len(calls) > 1 else calls:
        if before is not None and (call.line, call.column) >= before:
            break
        model, _, mode = call.func.rpartition(".")
        modes[model] = mode == "eval" and not call.args
    return modes
