"""What stays as it is in a loop, and what may be changed there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import CHANGES, is_forward, is_pure
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import arguments_of, callee_name
from perflint.syntax.walk import walk

_DEEP = 4


def is_fixed(node: ast.expr, loop: ast.stmt, ctx: FileFacts, depth: int = _DEEP) -> bool:
    """Whether an expression has the same value on every turn, seen through names that the loop sets to the same."""
    flow = ctx.inference.flow
    if flow.is_invariant(node, loop, lambda call: is_pure(call, ctx)):
        return True
    if not isinstance(node, ast.Name) or depth == 0 or flow.is_mutated(node.id, loop):
        return False  # also a dict that each turn makes empty and fills
    made = flow.definitions(node)
    if len(made) != 1 or made[0].path or made[0].value is None or not isinstance(made[0].node, ast.Assign):
        return False
    return is_fixed(made[0].value, loop, ctx, depth - 1)


def objects_in(node: ast.expr) -> Iterator[str]:
    """Names in an argument that stand for objects others may change."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


def is_touched(names: set[str], call: ast.Call, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether another call in the loop may change one of the objects: it is its receiver, or is given it."""
    parts = (part for statement in ctx.tree.naming(names, loop) for part in ctx.tree.own(statement))
    for other in parts:
        if not isinstance(other, ast.Call) or other is call:
            continue
        given = [item for item in arguments_of(other) if not names.isdisjoint(objects_in(item))]
        changed = _changes_receiver(other, names)
        if not (given or changed) or ctx.text(other.func) == ctx.text(call.func):
            continue
        if changed:
            return True
        if not is_forward(other, ctx) and not is_pure(other, ctx) and any(_may_change(item, ctx) for item in given):
            return True
    return False


def _changes_receiver(call: ast.Call, names: set[str]) -> bool:
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr in CHANGES and not names.isdisjoint(names_in(func.value))


def _may_change(item: ast.expr, ctx: FileFacts) -> bool:
    """Whether handing it on may change it: numbers, strings and devices cannot."""
    return ctx.kind(item).tag not in (Tag.NUMBER, Tag.STRING, Tag.DEVICE, Tag.DTYPE, Tag.NONE, Tag.TOKENIZER)


def writes_data(part: ast.AST) -> bool:
    """`mask.data = other`, `mask.data.fill_(0)`: so whoever holds the tensor has it changed, a model too."""
    if isinstance(part, ast.Attribute):
        return part.attr == "data" and isinstance(part.ctx, ast.Store)
    if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_")):
        return False
    return isinstance(part.func.value, ast.Attribute) and part.func.value.attr == "data"


def is_unchanging(call: ast.Call, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether nothing the call depends on is set, changed or handed to others in the loop."""
    given = arguments_of(call)
    if not all(is_fixed(item, loop, ctx) for item in given):
        return False
    if is_forward(call, ctx):
        given = [*given, call.func]
        if not is_fixed(call.func, loop, ctx):
            return False
    if any(writes_data(part) for part in walk(loop)):
        return False
    return not is_touched({name for item in given for name in objects_in(item)}, call, loop, ctx)


def is_thrown_away(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether nobody uses the result: a warm-up."""
    parent = ctx.tree.parent(call)
    if isinstance(parent, ast.Assign):
        return all(isinstance(target, ast.Name) and target.id == "_" for target in parent.targets)
    return isinstance(parent, ast.Expr)


def has_same_inputs(node: ast.Call, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether callee and arguments stay the same on every turn, seen through names the loop itself sets."""
    given = arguments_of(node)
    if isinstance(loop, (ast.For, ast.AsyncFor)) and set(names_in(loop.target)) & set(names_in(node.func)):
        return False  # `for part in parts: part.from_pretrained(folder)`
    # A library's class is the same on each turn, even where the loop itself imports it.
    if ctx.target(node.func) is None:
        given.append(node.func)
    return all(_is_invariant(item, loop, ctx) for item in given)


def _is_invariant(node: ast.expr, loop: ast.stmt, ctx: FileFacts) -> bool:
    return ctx.inference.flow.is_invariant(
        node, loop, lambda call: callee_name(call) in ("str", "int", "getattr", "len")
    )


def is_of_new_object(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether what the call is given belongs to an object that is made on the way, anew on each turn."""
    if not any(name == "self" for item in arguments_of(node) for name in names_in(item)):
        return False
    _, route, _ = ctx.heat_and_route(node)
    return any(hop.text.endswith("__init__") for hop in route[1:])


def has_constant_inputs(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether nothing the call is given comes from the caller or the batch."""
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    bound = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs)}
    bound |= set(ctx.inference.flow.names_written(function))
    given = arguments_of(node)
    return not any(name in bound - {"self"} for item in given for name in names_in(item))
