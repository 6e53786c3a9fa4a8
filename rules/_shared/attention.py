"""Attention that is written out: from its softmax back to the scores, and on to the product with the values."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from perflint.api import (
    Context,
    Definition,
    argument,
    attention,
    callee_name,
    is_constant,
    last_name,
    of_tensor,
    pattern,
    reads_of,
    values_of,
    walk,
)

from .attention_products import has_rank, is_product, is_turned, query_and_key
from .attention_weights import SHAPING, Weights, is_plain, spend

_DEPTH = 14
#: How many names back what is added to scores is looked at.
_ADDED = 3
_SQRT = pattern(r"sqrt\(|\*\*\s*\(?-?\s*(?:0?\.5|1\s*/\s*2)")
_FILLS = frozenset("masked_fill masked_fill_".split())
_SCALING = frozenset("mul mul_ div div_ multiply divide true_divide".split())
_ADDING = frozenset("add add_".split())
_WIDE = frozenset({"torch.float32", "torch.float"})
#: What is read of scores or weights without keeping them.
_DESCRIPTIONS = frozenset("shape dtype device size dim ndim masked_fill_ mul_ div_ new_zeros new_full new_ones".split())


class Attention(NamedTuple):
    """softmax(scale * query @ key^T + mask) @ value, as written. With `turned`, the last two dimensions of the factors
    are others than tokens and width; without `scaled`, nothing scales the product. `first` and `second` are the two
    products.
    """

    query: ast.expr
    key: ast.expr
    value: ast.expr
    first: ast.expr
    second: ast.AST
    masks: tuple[ast.expr, ...]
    drops: bool
    turned: bool
    scaled: bool


@dataclass(slots=True)
class _Scores:
    """What was found on the way from the softmax back to the product of queries and keys."""

    products: list[ast.expr] = field(default_factory=list)
    scaled: bool = False
    masks: list[ast.expr] = field(default_factory=list)
    definitions: dict[int, Definition] = field(default_factory=dict)
    names: set[int] = field(default_factory=set)


def softmax_calls(node: ast.Call, ctx: Context) -> Iterator[ast.Call]:
    """The calls in this file of `self.attend`, where a class keeps `nn.Softmax(dim=-1)` under that name; what is made
    of `node` at once, if it makes a layer that is called there; `node` itself if it is a call of a softmax.
    """
    statement = ctx.tree.parent(node)
    if isinstance(statement, ast.Call) and statement.func is node:
        yield statement  # `nn.Softmax(dim=-1)(scores)`
        return
    kept = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if callee_name(node) != "Softmax" or not isinstance(kept, ast.Attribute) or ctx.tree.class_of(node) is None:
        yield node
        return
    for read, there in reads_of(kept, ctx):
        call = there.tree.parent(read)
        if there.path == ctx.path and isinstance(call, ast.Call) and call.func is read:
            yield call


def written_out(softmax: ast.Call, ctx: Context) -> Attention | None:
    """The attention around a softmax; None where any part of it is something else, or its weights go elsewhere."""
    softened = _softened(softmax, ctx)
    found = _Scores()
    if softened is None or not _follow(softened[0], found, ctx, _DEPTH) or len(found.products) != 1:
        return None
    if softened[1] > 0 and not has_rank(found.products[0], softened[1] + 1, ctx):
        return None
    factors = query_and_key(found.products[0], ctx)
    if factors is None or _are_kept(found, softmax, ctx):
        return None
    query, key, columns = factors
    scaled = found.scaled or _is_scaled(query, ctx) or _is_scaled(key, ctx)
    weights = Weights()
    if not spend(softmax, weights, ctx, _DEPTH) or len(weights.values) != 1 or not is_plain(weights.values[0]):
        return None
    turned = columns or is_turned(found.products[0], ctx)
    return Attention(
        query,
        key,
        weights.values[0],
        found.products[0],
        weights.products[0],
        tuple(found.masks),
        weights.drops,
        turned,
        scaled,
    )


# The softmax.


def _softened(call: ast.Call, ctx: Context) -> tuple[ast.expr, int] | None:
    """What a softmax is taken of, and over which dimension. It may compute in float32, as every fused kernel does."""
    target, made = ctx.target(call.func), call.func
    wide = [item for item in call.keywords if item.arg == "dtype" and ctx.target(item.value) in _WIDE]
    if len(call.args) + len(call.keywords) - len(wide) > 2:
        return None
    given, dim = call.args[0] if call.args else None, argument(call, 0, "dim")
    if target in ("torch.softmax", "torch.nn.functional.softmax"):
        given, dim = argument(call, 0, "input"), argument(call, 1, "dim")
    elif isinstance(made, ast.Call):
        dim = argument(made, 0, "dim") if ctx.is_call_of(made, "torch.nn.Softmax") else None
    elif not isinstance(made, ast.Attribute):
        return None
    elif isinstance(made.value, ast.Name) and made.value.id == "self":
        over = {_dimension(item) for item in _dimensions_of_module(made, ctx)}
        return (given, number) if given is not None and len(over) == 1 and (number := over.pop()) else None
    elif len(call.args) + len(call.keywords) - len(wide) <= 1:
        given = made.value
    number = _dimension(dim)
    return None if given is None or not number else (given, number)


def _dimension(dim: ast.expr | None) -> int:
    """-1 for the last dimension, n for the one with that many before it, 0 for anything else."""
    if isinstance(dim, ast.UnaryOp) and isinstance(dim.op, ast.USub) and is_constant(dim.operand, 1):
        return -1
    return dim.value if isinstance(dim, ast.Constant) and isinstance(dim.value, int) and dim.value > 1 else 0


def _dimensions_of_module(func: ast.Attribute, ctx: Context) -> Iterator[ast.expr | None]:
    """The dimensions of the `nn.Softmax` that `self.softmax` is given wherever its classes set it."""
    for value, _ in values_of(func, ctx):
        is_softmax = isinstance(value, ast.Call) and callee_name(value) == "Softmax"
        yield argument(value, 0, "dim") if is_softmax and isinstance(value, ast.Call) else None


# Back to the product of queries and keys.


def _follow(node: ast.expr, found: _Scores, ctx: Context, depth: int) -> bool:
    """Follow scores through scales, masks and reshapes; False where anything else is done to them."""
    if not depth:
        return False
    if isinstance(node, ast.Name):
        found.names.add(id(node))
        return _follow_definitions(ctx.inference.flow.definitions(node), found, ctx, depth - 1)
    if isinstance(node, ast.BinOp):
        return _follow_operation(node, node.left, node.right, node.op, found, ctx, depth - 1)
    return isinstance(node, ast.Call) and _follow_call(node, found, ctx, depth - 1)


def _follow_definitions(made: Iterable[Definition], found: _Scores, ctx: Context, depth: int) -> bool:
    made = tuple(made)
    for item in made:
        if id(item) in found.definitions:
            continue
        found.definitions[id(item)] = item
        if item.value is None or item.path:
            return False
        if isinstance(item.node, ast.AugAssign):
            before, open_end = ctx.inference.flow.definitions_before(item.name, item.node)
            if open_end or not _changes(item.value, item.node.op, found, ctx):
                return False
            if not _follow_definitions(before, found, ctx, depth):
                return False
        elif not _follow(item.value, found, ctx, depth):
            return False
    return bool(made)


def _follow_operation(
    node: ast.expr, left: ast.expr, right: ast.expr, op: ast.operator, found: _Scores, ctx: Context, depth: int
) -> bool:
    if isinstance(op, ast.MatMult):
        found.products.append(node)
        return True
    if _changes(right, op, found, ctx):
        return _follow(left, found, ctx, depth)
    if isinstance(op, (ast.Mult, ast.Add)) and _changes(left, op, found, ctx):
        return _follow(right, found, ctx, depth)
    return False


def _changes(other: ast.expr, op: ast.operator, found: _Scores, ctx: Context) -> bool:
    """Whether `scores op other` scales or masks them, which a fused attention does as well."""
    if isinstance(op, (ast.Mult, ast.Div)) and is_scale(other, ctx):
        found.scaled = True
        return True
    if isinstance(op, (ast.Add, ast.Sub)) and _is_added_as_it_is(other, ctx):
        found.masks.append(other)
        return True
    return False


def _is_added_as_it_is(other: ast.expr, ctx: Context, depth: int = _ADDED) -> bool:
    """Whether a mask or bias is there before the scores are: none that is a product of matrices itself, as positions
    relative to each query are.
    """
    if isinstance(other, ast.Constant):
        return False
    for part in walk(other):
        if is_product(part, ctx):
            return False
        if isinstance(part, ast.Name) and depth:
            made = ctx.inference.flow.definitions(part)
            if any(item.value is not None and not _is_added_as_it_is(item.value, ctx, depth - 1) for item in made):
                return False
    return True


def _follow_call(node: ast.Call, found: _Scores, ctx: Context, depth: int) -> bool:
    name, target = callee_name(node), ctx.target(node.func)
    if name == "einsum" or target in attention.PRODUCTS:
        found.products.append(node)
        return True
    if target == attention.BATCHED_SUM:
        return _follow_batched_sum(node, found)
    if target == "torch.where" and len(node.args) == 3:
        found.masks.append(node.args[0])
        return _follow(node.args[1], found, ctx, depth)
    taken = of_tensor(node)
    if taken is None:
        return False
    scores, given = taken
    if name in attention.PRODUCT_METHODS and len(given) == 1:
        found.products.append(node)
        return True
    if name in _FILLS and given:
        found.masks.append(given[0])
        return _follow(scores, found, ctx, depth)
    if name in _SCALING and len(given) == 1 and is_scale(given[0], ctx):
        found.scaled = True
        return _follow(scores, found, ctx, depth)
    if name in _ADDING and len(given) == 1 and not node.keywords and _is_added_as_it_is(given[0], ctx):
        found.masks.append(given[0])
        return _follow(scores, found, ctx, depth)
    return (name in SHAPING or _widens(node, ctx)) and _follow(scores, found, ctx, depth)


def _follow_batched_sum(node: ast.Call, found: _Scores) -> bool:
    """`baddbmm(bias, query, keys, alpha=scale)`: a product, scaled, to which a bias is added."""
    if len(node.args) != len(("bias", "query", "keys")):
        return False
    found.products.append(node)
    found.scaled |= any(item.arg == "alpha" for item in node.keywords)
    if not any(item.arg == "beta" and is_constant(item.value, 0) for item in node.keywords):
        found.masks.append(node.args[0])
    return True


def _widens(node: ast.Call, ctx: Context) -> bool:
    """Whether scores are only made float32, in which every fused kernel takes its softmax."""
    if callee_name(node) == "float":
        return not node.args
    given = (
        argument(node, 0, "dtype") if callee_name(node) == "to" and len(node.args) + len(node.keywords) == 1 else None
    )
    return given is not None and ctx.target(given) in _WIDE


def _are_kept(found: _Scores, softmax: ast.Call, ctx: Context) -> bool:
    """Whether raw scores are used for more than the softmax: returned, stored, handed on."""
    for item in found.definitions.values():
        for use in ctx.inference.flow.uses_of(item):
            outer = ctx.tree.parent(use)
            is_other_softmax = isinstance(outer, ast.Call) and ctx.text(outer.func) == ctx.text(softmax.func)
            if is_other_softmax and ctx.are_exclusive(use, softmax):
                continue  # the way without a mask: `else: weights = self.softmax(scores)`
            described = isinstance(outer, ast.Attribute) and outer.attr in _DESCRIPTIONS
            described |= _is_dropped(ctx.tree.statement_of(use))
            described |= isinstance(outer, ast.Call) and callee_name(outer) == "type_as" and use in outer.args
            scaled_in_place = any(outer is other.node for other in found.definitions.values())
            if not (id(use) in found.names or described or scaled_in_place or _is_mask_part(use, found)):
                return True
    return False


def _is_dropped(statement: ast.stmt) -> bool:
    """`scores.masked_fill(mask, -1e9)` as a statement: its result goes nowhere, and the scores stay as they are."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and callee_name(call) == "masked_fill"


