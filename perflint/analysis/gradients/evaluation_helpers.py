"""Evaluations whose model another function of the project runs: `for batch in loader: self._eval_step(batch)`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from perflint.analysis.evidence import last_name as last_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import arguments_by_name
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.names.refs import FUNCTION, Scope
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


def _runs(call: ast.Call, models: Collection[str], ctx: FileFacts) -> bool:
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != FUNCTION:
        return False
    scope = Scope(ref.path, ref.name)
    facts = ctx.program.function(scope)
    if facts.is_generator or any(_sees_to_gradients(item) for item in facts.calls):
        return False
    given = arguments_by_name(call, facts)
    own = {name for name, value in given.items() if name_of_whole(value) in models}
    if isinstance(call.func, ast.Attribute) and ctx.text(call.func.value) == "self":
        own |= {f"self.{name}" for name in models}
    forwards = [item for item in facts.calls if _model_of(item) in own and (item.args or item.keywords)]
    return any(not ctx.program.grad_off(scope, item.context) for item in forwards) and not ctx.program.trains(scope)


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
