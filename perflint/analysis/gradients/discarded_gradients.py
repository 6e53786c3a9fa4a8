"""Weight gradients that a backward pass computes for a module that it does not train, and that are zeroed unread: of a
discriminator in the generator's step, of a critic in the actor's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.evidence import BACKWARD_CALLS
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.frozen import is_switched
from perflint.analysis.gradients.graph_of_loss import goes_through
from perflint.analysis.gradients.method_forwards import network_of, runs_one_of
from perflint.analysis.gradients.trained_after import (
    calls_in_order,
    computed_from,
    is_walked_again,
    parameters_of,
)
from perflint.analysis.names.refs import Scope
from perflint.ir.calls import arguments_of, callee_name, keyword
from perflint.syntax.tree import FUNCTIONS
from perflint.syntax.walk import walk
from perflint.torch_model.modules import PARAMETER_ITERATORS

#: What a function names that uses gradients.
_GRADIENTS = frozenset({"grad", "backward", "step", "param_groups"})


class Discarded(NamedTuple):
    """The forwards of modules whose weight gradients one backward pass computes, and the calls that zero them."""

    forwards: tuple[ast.Call, ...]
    zeroed: tuple[ast.Call, ...]


def discarded_gradients(backward: ast.Call, trained: set[str], ctx: FileFacts) -> Discarded:
    """What is computed for nothing in a backward pass after which the modules `trained` are stepped.

    A module counts that another optimizer of the same function steps, that is given what a trained one computed, and
    whose gradients are zeroed in every case before they are next used.
    """
    zeroed = {} if keyword(backward, "inputs") is not None else dict(_zeroed_next(backward, trained, ctx))
    forwards = {
        id(part): part
        for part in computed_from(backward, ctx)
        if isinstance(part, ast.Call)
        and runs_one_of(part, zeroed, ctx)
        and not ctx.grad_off(part)
        and not is_switched(part, ctx)
        and not is_walked_again(part, backward, ctx)
        and any(goes_through(item, trained, ctx) for item in arguments_of(part))
    }
    found = sorted(forwards.values(), key=lambda part: (part.lineno, part.col_offset))
    texts = dict.fromkeys(network_of(part, ctx) for part in found)
    return Discarded(tuple(found), tuple(dict.fromkeys(zeroed[text] for text in texts)))


def _zeroed_next(backward: ast.Call, trained: set[str], ctx: FileFacts) -> Iterator[tuple[str, ast.Call]]:
    """The modules whose gradients are zeroed after a backward pass before anything may read them, by their texts: in
    its function, or where that leaves them alone in the methods beside it.
    """
    function = ctx.tree.function_of(backward) or ctx.tree.module
    calls, places = ctx.once(calls_in_order, function)
    at = places.get(id(backward))
    if at is None:
        return
    loops = ctx.loops(backward)
    inside = {id(part) for part in ctx.walk(loops[0])} if loops else set(places)
    round_ = [call for call in (*calls[at + 1 :], *calls[:at]) if id(call) in inside]
    beside = [ctx.once(calls_in_order, method)[0] for method in _methods_beside(function, ctx)]
    held = _held([calls, *beside], ctx)
    for module in set[str]().union(*held.values()) - trained:
        optimizers = {text for text, modules in held.items() if module in modules}
        use = _first_use(round_, module, optimizers, ctx)
        uses = (
            [(use, calls)]
            if use is not None
            else [(_first_use(part, module, optimizers, ctx), part) for part in beside]
        )
        zeroing = [
            call for call, part in uses if call is not None and _zeroes_before_steps(call, part, optimizers, ctx)
        ]
        if zeroing and len(zeroing) == sum(call is not None for call, _ in uses):
            yield module, zeroing[0]


def _methods_beside(function: ast.AST, ctx: FileFacts) -> list[ast.stmt]:
    """The other methods of the class that a method is defined in, without the constructor."""
    around = ctx.tree.parent(function)
    methods = around.body if isinstance(around, ast.ClassDef) else []
    return [
        item for item in methods if isinstance(item, FUNCTIONS) and item is not function and item.name != "__init__"
    ]


def _held(regions: Sequence[Sequence[ast.Call]], ctx: FileFacts) -> dict[str, set[str]]:
    """What the optimizers hold that are stepped, by their texts."""
    optimizers = (item for calls in regions for call in calls if (item := _optimizer(call)) is not None)
    return {ctx.text(item): parameters_of(item, ctx) for item in optimizers}


def _zeroes_before_steps(call: ast.Call, calls: Sequence[ast.Call], optimizers: set[str], ctx: FileFacts) -> bool:
    """Whether a call zeroes gradients whenever an optimizer is stepped in its function."""
    steps = [part for part in calls if (item := _optimizer(part)) is not None and ctx.text(item) in optimizers]
    flow = ctx.control_flow(call)
    return callee_name(call) == "zero_grad" and all(flow.dominates(call, step) for step in steps)


def _optimizer(step: ast.Call) -> ast.expr | None:
    """The optimizer of `optimizer.step()` and of `scaler.step(optimizer)`, None for another call."""
    if callee_name(step) != "step":
        return None
    return step.args[0] if step.args else step.func.value if isinstance(step.func, ast.Attribute) else None


def _first_use(calls: Sequence[ast.Call], module: str, optimizers: set[str], ctx: FileFacts) -> ast.Call | None:
    """The first call that zeroes the gradients of a module or may read them."""
    for call in calls:
        name, of = callee_name(call), ctx.text(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        given = [ctx.text(item) for item in call.args]
        if name == "zero_grad" and of in {module, *optimizers}:
            return call
        if (name in PARAMETER_ITERATORS and of == module) or (
            name == "step" and not optimizers.isdisjoint((of, *given))
        ):
            return call
        handed = name not in BACKWARD_CALLS and (module in given or not optimizers.isdisjoint(given))
        if handed and _may_read_gradients(call, ctx):
            return call
    return None


def _may_read_gradients(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a function that is given a module or an optimizer may use gradients; one in sight tells."""
    target = ctx.project_target(call.func)
    found = definition_of(Scope(target.path, target.name), ctx) if target is not None and target.path else None
    return found is None or any(
        (isinstance(part, ast.Attribute) and part.attr in _GRADIENTS)
        or (isinstance(part, ast.Call) and callee_name(part).startswith(("clip_grad", "getattr")))
        for part in walk(found[0])
    )


def runs_between(first: ast.stmt, last: ast.stmt, own: Sequence[ast.Call], ctx: FileFacts) -> bool:
    """Whether a module of `own` is used by another call from one statement of a block to another."""
    texts, ours = {network_of(call, ctx) for call in own}, {id(call) for call in own}
    function = ctx.tree.function_of(first) or ctx.tree.module
    return any(
        first.lineno <= part.lineno <= (last.end_lineno or last.lineno)
        and id(part) not in ours
        and any(ctx.text(item) in texts for item in walk(part) if isinstance(item, (ast.Name, ast.Attribute)))
        and not any(id(item) in ours for item in walk(part))
        for part in ctx.walk(function)
        if isinstance(part, ast.Call)
    )
