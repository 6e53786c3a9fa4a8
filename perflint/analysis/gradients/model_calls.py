"""What the rules about kept graphs share: what asks for gradients, and what a value is used for in the end."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.asked_for_parameters import is_asked_for_parameters
from perflint.analysis.gradients.forwards import FORWARD_METHODS, is_forward, is_method_of_values
from perflint.analysis.names.refs import FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.naming.models import CHEAP, LOSS, MODEL, NEEDS_GRADIENTS
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk

#: Libraries whose objects run on the host.
_WITHOUT_TENSORS = frozenset("numpy scipy pandas sklearn csv re json xgboost lightgbm statsmodels".split())


def is_model_call(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a call runs a network: by its kind, by what it is asked for, or by a name that only models have."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return False
    if isinstance(node.func, ast.Name) and node.func.id in ctx.summary.classes and makes_instance(node.func):
        return False
    if is_loss_function(node.func, ctx):
        return False
    if is_forward(node, ctx):
        return True
    name = callee_name(node)
    model: ast.expr = node.func
    if name == "forward" and isinstance(model, ast.Attribute):
        model = model.value  # `model.forward(x)`
        name = name_of_whole(model)
    if not (node.args or node.keywords) or not (MODEL.search(name) or is_asked_for_parameters(model, ctx)):
        return False
    if ctx.kind(node.func).known or ctx.kind(model).known or ctx.project_target(node.func) is not None:
        return False
    return not is_of_the_host(model, ctx)


def is_of_the_host(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether something is made by a library that has no tensors, or is a method of a text or an array, whatever it is
    called: `model = np.poly1d(parts)`.
    """
    made = [item for item in ctx.inference.origins(node) if item is not node]
    return bool(made) and all(_is_made_on_the_host(item, ctx) for item in made)


def _is_made_on_the_host(value: ast.expr, ctx: FileFacts) -> bool:
    if isinstance(value, ast.Call):
        return (ctx.target(value.func) or "").partition(".")[0] in _WITHOUT_TENSORS
    return isinstance(value, ast.Attribute) and ctx.kind(value.value).tag in (Tag.STRING, Tag.ARRAY)


def makes_instance(func: ast.expr) -> bool:
    """Whether what is called is a class by its name: one in small letters may go by the name of its only instance,
    as after `net = net()`, and one in capitals by that of a constant.
    """
    name = last_name(func).lstrip("_")
    return name[:1].isupper() and not name.isupper()


def is_loss_function(func: ast.expr, ctx: FileFacts) -> bool:
    """Whether what is called gives a loss: a criterion, by its class or by its name."""
    if is_loss_name(func):
        return True
    if isinstance(func, (ast.Name, ast.Attribute)) and is_method_of_values(func):
        return False
    return (ctx.kind(func).qualified or "").rpartition(".")[2].endswith("Loss")


def is_loss_name(func: ast.expr) -> bool:
    """Whether what is called goes by the name of a loss."""
    return bool(LOSS.search(name_of_whole(func)))


def name_of_whole(node: ast.expr) -> str:
    """`losses` for `self.losses[0]` as for `self.losses`; empty for what is neither named nor an item of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return last_name(node)


def asks_for_gradients(region: ast.AST) -> bool:
    """Whether a region names anything that needs gradients, trains, or switches gradients itself."""
    return asks_in(walk(region))


def asks_in(parts: Iterable[ast.AST]) -> bool:
    """As `asks_for_gradients`, of the nodes given."""
    for part in parts:
        name = ""
        if isinstance(part, ast.Attribute):
            name = part.attr
        elif isinstance(part, ast.Name):
            name = part.id
        elif isinstance(part, (ast.keyword, ast.arg)):
            name = part.arg or ""
        if name and NEEDS_GRADIENTS.search(name):
            return True
    return False


def may_differentiate(forward: ast.Call, ctx: FileFacts, *, losses: bool = False) -> bool:
    """Whether a module that cannot be looked through may be one of those that need gradients to compute their results,
    as forces are of energies, in a program that has such modules. With `losses`, those that weigh a loss by its
    gradients count as well.
    """
    whole = ctx.program.whole
    kind = ctx.kind(forward.func)
    refs = ctx.refs(forward.func) if isinstance(forward.func, (ast.Name, ast.Attribute)) else ()
    if kind.path and kind.qualified:
        refs += (Ref(INSTANCE, kind.path, kind.qualified),)
    methods = [
        method
        for ref in refs
        if ref.path
        and (method := ctx.program.resolver.method(ref, "forward") if ref.kind == INSTANCE else ref) is not None
    ]
    scopes = [Scope(method.path, method.name) for method in methods if method.path and method.kind == FUNCTION]
    if any(whole.differentiates_in(scope) for scope in scopes):
        return True
    if not (whole.differentiates_inputs or (losses and whole.differentiates)):
        return False
    return not scopes or any(ctx.program.graph.unresolved.get(scope) for scope in scopes)


def runs_network(call: ast.Call, ctx: FileFacts, *, sure: bool) -> bool:
    """Whether a call runs a network. `sure`: what it is given can only be meant for one."""
    if callee_is_cheap(call):
        return False
    if is_model_call(call, ctx):
        return True
    if not sure or not isinstance(call.func, ast.Attribute) or call.func.attr not in FORWARD_METHODS | {"decode"}:
        return False
    return not ctx.kind(call.func.value).known and ctx.project_target(call.func) is None


def callee_is_cheap(call: ast.Call) -> bool:
    """Whether what is called only changes an image, or looks a row up."""
    return bool(CHEAP.search(name_of_whole(call.func))) or (
        isinstance(call.func, ast.Attribute) and bool(CHEAP.search(name_of_whole(call.func.value)))
    )
