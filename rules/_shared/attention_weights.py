"""From the softmax of attention on to the product with the values."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from perflint.api import Context

from .attention_products import value_by

#: What gives another shape to scores or weights and keeps their order.
SHAPING = frozenset("view reshape contiguous flatten unflatten".split())
_VIEWS = SHAPING | frozenset("transpose permute squeeze unsqueeze expand to type_as movedim".split())


@dataclass(slots=True)
class Weights:
    """What was found on the way from the softmax to the product with the values."""

    values: list[ast.expr] = field(default_factory=list)
    products: list[ast.AST] = field(default_factory=list)
    drops: bool = False


def spend(node: ast.expr, found: Weights, ctx: Context, depth: int) -> bool:
    """Follow weights to the one product they end in; False where they go anywhere else."""
    outer = ctx.tree.parent(node)
    if not depth or outer is None:
        return False
    value = value_by(node, ctx)
    if value is not None:
        if value not in found.values:
            found.values.append(value)
            found.products.append(outer)
        return True
    if isinstance(outer, ast.Assign):
        return _spend_name(outer, found, ctx, depth - 1)
    if isinstance(outer, ast.Attribute):
        call = ctx.tree.parent(outer)
        if not isinstance(call, ast.Call) or call.func is not outer:
            return outer.attr in ("shape", "dtype", "device")
        return outer.attr == "size" or (
            outer.attr in (*SHAPING, "to", "type_as") and spend(call, found, ctx, depth - 1)
        )
    if isinstance(outer, ast.Call) and outer.args and outer.args[0] is node and _is_dropout(outer, ctx):
        found.drops = True
        return not _is_training_only(outer, ctx) and spend(outer, found, ctx, depth - 1)
    return False


def _spend_name(statement: ast.Assign, found: Weights, ctx: Context, depth: int) -> bool:
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return False
    definition = ctx.inference.flow.definition_at(target)
    uses = ctx.inference.flow.uses_of(definition) if definition is not None else []
    return bool(uses) and all(spend(use, found, ctx, depth) for use in uses)


def is_plain(value: ast.expr) -> bool:
    """Whether values are a name or a view of one, and not computed from the weights of another attention."""
    while isinstance(value, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(value, ast.Call):
            if not isinstance(value.func, ast.Attribute) or value.func.attr not in _VIEWS:
                return False
            value = value.func
        value = value.value
    return isinstance(value, ast.Name)


def _is_dropout(call: ast.Call, ctx: Context) -> bool:
    if ctx.target(call.func) in ("torch.nn.functional.dropout", "torch.dropout", "torch.nn.Dropout"):
        return True
    return isinstance(call.func, ast.Attribute) and (
        "drop" in call.func.attr.lower() and isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
    )


def _is_training_only(call: ast.Call, ctx: Context) -> bool:
    """Whether the dropout stands under a test, so that the fused call would need two forms."""
    statement = ctx.tree.statement_of(call)
    outer = ctx.tree.parent(statement)
    return isinstance(outer, ast.If) and "training" in ctx.text(outer.test)
