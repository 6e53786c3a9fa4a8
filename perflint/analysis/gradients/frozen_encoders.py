"""Forward passes of a frozen encoder, in evaluation mode, on what a loader gives: the same features in each epoch. Told
from the backward pass of a training step, through the trained model's `forward` where the encoder is a part of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.trip_count import turns_told
from perflint.analysis.gradients.encoder_modes import stays_frozen_inside, stays_frozen_outside
from perflint.analysis.gradients.forwards import FORWARD_METHODS
from perflint.analysis.gradients.model_calls import is_loss_function
from perflint.analysis.gradients.trained_after import computed_from
from perflint.analysis.loading.same_items import has_same_items
from perflint.analysis.names.refs import INSTANCE, Ref, Scope
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import arguments_of
from perflint.ir.notation import value_of
from perflint.syntax.bindings import Binding

#: Methods that hand on or rearrange what they are called on.
_SAME = frozenset(
    "to cuda cpu float half long int double bfloat16 bool type view reshape flatten squeeze unsqueeze permute "
    "transpose contiguous detach clone ne eq size".split()
)
_DEPTH = 6


class FrozenForward(NamedTuple):
    """A forward pass of a frozen encoder, the call of the loop that runs it, and where the encoder is frozen."""

    call: ast.Call
    there: FileFacts
    through: ast.Call
    frozen: ast.AST
    frozen_in: FileFacts
    is_large: bool


def frozen_forwards(backward: ast.Call, ctx: FileFacts) -> list[FrozenForward]:
    """The forward passes behind a loss of frozen encoders whose inputs come again in each epoch."""
    loop = next(iter(ctx.loops(backward)), None)
    if not isinstance(loop, ast.For) or not _comes_again(ctx.scope(loop), ctx.context(loop), ctx, 2):
        return []
    found = list(_candidates(backward, loop, ctx))
    return found if found and has_same_items(loop, ctx) else []


def _comes_again(scope: Scope, context: int, ctx: FileFacts, depth: int) -> bool:
    """Whether a loop around a place, in its function or around the calls of that, is not known to make one turn."""
    facts = ctx.program.function(scope)
    if any(turns_told(facts.loops[index], scope.path, ctx) != 1 for index in facts.loops_around(context)):
        return True
    edges = ctx.program.callers(scope) if depth else ()
    return any(_comes_again(edge.caller, edge.context, ctx, depth - 1) for edge in edges)


def _candidates(backward: ast.Call, loop: ast.For, ctx: FileFacts) -> Iterator[FrozenForward]:
    def is_item(node: ast.AST) -> bool:
        return node is loop

    calls = [part for part in computed_from(backward, ctx) if isinstance(part, ast.Call)]
    seen: set[str] = set()
    for call in calls:
        if ctx.loops(call)[:1] != [loop] or ctx.text(call.func) in seen:
            continue
        if not _runs_module(call, ctx) or not _is_given(call, is_item, ctx):
            continue
        seen.add(ctx.text(call.func))
        told = stays_frozen_outside(call, ctx) if _feeds_another(call, calls, ctx) else None
        if told is not None:
            yield FrozenForward(call, ctx, call, told.node, told.ctx, told.is_large)
            continue
        for inner, there, owner in _in_forward(call, ctx):
            told = stays_frozen_inside(inner, there, owner, call, ctx)
            if told is not None:
                yield FrozenForward(inner, there, call, told.node, told.ctx, told.is_large)
                break


def _runs_module(call: ast.Call, ctx: FileFacts) -> bool:
    """`net(x)`, or a method of it that runs it: `vae.encode(x)`."""
    if ctx.kind(call.func).tag is Tag.MODULE:
        return True
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr in FORWARD_METHODS and ctx.kind(func.value).tag is Tag.MODULE


def _feeds_another(call: ast.Call, calls: list[ast.Call], ctx: FileFacts) -> bool:
    """Whether another module of the step works on what a call gives, with gradients: not a target of the loss alone."""
    return any(
        other is not call
        and ctx.kind(other.func).tag is Tag.MODULE
        and not ctx.grad_off(other)
        and not is_loss_function(other, ctx)
        and any(part is call for part in computed_from(other, ctx))
        for other in calls
    )


def _in_forward(call: ast.Call, ctx: FileFacts) -> Iterator[tuple[ast.Call, FileFacts, Ref]]:
    """The calls of parts in a module's `forward` that are given nothing but the forward's own arguments."""
    kind = ctx.kind(call.func)
    owner = Ref(INSTANCE, kind.path, kind.qualified)
    method = ctx.program.resolver.method(owner, "forward") if kind.path else None
    if method is not None and method.path:
        yield from _in_method(Scope(method.path, method.name), None, owner, ctx, 2)


def _in_method(
    scope: Scope, given: frozenset[str] | None, owner: Ref, ctx: FileFacts, depth: int
) -> Iterator[tuple[ast.Call, FileFacts, Ref]]:
    """`given`: the parameters that come from the items, all for None."""
    found = definition_of(scope, ctx)
    if found is None:
        return
    function, there = found
    own = {item.arg: item for item in (*function.args.args, *function.args.kwonlyargs) if item.arg != "self"}
    roots = {id(item) for name, item in own.items() if given is None or name in given}

    def is_root(node: ast.AST) -> bool:
        return id(node) in roots

    for part in there.body(function):
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
            continue
        if not there.text(part.func).startswith("self.") or not _is_given(part, is_root, there):
            continue
        if _is_off(part, there):
            continue
        method = there.project_target(part.func)
        if depth and there.text(part.func) == f"self.{part.func.attr}" and _is_method(part.func.attr, owner, ctx):
            inner = ctx.program.resolver.method(owner, part.func.attr)
            assert inner is not None
            yield from _in_method(Scope(inner.path, inner.name), None, owner, ctx, depth - 1)
        elif method is None or method.kind != "function":
            yield part, there, owner


def _is_off(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a call is made only if a user asks for it."""
    return any(
        holds and ctx.program.is_off_by_default(value_of(test), ctx.scope(node)) for test, holds in ctx.conditions(node)
    )


