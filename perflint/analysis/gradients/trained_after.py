"""The modules that are stepped after a backward pass, and the forwards that its loss is computed from."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: Values that are followed from a loss back to the forwards that it is computed from.
_MOST_VALUES = 64
_BACKWARD = frozenset({"backward", "manual_backward"})


def trained_after(node: ast.Call, ctx: FileFacts) -> set[str]:
    """The modules whose parameters are stepped after a backward pass and before the next one, by their texts; empty
    where an optimizer's parameters are not plain to see.
    """
    function = ctx.tree.function_of(node) or ctx.tree.module
    calls, places = ctx.once(_calls_in_order, function)
    trained: set[str] = set()
    # In a lambda or a default nobody knows when it runs.
    for call in itertools.islice(calls, places.get(id(node), len(calls)) + 1, None):
        name = callee_name(call)
        if name in _BACKWARD:
            break
        if name == "step" and isinstance(call.func, ast.Attribute):
            optimizer = call.args[0] if call.args else call.func.value  # `scaler.step(optimizer)`
            held = _parameters_of(optimizer, ctx)
            if not held:
                return set()
            trained |= held
    return trained


def _calls_in_order(function: ast.AST, ctx: FileFacts) -> tuple[list[ast.Call], dict[int, int]]:
    """The calls of a function in the order of the source, and the place of each among them by its id."""
    calls = [part for part in ctx.walk(function) if isinstance(part, ast.Call)]
    calls.sort(key=lambda part: (part.lineno, part.col_offset))
    return calls, {id(call): place for place, call in enumerate(calls)}


def _parameters_of(optimizer: ast.expr, ctx: FileFacts) -> set[str]:
    """`self.critic` of what `Adam(self.critic.parameters())` gives."""
    found: set[str] = set()
    for origin in ctx.inference.origins(optimizer):
        if not isinstance(origin, ast.Call) or not origin.args:
            return set()
        owners = _owners(origin.args[0], ctx)
        if not owners:
            return set()
        found |= owners
    return found


def _owners(value: ast.expr, ctx: FileFacts) -> set[str]:
    if isinstance(value, ast.Call) and callee_name(value) == "parameters" and isinstance(value.func, ast.Attribute):
        return {ctx.text(value.func.value)}
    return set()


def forwards_of_loss(node: ast.Call, trained: set[str], ctx: FileFacts) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The forwards of trained modules that a loss is computed from, each with a plain argument that it is given."""
    for part in _computed_from(node, ctx):
        if isinstance(part, ast.Call) and ctx.text(part.func) in trained:
            yield from ((part, item) for item in part.args if isinstance(item, (ast.Name, ast.Call)))


def _computed_from(node: ast.Call, ctx: FileFacts) -> Iterator[ast.AST]:
    """All expressions that the loss of a backward pass is computed from in its function."""
    waiting: list[ast.expr] = [*node.args]
    if isinstance(node.func, ast.Attribute):
        waiting.append(node.func.value)
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_VALUES:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        for part in walk(value):
            yield part
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                made = ctx.inference.flow.definitions(part)
                waiting += [item.value for item in made if item.value is not None]


def is_walked_again(forward: ast.Call, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether another backward pass of the function goes through the same forward."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    others = (part for part in ctx.walk(function) if isinstance(part, ast.Call) and callee_name(part) in _BACKWARD)
    return any(part is forward for other in others if other is not node for part in _computed_from(other, ctx))


def is_differentiated(given: ast.expr, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether `torch.autograd.grad` takes gradients by what is given, so that it has to keep its graph."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    calls = (part for part in ctx.walk(function) if ctx.is_call_of(part, "torch.autograd.grad"))
    wanted = ctx.text(given)
    return any(wanted == ctx.text(item) for call in calls for item in walk(call) if isinstance(item, ast.expr))
