"""Functions of the program that compute with tensors and nothing else: their result has the graph of what they get."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.torch_model.effects import Effect

#: What a function calls or enters where its result may have no graph of what it is given.
_CUTTING = frozenset("detach detach_ item numpy tolist argmax argmin multinomial no_grad backward".split())


def passes_on(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call is of such a function: it runs no network, cuts no graph and keeps nothing."""
    ref = ctx.project_target(call.func)
    return ref is not None and ref.kind == FUNCTION and bool(ref.path) and _passes_on(Scope(ref.path, ref.name), ctx)


def _passes_on(scope: Scope, ctx: FileFacts) -> bool:
    facts = ctx.program.function(scope)
    if not facts.returns or facts.is_generator or facts.decorators:
        return False
    if any(item.kind == "no_grad" for item in facts.contexts):
        return False
    params = {param.name.lstrip("=*") for param in facts.params}
    if any(call.func in params for call in facts.calls):
        return False  # nobody knows what a function that it is given does
    effects = ctx.program.effects(scope)
    if effects.keeps or effects.does(Effect.FORWARD, Effect.BACKWARD, Effect.STEPS):
        return False
    return not any(str(call.func).rpartition(".")[2] in _CUTTING for call in facts.calls)