def _is_method(name: str, owner: Ref, ctx: FileFacts) -> bool:
    method = ctx.program.resolver.method(owner, name)
    return method is not None and method.path in ctx.program.summaries


def _is_given(call: ast.Call, is_root: Callable[[ast.AST], bool], ctx: FileFacts) -> bool:
    """Whether all that a call is given is a part of what the roots bind, or a constant, and something is a part."""
    given = arguments_of(call)
    told = [_comes_from(item, is_root, ctx, _DEPTH) for item in given]
    return None not in told and True in told


def _comes_from(value: ast.expr, is_root: Callable[[ast.AST], bool], ctx: FileFacts, depth: int) -> bool | None:
    """True for what is made of the roots alone, False for a constant, None for anything else."""
    if not depth:
        return None
    if isinstance(value, ast.Constant):
        return False
    if isinstance(value, ast.Name):
        return _name_comes_from(value, is_root, ctx, depth)
    if isinstance(value, (ast.Attribute, ast.Starred)):
        return _comes_from(value.value, is_root, ctx, depth) or None
    if isinstance(value, ast.Subscript):
        constant = all(isinstance(part, _OF_SLICES) for part in ast.walk(value.slice))
        return (_comes_from(value.value, is_root, ctx, depth) or None) if constant else None
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr in _SAME:
            return _comes_from(value.func.value, is_root, ctx, depth) or None
        return None
    if isinstance(value, (ast.Compare, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List)):
        parts = [item for item in ast.iter_child_nodes(value) if isinstance(item, ast.expr)]
        told = [_comes_from(item, is_root, ctx, depth - 1) for item in parts]
        return None if None in told else True in told
    return None


_OF_SLICES = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)


def _name_comes_from(name: ast.Name, is_root: Callable[[ast.AST], bool], ctx: FileFacts, depth: int) -> bool | None:
    told: list[bool | None] = []
    for item in ctx.inference.flow.definitions(name):
        if is_root(item.node):
            told.append(True)
        elif item.binding is Binding.ASSIGN and item.value is not None:
            told.append(_comes_from(item.value, is_root, ctx, depth - 1))
        else:
            told.append(None)
    return None if not told or None in told else all(told)
