"""Outputs of a vocabulary for positions that are dropped: `logits[:, -1]` of a linear layer that ran on all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import INSTANCE, Ref, Scope
from perflint.analysis.own_attributes import stores_of
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.finding import Hop
from perflint.ir.calls import argument, callee_name, is_constant
from perflint.syntax.walk import walk
from perflint.torch_model import tensors
from perflint.torch_model.names import canonical

#: Methods that leave all positions where they are.
_IN_PLACE = tensors.CAST_METHODS | frozenset("contiguous to cpu cuda clone detach".split())
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")
_SIZES = frozenset("shape size dtype device".split())
#: Outputs of a layer from which each position counts.
_WIDE = 8_000
_DEEPEST = 6


class SlicedHead(NamedTuple):
    """A linear layer as it is called, that place, and the call of a model that leads to it, None where it is here."""

    layer: str
    place: Hop
    through: ast.Call | None


class _Head(NamedTuple):
    call: ast.Call
    there: FileFacts
    through: ast.Call | None


def sliced_head(node: ast.Subscript, ctx: FileFacts) -> SlicedHead | None:
    """The layer over a vocabulary whose outputs a subscript takes some positions of, where nothing wants the others."""
    parts = _positions(node)
    if not parts or not isinstance(node.ctx, ast.Load) or not _is_all_that_is_used(node, ctx):
        return None
    head = _head(node.value, ctx, _DEEPEST)
    if head is None or not head.call.args or not _is_over_vocabulary(head):
        return None
    if not (len(parts) > 2 or _is_flattened(node, ctx) or _has_positions(head.call.args[0], head.there)):
        return None
    if head.through is not None and not _is_given_all(head.through, ctx):
        return None
    text = head.there.text(head.call.func)
    return SlicedHead(text, head.there.hop(head.call, f"`{text}` runs on all positions"), head.through)


def _positions(node: ast.Subscript) -> list[ast.expr]:
    """The parts of `[:, -1]`, `[:, -1, :]` and `[:, start:]`; nothing of an index that takes all but an end."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    if not 2 <= len(parts) <= 3 or not all(_is_whole(part) for part in (parts[0], *parts[2:])):
        return []
    taken = parts[1]
    if isinstance(taken, (ast.List, ast.Tuple)) and len(taken.elts) == 1:
        taken = taken.elts[0]
    if isinstance(taken, ast.Slice):
        bounds = [bound for bound in (taken.lower, taken.upper) if bound is not None]
        is_last = taken.upper is None and taken.lower is not None and _is_last(taken.lower)
        return parts if is_last or (bounds and all(_is_computed(bound) for bound in bounds)) else []
    return parts if _is_last(taken) else []


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None


def _is_last(part: ast.expr) -> bool:
    return isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) and is_constant(part.operand, 1)


def _is_computed(bound: ast.expr) -> bool:
    """Whether a bound is a number with a name, and not `-1`, `n - 1`, a shift of all by a few."""
    return not any(isinstance(part, ast.Constant) for part in walk(bound))


def _is_all_that_is_used(node: ast.Subscript, ctx: FileFacts) -> bool:
    """Whether every use of what is sliced takes positions of it, or asks for its size."""
    if not isinstance(node.value, ast.Name):
        return isinstance(node.value, ast.Call)
    flow = ctx.inference.flow
    made = flow.definitions(node.value)
    return len(made) == 1 and all(_takes_positions(use, ctx) for use in flow.uses_of(made[0]))


def _takes_positions(use: ast.Name, ctx: FileFacts) -> bool:
    parent = ctx.tree.parent(use)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _SIZES
    return isinstance(parent, ast.Subscript) and parent.value is use and bool(_positions(parent))


# The layer.


def _head(value: ast.expr, ctx: FileFacts, deep: int, through: ast.Call | None = None) -> _Head | None:
    """The linear layer whose product a value is, position by position."""
    if deep == 0:
        return None
    if isinstance(value, ast.Name):
        made = ctx.inference.flow.definitions(value)
        if len(made) != 1 or made[0].value is None:
            return None
        if made[0].path:
            return _of_result(made[0].value, made[0].path, ctx, deep - 1, through)
        return _head(made[0].value, ctx, deep - 1, through)
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return _of_result(value.value, (value.slice.value,), ctx, deep - 1, through)
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute) and value.func.attr in _IN_PLACE:
        return _head(value.func.value, ctx, deep - 1, through)
    if canonical(ctx.kind(value.func).qualified) == "torch.nn.Linear":
        return _Head(value, ctx, through)
    return _of_result(value, (), ctx, deep - 1, through)


