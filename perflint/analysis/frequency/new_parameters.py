"""Lists of new values for all parameters of a model, computed one after the other: `[p - rate * g for p, g in
zip(weights, gradients)]`, the step of a learner that keeps the graph.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.parameter_updates import only_combines
from perflint.analysis.gradients.parameter_walks import walks_parameters
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

_GATHERS = frozenset({"list", "tuple", "dict", "OrderedDict"})
_WRAPPERS = frozenset({"zip", "list", "tuple", "enumerate", "reversed"})
#: Operations for each parameter of which it is worth to have one for all.
_LEAST = 2


class NewValues(NamedTuple):
    """What the values are made of, one from each of `over`, and by how many operations."""

    over: ast.expr
    launches: int


def new_values_of_parameters(node: ast.AST, ctx: FileFacts) -> NewValues | None:
    """What computes a new value for each parameter of a model in the same way, None for anything else."""
    made = _each(node)
    if made is None:
        return None
    names, value, over = made
    launches = sum(isinstance(part, ast.BinOp) and _reads(part, names) for part in walk(value))
    if launches < _LEAST or not only_combines(value):
        return None
    for item in over:
        if holds_parameters(item, ctx):
            return NewValues(item, launches)
    return None


def _each(node: ast.AST) -> tuple[set[str], ast.expr, list[ast.expr]] | None:
    """The names of a turn, the value that it makes, and what the turns go over."""
    if isinstance(node, (ast.ListComp, ast.DictComp)):
        value, loops = node.value if isinstance(node, ast.DictComp) else node.elt, node.generators
    elif isinstance(node, ast.Call) and callee_name(node) in _GATHERS and len(node.args) == 1:
        first = node.args[0]
        if isinstance(first, ast.Call) and callee_name(first) == "map" and first.args:
            function = first.args[0]
            if not isinstance(function, ast.Lambda):
                return None
            return {item.arg for item in function.args.args}, function.body, first.args[1:]
        if not isinstance(first, ast.GeneratorExp):
            return None
        value, loops = first.elt, first.generators
    else:
        return None
    if len(loops) != 1:
        return None
    return {part.id for part in walk(loops[0].target) if isinstance(part, ast.Name)}, value, [loops[0].iter]


def _reads(part: ast.AST, names: set[str]) -> bool:
    return any(isinstance(item, ast.Name) and item.id in names for item in walk(part))


def holds_parameters(value: ast.expr, ctx: FileFacts, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a value has one tensor for each parameter of a model: the parameters, their gradients, or new values."""
    if id(value) in seen:
        return False
    seen |= {id(value)}
    if walks_parameters(value, ctx):
        return True
    made = _each(value)
    if made is not None:
        return any(holds_parameters(item, ctx, seen) for item in made[2])
    if isinstance(value, ast.Call):
        if ctx.is_call_of(value, "torch.autograd.grad"):
            return len(value.args) > 1 and holds_parameters(value.args[1], ctx, seen)
        if isinstance(value.func, ast.Name) and value.func.id in _WRAPPERS:
            return any(holds_parameters(item, ctx, seen) for item in value.args)
    bound = ctx.inference.flow.definitions(value) if isinstance(value, ast.Name) else ()
    return any(item.value is not None and not item.path and holds_parameters(item.value, ctx, seen) for item in bound)
