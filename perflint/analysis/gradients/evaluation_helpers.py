"""Evaluations whose model another function of the project runs: `for batch in loader: self._eval_step(batch)`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import arguments_by_name
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.names.refs import CLASS, FUNCTION, Ref, Scope
from perflint.ir.callees import last_name as last_of
from perflint.ir.summary import CallFacts

#: What asks for a graph: whoever calls this has seen to gradients.
_SEES_TO_GRADIENTS = frozenset({"grad", "backward", "enable_grad", "set_grad_enabled", "requires_grad_"})


def run_by_helper(parts: list[ast.AST], models: Collection[str], ctx: FileFacts) -> ast.Call | None:
    """The first call in a loop of a function that runs one of the `models` with gradients on, and never walks back."""
    calls = [part for part in parts if isinstance(part, ast.Call) and ctx.loops(part) and not ctx.grad_off(part)]
    for call in sorted(calls, key=lambda item: (item.lineno, item.col_offset)):
        if _runs(call, models, ctx):
            return call
    return None


def run_for(call: ast.Call, ctx: FileFacts) -> set[str]:
    """The last names of what a function of the project is given by a call and runs as a module, with gradients on."""
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != FUNCTION:
        return set()
    scope = Scope(ref.path, ref.name)
    given = arguments_by_name(call, ctx.program.function(scope)).items()
    return {word for name, value in given if (word := name_of_whole(value)) and _runs_any(scope, {name}, ctx)}


def _runs(call: ast.Call, models: Collection[str], ctx: FileFacts) -> bool:
    ref = ctx.project_target(call.func)
    if ref is not None and ref.kind == FUNCTION:
        scope = Scope(ref.path, ref.name)
        facts = ctx.program.function(scope)
        given = arguments_by_name(call, facts)
        own = {name for name, value in given.items() if name_of_whole(value) in models}
        if isinstance(call.func, ast.Attribute) and ctx.text(call.func.value) == "self":
            own |= {f"self.{name}" for name in models}
        if _is_called_on(call, models) and ctx.program.is_module(Ref(CLASS, ref.path, facts.in_class)):
            own.add("self")
        return _runs_any(scope, own, ctx)
    if ref is not None or not _is_called_on(call, models) or isinstance(ctx.tree.parent(call), ast.Expr):
        return False
    assert isinstance(call.func, ast.Attribute)
    # Which class it is of cannot be told: what most modules do that have such a method.
    named = [scope for scope in ctx.program.named(call.func.attr) if _is_of_module(scope, ctx)]
    if any(ctx.program.grad_off(scope) for scope in named):
        return False
    return 2 * sum(_runs_module(scope, ctx) for scope in named) > len(named)


def _runs_any(scope: Scope, own: Collection[str], ctx: FileFacts) -> bool:
    """Whether a function runs, with gradients on, what goes by one of the names there, and never walks back."""
    facts = ctx.program.function(scope)
    if facts.is_generator or any(_sees_to_gradients(item) for item in facts.calls):
        return False
    calls = [(item, _model_of(item)) for item in facts.calls]
    forwards = [item for item, name in calls if name in own and (item.args or item.keywords or name == "self")]
    return any(not ctx.program.grad_off(scope, item.context) for item in forwards) and not ctx.program.trains(scope)


def _is_called_on(call: ast.Call, models: Collection[str]) -> bool:
    """Whether a call is one of a method of a model, with something given."""
    func = call.func
    is_given = bool(call.args or call.keywords)
    return is_given and isinstance(func, ast.Attribute) and name_of_whole(func.value) in models


def _is_of_module(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a function is a method of a module, that gives something."""
    facts = ctx.program.function(scope)
    is_method = facts.in_class and ctx.program.is_module(Ref(CLASS, scope.path, facts.in_class))
    return bool(is_method and facts.returns)


def _runs_module(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a method of a module runs it, or layers of it."""
    calls = ctx.program.function(scope).calls
    layers = {str(item.func) for item in calls if item.args and str(item.func).startswith("self.")}
    return _runs_any(scope, {"self", *layers}, ctx)


def _model_of(item: CallFacts) -> str:
    """`self.model` of `self.model(x)`, of `self.model.forward(x)` and of `self.model["generator"](x)`."""
    func = item.func
    while isinstance(func, tuple) and func[0] == "item":
        func = func[1]
    if not isinstance(func, str):
        return ""
    return func.removesuffix(".forward")


def _sees_to_gradients(item: CallFacts) -> bool:
    """Whether a call asks for a graph, or would raise where there is one, as `output.cpu().numpy()` does."""
    name = last_of(item.func)
    if name == "numpy":
        made = str(item.func)
        return "detach" not in made and "data" not in made
    return name in _SEES_TO_GRADIENTS
