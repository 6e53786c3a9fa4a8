"""Modules whose parameters take no gradients, by the file that runs them or by their own constructors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import FORWARD_METHODS
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.names.refs import FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.naming.models import ALL_PARAMETERS, FREEZERS, PARTS
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import arguments_of, callee_name, is_constant, keyword
from perflint.ir.summary import FunctionFacts
from perflint.syntax.walk import walk

_OFF, _ON = ("const", "bool", False), ("const", "bool", True)
_WRAPPED = ("module", "_orig_mod")


def is_frozen(forward: ast.Call, ctx: FileFacts) -> bool:
    """Whether the gradients are taken away from the parameters of all that runs."""
    names = set(_owners(_model(forward)))
    if _is_given_to_freezer(names, ctx) or _freezes_itself(forward, ctx):
        return True
    if not ctx.mentions("requires_grad", "requires_grad_", "Parameter"):
        return False
    setting = ctx.once(_loops_that_set, ctx.tree.module)
    if any(not names.isdisjoint(handed) or _is_of_own_parameters(loop, forward, ctx) for loop, handed in setting):
        return True
    return name_of_whole(_model(forward)) in ctx.once(_given_fixed_weights, ctx.tree.module)


def is_switched(forward: ast.Call, ctx: FileFacts) -> bool:
    """Whether anything in the file sets whether the parameters of what runs take gradients: for good, or for a step."""
    names = set(_owners(_model(forward)))
    freezing = (handed for _, handed in ctx.once(_freezing_calls, ctx.tree.module))
    switching = ctx.once(_switching, ctx.tree.module)
    return any(not names.isdisjoint(handed) for handed in (*freezing, *switching))


def _loops_that_set(module: ast.Module, ctx: FileFacts) -> list[tuple[ast.For, frozenset[str]]]:
    """The loops that may set whether parameters take gradients, each with the names of what it goes through."""
    del ctx
    return [
        (part, frozenset(_wholes(part.iter)))
        for part in walk(module)
        if isinstance(part, ast.For) and any(_sets_requires_grad(inner) for inner in walk(part))
    ]


def _switching(module: ast.Module, ctx: FileFacts) -> list[frozenset[str]]:
    """What is handed to each loop, call and context manager that may set whether parameters take gradients."""
    found = [handed for _, handed in ctx.once(_loops_that_set, module)]
    for part in walk(module):
        if isinstance(part, ast.Call) and (
            callee_name(part) == "requires_grad_" or _switches_what_it_is_given(part, ctx)
        ):
            found.append(frozenset(_handed_to(part)))
        elif isinstance(part, ast.withitem) and isinstance(part.context_expr, ast.Call):
            found.append(frozenset(_handed_to(part.context_expr)))
    return found


def _model(forward: ast.Call) -> ast.expr:
    """`teacher` for `teacher(x)`, `self.teacher(x)` and `teacher.encode(x)`."""
    func = forward.func
    return func.value if isinstance(func, ast.Attribute) and func.attr in FORWARD_METHODS else func


def _owners(model: ast.expr) -> Iterator[str]:
    """`encoder` and `teacher` of `self.teacher.encoder`: what holds a module is not frozen without it."""
    while True:
        name = name_of_whole(model)
        if name and name != "self":
            yield name
        while isinstance(model, ast.Subscript):
            model = model.value
        if not isinstance(model, ast.Attribute):
            return
        model = model.value


def _wholes(value: ast.expr) -> Iterator[str]:
    """The names of what is handed over whole: `a` and `b` of `[a, self.b.parameters()]`, none of `a.blocks[:3]`."""
    if isinstance(value, ast.Attribute) and value.attr in _WRAPPED:
        yield from _wholes(value.value)
    elif isinstance(value, (ast.Name, ast.Attribute)):
        yield name_of_whole(value)
    elif isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Slice):
        yield from _wholes(value.value)
    elif isinstance(value, ast.Starred):
        yield from _wholes(value.value)
    elif isinstance(value, (ast.List, ast.Tuple)):
        for item in value.elts:
            yield from _wholes(item)
    elif isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and ALL_PARAMETERS.search(value.func.attr):
            yield from _wholes(value.func.value)
        for item in arguments_of(value):
            yield from _wholes(item)


def _is_given_to_freezer(names: set[str], ctx: FileFacts) -> bool:
    """`deactivate_requires_grad(self.teacher)`, `freeze(teacher)`, `teacher.freeze()`; not what is thawed again by
    `set_requires_grad(net, True)`, nor what has its layers frozen: `freeze_bn(net)`.
    """
    found = [call for call, handed in ctx.once(_freezing_calls, ctx.tree.module) if not names.isdisjoint(handed)]
    return bool(found) and not any(_thaws(call) for call in found)


def _freezing_calls(module: ast.Module, ctx: FileFacts) -> list[tuple[ast.Call, frozenset[str]]]:
    """The calls that freeze parameters, each with the names of what they are given."""
    return [
        (part, frozenset(_handed_to(part)))
        for part in walk(module)
        if isinstance(part, ast.Call) and (_is_freezer(callee_name(part)) or _freezes_what_it_is_given(part, ctx))
    ]


def _is_freezer(name: str) -> bool:
    """Not a class: `with RequiresGrad(model)` is the other way round."""
    return FREEZERS.match(name) is not None and not name[0].isupper() and PARTS.search(name) is None


def _freezes_what_it_is_given(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a function of the project, whatever it is called, goes through the parameters of its first argument."""
    return any(facts.params and _freezes(facts.params[0].name.lstrip("*"), facts) for facts in _called(call, ctx))


