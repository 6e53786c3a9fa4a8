"""Walks over all parameters or buffers of a model, and whether they are few."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.sources import last_of_call
from perflint.analysis.gradients.module_sizes import holds_few, holds_few_by_name
from perflint.analysis.gradients.optimized import optimizers_in
from perflint.analysis.gradients.trained_after import owners
from perflint.analysis.naming.models import COPIES, LAST_LAYERS, PARAMETER_LISTS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import callee_name, is_constant
from perflint.ir.notation import last_name
from perflint.ir.summary import FunctionFacts, Value
from perflint.syntax.walk import walk

_WALKS = frozenset("parameters named_parameters buffers named_buffers".split())
#: Functions around a walk that leave it one.
_WRAPPERS = frozenset("list tuple enumerate filter zip zip_strict reversed chain".split())


def walks_parameters(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether it goes through all parameters or buffers, as it is written or by what a function or a dict holds."""
    return is_walk(node) or _hands_out(node, ctx) or _is_of_mapping(node, ctx)


def is_walk(node: ast.expr) -> bool:
    """`model.parameters()`, pairs of those, entries of state dicts, lists named for parameters or gradients."""
    if isinstance(node, ast.Name):
        return PARAMETER_LISTS.search(node.id) is not None
    if isinstance(node, ast.Attribute):
        return PARAMETER_LISTS.search(node.attr) is not None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return is_walk(node.left) and is_walk(node.right)
    if isinstance(node, ast.Subscript):  # `group["params"]` of an optimizer
        return is_constant(node.slice, "params") and isinstance(node.value, ast.Name)
    if not isinstance(node, ast.Call):
        return False
    if callee_name(node) in _WALKS:
        return isinstance(node.func, ast.Attribute)
    if callee_name(node) in ("items", "values") and isinstance(node.func, ast.Attribute):
        return _is_state(node.func.value)
    return callee_name(node) in _WRAPPERS and any(is_walk(item) for item in node.args)


def walk_of_parameters(node: ast.AST) -> tuple[ast.expr, list[ast.AST]] | None:
    """The loop's target and what runs on each turn, for loops over a model's parameters."""
    if isinstance(node, ast.For):
        return (node.target, list(node.body)) if is_walk(node.iter) else None
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        first = node.generators[0]
        return (first.target, [node.elt, *first.ifs]) if is_walk(first.iter) else None
    if isinstance(node, ast.DictComp):
        first = node.generators[0]
        return (first.target, [node.value, node.key, *first.ifs]) if is_walk(first.iter) else None
    return None


def _hands_out(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a function of the project is called that returns such a walk, also in a wrapper: `for name, p in
    self.averaged(model):`, `zip(net.weights(), gradients)`.
    """
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and node.func.id in _WRAPPERS:
        return any(_hands_out(item, ctx) for item in node.args)
    index = ctx.call_index(node)
    edges = ctx.program.graph.outgoing.get(ctx.scope(node), ()) if index is not None else ()
    called = {edge.callee for edge in edges if edge.index == index and not edge.callback}
    return bool(called) and all(map(_returns_walks, map(ctx.program.function, called)))


def _is_of_mapping(node: ast.expr, ctx: FileFacts) -> bool:
    """`params.items()` of what was bound to `dict(model.named_parameters())` or to `model.state_dict()`, and the same
    by its keys.
    """
    mapping: ast.expr | None = node
    if isinstance(node, ast.Call):
        is_whole = callee_name(node) in ("items", "values", "keys") and isinstance(node.func, ast.Attribute)
        mapping = node.func.value if is_whole and isinstance(node.func, ast.Attribute) else None
    if isinstance(mapping, ast.Call):
        return _holds_parameters(mapping)
    made = ctx.inference.flow.definitions(mapping) if isinstance(mapping, ast.Name) else ()
    return bool(made) and all(not item.path and _holds_parameters(item.value) for item in made)


def _holds_parameters(value: ast.expr | None) -> bool:
    """Whether a value is a mapping of all parameters by name."""
    if not isinstance(value, ast.Call):
        return False
    if callee_name(value) == "state_dict":
        return isinstance(value.func, ast.Attribute) and not value.args
    return callee_name(value) in ("dict", "OrderedDict") and any(is_walk(given) for given in value.args)


def _returns_walks(facts: FunctionFacts) -> bool:
    """Whether all that a function returns are walks over parameters, written there or bound to a name."""
    returned = [
        item
        for value in facts.returns
        for item in ((facts.binds.get(value) or (value,)) if isinstance(value, str) else (value,))
    ]
    return bool(returned) and all(map(_is_written_walk, returned))


def _is_written_walk(value: Value) -> bool:
    """The same as `is_walk`, of a value of a summary."""
    if not isinstance(value, tuple) or value[0] != "call":
        return False
    if last_of_call(value) in _WALKS:
        owner = value[1].split(".")[-2:-1] if isinstance(value[1], str) else []
        return not any(map(LAST_LAYERS.match, owner))
    return last_of_call(value) in _WRAPPERS and any(map(_is_written_walk, value[2]))


def _is_state(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return callee_name(node) == "state_dict"
    return COPIES.search(last_name(node)) is not None


def walks_few(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether the walk is over the handful of parameters of a layer or two, or those of the last layers only. Of a
    small network that has a step of its own, a walk takes as large a share of the step as that of a large one.
    """
    if any(_is_few(part, ctx) for part in walk(node)) or "_parameters" in names_in(node):
        return True  # `module._parameters` holds those of the module itself, not of its layers
    walked = [
        part.func.value
        for part in walk(node)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _WALKS
    ]
    if not any(holds_few(ctx.kind(module), ctx) or holds_few_by_name(module, ctx) for module in walked):
        return False
    return not _are_stepped_alone(walked, ctx)


def _are_stepped_alone(modules: list[ast.expr], ctx: FileFacts) -> bool:
    """Whether the class or the function makes an optimizer for some of these modules alone:
    `Adam(self.critic.parameters())`.
    """
    around = ctx.tree.class_of(modules[0]) or ctx.tree.function_of(modules[0]) or ctx.tree.module
    texts = {ctx.text(module) for module in modules}
    stepped = (owners(call.args[0], ctx) for call in ctx.once(optimizers_in, around) if call.args)
    return any(found and found <= texts for found in stepped)


def _is_few(node: ast.AST, ctx: FileFacts) -> bool:
    """`model.classifier.parameters()`, `params[-2:]`, and names that were set to these."""
    if isinstance(node, ast.Call) and callee_name(node) in _WALKS and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        return isinstance(owner, ast.Attribute) and LAST_LAYERS.match(owner.attr) is not None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return isinstance(node.slice.lower, ast.UnaryOp) and node.slice.upper is None
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        made = ctx.inference.flow.definitions(node)
        value = made[0].value if len(made) == 1 and not made[0].path else None
        if isinstance(value, ast.Call) and callee_name(value) in _WRAPPERS and value.args:
            value = value.args[0]
        return isinstance(value, (ast.Call, ast.Subscript)) and _is_few(value, ctx)
    return False
