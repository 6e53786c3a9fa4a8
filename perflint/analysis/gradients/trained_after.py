"""The modules that are stepped after a backward pass, and the forwards that its loss is computed from."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from perflint.analysis.evidence import BACKWARD_CALLS
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.given_optimizers import held_by_given
from perflint.analysis.gradients.method_forwards import runs_one_of
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name, is_constant
from perflint.syntax.bindings import Binding
from perflint.syntax.walk import walk

#: Values that are followed from a loss back to the forwards that it is computed from.
_MOST_VALUES = 64


def trained_after(node: ast.Call, ctx: FileFacts) -> set[str]:
    """The modules whose parameters are stepped after a backward pass and before the next one, by their texts; empty
    where an optimizer's parameters are not plain to see.
    """
    function = ctx.tree.function_of(node) or ctx.tree.module
    calls, places = ctx.once(calls_in_order, function)
    trained: set[str] = set()
    # In a lambda or a default nobody knows when it runs.
    for call in itertools.islice(calls, places.get(id(node), len(calls)) + 1, None):
        name = callee_name(call)
        if name in BACKWARD_CALLS:
            break
        if name == "step" and isinstance(call.func, ast.Attribute):
            optimizer = call.args[0] if call.args else call.func.value  # `scaler.step(optimizer)`
            if ctx.kind(optimizer).tag is Tag.SCHEDULER:
                continue
            held = parameters_of(optimizer, ctx)
            if not held:
                return set()
            trained |= held
    return trained


def calls_in_order(function: ast.AST, ctx: FileFacts) -> tuple[list[ast.Call], dict[int, int]]:
    """The calls of a function in the order of the source, and the place of each among them by its id."""
    calls = [part for part in ctx.walk(function) if isinstance(part, ast.Call)]
    calls.sort(key=lambda part: (part.lineno, part.col_offset))
    return calls, {id(call): place for place, call in enumerate(calls)}


def parameters_of(optimizer: ast.expr, ctx: FileFacts) -> set[str]:
    """`self.critic` of what `Adam(self.critic.parameters())` gives, made here or by the callers."""
    return _of_made(optimizer, ctx) or held_by_given(optimizer, ctx, _of_made)


def _of_made(optimizer: ast.expr, ctx: FileFacts) -> set[str]:
    found: set[str] = set()
    for origin in ctx.inference.origins(optimizer):
        if not isinstance(origin, ast.Call) or not origin.args:
            return set()
        stepped = owners(origin.args[0], ctx)
        if not stepped:
            return set()
        found |= stepped
    return found


def owners(value: ast.expr, ctx: FileFacts) -> set[str]:
    """The modules whose parameters these are: of one, of a chain, a sum or a list of several, of groups with options.
    Empty where one of the parts is not plain to see.
    """
    if isinstance(value, ast.Call):
        if callee_name(value) == "parameters" and isinstance(value.func, ast.Attribute):
            return {ctx.text(value.func.value).removesuffix(".module")}
        return _all_owners(value.args[-1:] if callee_name(value) == "filter" else value.args, ctx)
    if isinstance(value, ast.BinOp):
        return _all_owners([value.left, value.right], ctx)
    if isinstance(value, (ast.List, ast.Tuple)):
        return _all_owners(value.elts, ctx)
    if isinstance(value, ast.Dict):
        return _all_owners([item for key, item in zip(value.keys, value.values) if is_constant(key, "params")], ctx)
    return owners(value.value, ctx) if isinstance(value, ast.Starred) else set()


def _all_owners(parts: Sequence[ast.expr], ctx: FileFacts) -> set[str]:
    found = [owners(part, ctx) for part in parts]
    return set[str]().union(*found) if all(found) else set()


def forwards_of_loss(node: ast.Call, trained: set[str], ctx: FileFacts) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The forwards of trained modules that a loss is computed from, each with a plain argument that it is given."""
    for part in computed_from(node, ctx):
        if isinstance(part, ast.Call) and runs_one_of(part, trained, ctx):
            yield from ((part, item) for item in part.args if isinstance(item, (ast.Name, ast.Call)))


def computed_from(node: ast.Call, ctx: FileFacts) -> Iterator[ast.AST]:
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
        callees = {id(part.func) for part in walk(value) if isinstance(part, ast.Call)}
        for part in walk(value):
            yield part
            if isinstance(part, (ast.Name, ast.Attribute)) and id(part) not in callees:
                waiting += values_of(part, ctx)


def values_of(use: ast.Name | ast.Attribute, ctx: FileFacts) -> Iterator[ast.expr]:
    """What a name or an attribute may hold: what is bound to it, and before that where something is added to it."""
    flow = ctx.inference.flow
    if isinstance(use, ast.Attribute):
        made = flow.definitions_of(use)[0] if isinstance(use.ctx, ast.Load) else ()
    elif isinstance(use.ctx, ast.Load):
        made = flow.definitions(use)
    else:
        made = flow.definitions_before(use.id, ctx.tree.statement_of(use))[0]
    for item in made:
        if item.value is not None:
            yield item.value
        if item.binding is Binding.AUGMENTED and isinstance(item.target, ast.Name):
            yield item.target


def is_walked_again(forward: ast.Call, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether another backward pass of the function goes through the same forward."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    others = (part for part in ctx.walk(function) if isinstance(part, ast.Call) and callee_name(part) in BACKWARD_CALLS)
    return any(part is forward for other in others if other is not node for part in computed_from(other, ctx))


def is_differentiated(given: ast.expr, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether `torch.autograd.grad` takes gradients by what is given, so that it has to keep its graph."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    calls = (part for part in ctx.walk(function) if ctx.is_call_of(part, "torch.autograd.grad"))
    wanted = ctx.text(given)
    return any(wanted == ctx.text(item) for call in calls for item in walk(call) if isinstance(item, ast.expr))