def _switches_what_it_is_given(call: ast.Call, ctx: FileFacts) -> bool:
    """As `_freezes_what_it_is_given`, of a function that is told whether to take the gradients away or to give them."""
    for facts in _called(call, ctx):
        names = _weights(facts.params[0].name.lstrip("*"), facts) if facts.params else set()
        if any(f"{name}.requires_grad" in facts.binds for name in names):
            return True
        if any(call.func == f"{name}.requires_grad_" for call in facts.calls for name in names):
            return True
    return False


def _called(call: ast.Call, ctx: FileFacts) -> list[FunctionFacts]:
    """The functions of the project that a call with arguments may run."""
    refs = ctx.refs(call.func) if call.args and isinstance(call.func, (ast.Name, ast.Attribute)) else ()
    return [ctx.program.function(Scope(ref.path, ref.name)) for ref in refs if ref.kind == FUNCTION and ref.path]


def _handed_to(call: ast.Call) -> Iterator[str]:
    if isinstance(call.func, ast.Attribute):
        yield from _wholes(call.func.value)
    for item in arguments_of(call):
        yield from _wholes(item)


def _thaws(call: ast.Call) -> bool:
    values = arguments_of(call)
    return "grad" in callee_name(call).lower() and any(is_constant(value, value=True) for value in values)


def _freezes_itself(forward: ast.Call, ctx: FileFacts) -> bool:
    """Whether the constructor of the class takes the gradients from all that the object holds, if it is not told
    otherwise.
    """
    kind = ctx.kind(_model(forward))
    made = ctx.program.resolver.method(Ref(INSTANCE, kind.path, kind.qualified), "__init__") if kind.path else None
    if made is None or made.path not in ctx.program.summaries:
        return False
    facts = ctx.program.function(Scope(made.path, made.name))
    return _freezes("self", facts) or any(
        _is_freezer(last_of(call.func)) and "self" in call.args and _ON not in call.args for call in facts.calls
    )


def _freezes(name: str, facts: FunctionFacts) -> bool:
    """`for weight in name.parameters(): weight.requires_grad = False`, or `name.requires_grad_(False)`"""
    weights = _weights(name, facts)
    return any(_OFF in facts.binds.get(f"{weight}.requires_grad", ()) for weight in weights) or any(
        call.func == f"{weight}.requires_grad_" and _OFF in call.args for call in facts.calls for weight in weights
    )


def _weights(name: str, facts: FunctionFacts) -> set[str]:
    """The name of a module, and those that a loop gives its parameters."""
    through = [("call", f"{name}.{method}") for method in ("parameters", "named_parameters")]
    return {name}.union(*(loop.targets for loop in facts.loops if (loop.iterable or ())[:2] in through))


def _given_fixed_weights(module: ast.Module, ctx: FileFacts) -> frozenset[str]:
    """`emb` of `self.emb.weight = nn.Parameter(table, requires_grad=False)`: an embedding has no other parameter, and
    the places it is asked for carry no gradient.
    """
    del ctx
    found: set[str] = set()
    for part in walk(module):
        if not isinstance(part, ast.Assign):
            continue
        value, target = part.value, part.targets[0]
        if isinstance(value, ast.Call) and isinstance(target, ast.Attribute) and target.attr == "weight":
            if callee_name(value) == "Parameter" and is_constant(keyword(value, "requires_grad"), value=False):
                found.add(name_of_whole(target.value))
    return frozenset(found)


def _is_of_own_parameters(loop: ast.For, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the constructor of the class around `node` goes through `self.parameters()`, those of its parts."""
    function = ctx.tree.function_of(loop)
    if function is None or function.name != "__init__" or ctx.text(loop.iter) != "self.parameters()":
        return False
    return ctx.text(node.func).startswith("self.") and ctx.tree.class_of(loop) is ctx.tree.class_of(node)


def _sets_requires_grad(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return callee_name(node) == "requires_grad_"
    return isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store)