def _of_result(
    value: ast.expr, path: tuple[object, ...], ctx: FileFacts, deep: int, through: ast.Call | None
) -> _Head | None:
    """The layer behind what a module of the project returns, or one part of it, on every way."""
    kind = ctx.kind(value.func) if isinstance(value, ast.Call) else None
    if kind is None or kind.tag is not Tag.MODULE or not kind.path or len(path) > 1:
        return None
    method = ctx.program.resolver.method(Ref(INSTANCE, kind.path, kind.qualified), "forward")
    defined = definition_of(Scope(method.path, method.name), ctx) if method is not None and method.path else None
    if defined is None:
        return None
    node, there = defined
    assert isinstance(value, ast.Call)
    parts = _returned(node, path, there)
    found = [_head(part, there, deep, through or value) if part is not None else None for part in parts]
    first = found[0] if found else None
    return first if all(one is not None and first is not None and one.call is first.call for one in found) else None


def _returned(
    node: ast.FunctionDef | ast.AsyncFunctionDef, path: tuple[object, ...], there: FileFacts
) -> Iterator[ast.expr | None]:
    """What a function returns on each way, or one part of that; None where it has no such part."""
    for value in there.inference.classes.results(node)[0]:
        index = path[0] if path else None
        if isinstance(value, ast.Tuple):
            yield value.elts[index] if isinstance(index, int) and index < len(value.elts) else None
        else:
            yield None if path else value


def _is_over_vocabulary(head: _Head) -> bool:
    """Whether a layer has thousands of outputs, or as many as the function that makes it gives an embedding of rows."""
    made = [(item, there) for item, there in stores_of(head.call.func, head.there) if isinstance(item.value, ast.Call)]
    for item, there in made:
        width = argument(item.value, 1, "out_features")  # type: ignore[arg-type]
        function = there.tree.function_of(item.node)
        if width is None or function is None:
            return False
        if isinstance(width, ast.Constant):
            if not isinstance(width.value, int) or width.value < _WIDE:
                return False
        elif not any(_is_embedding_of(part, width, there) for part in there.walk(function)):
            return False
    return bool(made)


def _is_embedding_of(part: ast.AST, rows: ast.expr, there: FileFacts) -> bool:
    if not isinstance(part, ast.Call) or callee_name(part) != "Embedding":
        return False
    given = argument(part, 0, "num_embeddings")
    return given is not None and ast.dump(given) == ast.dump(rows) and there.is_call_of(part, "torch.nn.Embedding")


# The positions.


def _is_flattened(node: ast.Subscript, ctx: FileFacts) -> bool:
    """`x[:, start:].contiguous().view(-1, width)`: the last dimension stays."""
    outer = ctx.tree.parent(node)
    while isinstance(outer, ast.Attribute):
        call = ctx.tree.parent(outer)
        if not isinstance(call, ast.Call):
            return False
        if outer.attr in ("view", "reshape"):
            return len(call.args) == 2 and _is_last(call.args[0])
        outer = ctx.tree.parent(call)
    return False


def _has_positions(given: ast.expr, ctx: FileFacts) -> bool:
    """Whether a layer is given three dimensions: what a transposition of the second and third gives."""
    if (ctx.kind(given).rank or 0) > 2:
        return True
    made = ctx.inference.flow.definitions(given) if isinstance(given, ast.Name) else ()
    value = made[0].value if len(made) == 1 and not made[0].path else given
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    return value.func.attr in ("transpose", "permute") and any(is_constant(item, 2) for item in value.args)


def _is_given_all(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a model is given whole sequences and no state of the positions before: in a loop over batches, or a text
    that the loop makes longer.
    """
    if len(call.args) != 1 or call.keywords:
        return False
    if ctx.role(call) != "decode":
        return True
    wanted = set(names_in(call.args[0]))
    if isinstance(call.args[0], ast.Name):
        made = ctx.inference.flow.definitions(call.args[0])
        wanted |= {name for item in made if item.value is not None for name in names_in(item.value)}
    return any(
        isinstance(part, ast.Assign)
        and isinstance(part.value, ast.Call)
        and ctx.is_call_of(part.value, *_JOINS)
        and any(isinstance(target, ast.Name) and target.id in wanted for target in part.targets)
        for loop in ctx.loops(call)[:1]
        for part in walk(loop)
    )
