"""Models that run by a method of their own, `flow.log_prob(x)`, told by what the method does, for evaluations."""

from __future__ import annotations

import ast
from collections.abc import Collection

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.grad_switches import grad_switch
from perflint.analysis.gradients.forwards import FORWARD_METHODS, is_method_of_values
from perflint.analysis.gradients.model_calls import is_model_call, name_of_whole
from perflint.analysis.names.refs import CLASS, FUNCTION, Ref, Scope
from perflint.analysis.naming.models import GRADIENTS_OFF, LAYER_WITH_PARAMETERS
from perflint.analysis.naming.phases import PREDICTS
from perflint.analysis.values.kind import Kind, Tag
from perflint.ir.calls import arguments_of
from perflint.torch_model.effects import Effect

#: Methods that run a model and have always done so, whatever is known of it.
_FORWARDS = ("forward", "encode", "encode_image", "encode_text")
#: Methods of models that switch gradients off, and forwards that are named elsewhere.
_SWITCHING = frozenset({"generate", "sample", "forward"})
_TRAINS = (Effect.BACKWARD, Effect.STEPS)
#: How many functions a forward is looked for in.
_DEEPEST = 8


def runs_model(call: ast.AST, ctx: FileFacts) -> bool:
    """Whether a call runs a network, by calling it or by a method of it."""
    return is_model_call(call, ctx) or (isinstance(call, ast.Call) and ctx.once(_runs_by_method, call))


def network_of(call: ast.Call, ctx: FileFacts) -> str:
    """The text of the network that a call runs: `self.net` of `self.net(x)`, `self.net.forward(x)` and of any method
    that runs layers of it, `self.net.encode(x)`.
    """
    func = call.func
    if isinstance(func, ast.Attribute) and (func.attr in FORWARD_METHODS or runs_own_layers(call, ctx)):
        return ctx.text(func.value)
    return ctx.text(func)


def runs_own_layers(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call is of a method of a network that runs parts of that with parameters: `gen.encode(x)`, and not
    `net.loss_of(x, y)`.
    """
    return ctx.once(_runs_by_method, call) and ctx.once(_runs_own_layers, call)


def _runs_own_layers(call: ast.Call, ctx: FileFacts) -> bool:
    ref = ctx.project_target(call.func)
    return ref is not None and _runs_part(Scope(ref.path, ref.name), ctx, _DEEPEST)


def _runs_part(scope: Scope, ctx: FileFacts, depth: int) -> bool:
    facts = ctx.program.function(scope)
    turns = {name for loop in facts.loops if "'self." in repr(loop.iterable) for name in loop.targets}
    for item in facts.calls:
        func = item.func
        if not isinstance(func, str):
            continue
        if func in turns or func in ("self", "self.forward"):
            return True
        if not func.startswith("self.") or func.count(".") > 1:
            continue
        for ref in ctx.program.refs(func, scope):
            if ref.kind == FUNCTION:
                if depth and ref.path and _runs_part(Scope(ref.path, ref.name), ctx, depth - 1):
                    return True
            elif _has_parameters(ctx.inference.of_refs((ref,))):
                return True
    return False


def _has_parameters(kind: Kind) -> bool:
    if kind.tag is not Tag.MODULE:
        return False
    is_layer = kind.qualified.startswith("torch.nn.") and not kind.path
    return not is_layer or bool(LAYER_WITH_PARAMETERS.match(kind.qualified.rpartition(".")[2]))


def runs_one_of(call: ast.Call, networks: Collection[str], ctx: FileFacts) -> bool:
    """Whether a call runs one of the networks of these texts."""
    if ctx.text(call.func) in networks:
        return True
    return (
        isinstance(call.func, ast.Attribute)
        and ctx.text(call.func.value) in networks
        and (network_of(call, ctx) in networks)
    )


def runs_part(call: ast.AST, ctx: FileFacts) -> bool:
    """Whether a call runs a network or a part of one: what a module has that takes a tensor of the device is a layer
    of it, or a method that runs some, but for methods that are known to see to gradients themselves.
    """
    return runs_model(call, ctx) or (isinstance(call, ast.Call) and ctx.once(_is_member_given_tensor, call))


def _is_member_given_tensor(call: ast.Call, ctx: FileFacts) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute) or is_method_of_values(func) or PREDICTS.search(func.attr):
        return False
    if func.attr in _SWITCHING or ctx.kind(func.value).tag is not Tag.MODULE or ctx.kind(func).known:
        return False
    if ctx.project_target(func) is not None or isinstance(ctx.tree.parent(call), ast.Expr):
        return False
    return any(ctx.kind(item).on_accelerator for item in arguments_of(call))


def names_of_models(call: ast.Call, ctx: FileFacts) -> list[str]:
    """The names of all that a call runs something of: `visual` and `model` for `model.visual(x)`."""
    found, whole = [model_name(call, ctx)], call.func
    while isinstance(whole, ast.Attribute):
        whole = whole.value
        found.append(name_of_whole(whole))
    return found


def model_name(call: ast.Call, ctx: FileFacts) -> str:
    """`model` for `model(x)`, `self.model(x)`, `model.encode(x)` and any other method that runs it."""
    func = call.func
    if isinstance(func, ast.Attribute) and (func.attr in _FORWARDS or ctx.once(_runs_by_method, call)):
        return name_of_whole(func.value)
    return name_of_whole(func)


def _runs_by_method(call: ast.Call, ctx: FileFacts) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute) or not (call.args or call.keywords) or is_method_of_values(func):
        return False
    methods = _methods_of_network(func, call, ctx)
    if not methods:
        return False
    effects = ctx.effects(call)
    if not effects.does(Effect.FORWARD) or effects.does(*_TRAINS):
        return False
    return all(_runs_with_gradients(scope, ctx) for scope in methods)


def _methods_of_network(func: ast.Attribute, call: ast.Call, ctx: FileFacts) -> list[Scope]:
    """The methods of networks that a call may run: of one that is known to be a network, or of what nobody knows and
    what no class but those of networks has a method for.
    """
    kind = ctx.kind(func.value)
    ref = ctx.project_target(func) if kind.tag is Tag.MODULE else None
    if kind.known:
        return [Scope(ref.path, ref.name)] if ref is not None and ref.kind == FUNCTION else []
    index = ctx.call_index(call)
    edges = ctx.program.graph.outgoing.get(ctx.scope(call), ()) if index is not None else ()
    called = [edge.callee for edge in edges if edge.index == index]
    owners = (Ref(CLASS, scope.path, ctx.program.function(scope).in_class) for scope in called)
    return called if all(owner.name and ctx.program.is_module(owner) for owner in owners) else []


def _runs_with_gradients(scope: Scope, ctx: FileFacts) -> bool:
    """Whether nothing on the way to the first forward switches gradients off, and the method gives something."""
    if not ctx.program.function(scope).returns:
        return False
    for _ in range(_DEEPEST):
        facts = ctx.program.function(scope)
        if facts.is_generator or any(GRADIENTS_OFF.search(str(decorator)) for decorator in facts.decorators):
            return False
        if any(grad_switch(facts, at) == "no_grad" for at in range(len(facts.contexts))):
            return False
        witness = ctx.program.effects(scope).witness(Effect.FORWARD)
        if witness is None or witness.via is None:
            return witness is not None
        scope = witness.via
    return False
