"""Which values carry the graph of a forward."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_loss_function, is_loss_name, is_model_call, makes_instance
from perflint.ir.calls import arguments_of, callee_name

#: Calls that give a tensor with the graph of what they are given.
GRAPH_CARRIERS = frozenset(
    "mean sum stack cat view reshape squeeze unsqueeze to cuda cpu div mul add clone max min".split()
)


#: Attributes of what a model gives, through which a graph is kept.
_GRAPH_ATTRIBUTES = frozenset({"loss", "logits"})


#: Libraries whose functions give no loss, but those that are called one.
_LIBRARIES = frozenset("torch numpy math os time random".split())


def may_carry_graph(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether its form leaves it open that a value has a graph: most of what is kept is a layer, an item, a number."""
    if isinstance(value, ast.Attribute):
        return value.attr in _GRAPH_ATTRIBUTES
    if not isinstance(value, ast.Call):
        return isinstance(value, (ast.BinOp, ast.Name))
    root: ast.expr = value.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or callee_name(value) in GRAPH_CARRIERS:
        return True
    public = root.id if root.id in ctx.summary.classes else ctx.summary.imports.get(root.id)
    if public is None or "loss" in public.lower() or is_loss_name(value.func):
        return True
    # `Block(...)` and `nn.Linear(...)` make a layer; `crit`, of another file, may be a loss that was made there.
    return public.partition(".")[0] not in _LIBRARIES and not makes_instance(value.func)


def carries_graph(value: ast.expr, loop: ast.stmt, ctx: FileFacts, depth: int = 0) -> bool:
    """Whether a value comes from a forward of a model in the same loop, through what keeps the graph."""
    if depth > 6:
        return False
    if isinstance(value, ast.BinOp):
        return any(carries_graph(part, loop, ctx, depth + 1) for part in (value.left, value.right))
    if isinstance(value, ast.Call):
        given = arguments_of(value)
        if is_model_call(value, ctx):
            return depth > 0  # outputs may be meant to be kept; losses are for their numbers
        if isinstance(value.func, ast.Attribute) and callee_name(value) in GRAPH_CARRIERS:
            given.append(value.func.value)
        elif not is_loss_function(value.func, ctx):
            return False
        return any(carries_graph(part, loop, ctx, depth + 1) for part in given)
    if isinstance(value, ast.Attribute):
        return value.attr in _GRAPH_ATTRIBUTES and carries_graph(value.value, loop, ctx, depth + 1)
    if isinstance(value, ast.Subscript):
        return carries_graph(value.value, loop, ctx, depth + 1)  # `loss, scores = model(x, y)[:2]`
    if isinstance(value, ast.Name):
        inside = set(map(id, ctx.tree.walk(loop)))
        definitions = ctx.inference.flow.definitions(value)
        return bool(definitions) and all(
            definition.value is not None
            and id(definition.node) in inside
            and carries_graph(definition.value, loop, ctx, depth + 1)
            for definition in definitions
        )
    return False