def _is_mask_part(use: ast.Name, found: _Scores) -> bool:
    return any(part is use for mask in found.masks for part in walk(mask))


# Scales.


def is_scale(node: ast.expr, ctx: Context, depth: int = 3) -> bool:
    """Whether a factor is the usual scale of attention: a root, or something named for it that is not learnt."""
    if _SQRT.search(ctx.text(node)) or (isinstance(node, ast.Constant) and isinstance(node.value, (int, float))):
        return True
    name = last_name(node)
    if isinstance(node, ast.Attribute):
        given = [there.text(value) for value, there in values_of(node, ctx) if value is not None]
        if any("Parameter" in text or "Embedding" in text for text in given):
            return False
        return name in attention.SCALES or any(_SQRT.search(text) for text in given)
    if isinstance(node, ast.Name) and depth:
        made = [item.value for item in ctx.inference.flow.definitions(node) if item.value is not None]
        return name in attention.SCALES or any(is_scale(value, ctx, depth - 1) for value in made)
    return False


def _is_scaled(node: ast.expr, ctx: Context, depth: int = 4) -> bool:
    """Whether queries or keys were scaled before they were multiplied."""
    for part in walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Mult, ast.Div)) and is_scale(part.right, ctx):
            return True
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and is_scale(part.left, ctx):
            return True
        if isinstance(part, ast.Name) and depth:
            for item in ctx.inference.flow.definitions(part):
                if isinstance(item.node, ast.AugAssign) and isinstance(item.node.op, (ast.Mult, ast.Div)):
                    if is_scale(item.node.value, ctx):
                        return True
                elif item.value is not None and not item.path and _is_scaled(item.value, ctx, depth - 1):
                    return True
    return False
