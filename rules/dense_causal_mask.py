"""TPL613: a dense causal mask given to an attention that knows causality."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, argument, callee_name, is_constant

_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
#: Each with the diagonal that makes it causal.
_TRIANGLES = {"tril": 0, "triu": 1}
_FILLED = frozenset({"ones", "full", "ones_like", "full_like"})
#: What gives the same mask in another dtype, place or shape, or its opposite.
_KEEPS = frozenset(
    "bool to cuda type float logical_not unsqueeze view expand masked_fill reshape eq __invert__ contiguous".split()
)


class DenseCausalMask(Rule):
    """A triangular mask passed as `attn_mask` keeps the attention from its flash kernel; `is_causal=True` does not.

    What it does

    Reports `scaled_dot_product_attention` whose mask is a triangle of ones, and nothing else.

    Why is this slow?

    The flash kernel takes no mask tensor. With one, the call runs in a slower kernel that reads the L x L mask for
    every head and also computes the half that the mask removes. With `is_causal=True` that half is skipped.

    What to do

    Pass `is_causal=True` and no mask. Queries and keys must have the same length: with a cache of keys, the triangle of
    `is_causal` starts at the top left.

    Fix safety

    No fix: whether queries and keys have the same length is not known from the source.

    Not reported

    - Masks that are joined with padding, windows or document boundaries.
    - Masks that are passed in by a caller.

    References

    - `torch.nn.functional.scaled_dot_product_attention`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    - `torch.nn.attention.SDPBackend`: https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.SDPBackend.html
    """

    code, name = "TPL613", "dense-causal-mask"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("scaled_dot_product_attention"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        mask = argument(node, 3, "attn_mask")
        if mask is None or is_constant(mask, None) or not ctx.is_call_of(node, _ATTENTION):
            return
        if not _is_triangle(mask, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"The dense causal mask `{ctx.text(mask)}` keeps this attention from the flash kernel; it "
            f"{ctx.heat(node).phrase}.",
            advice="Pass `is_causal=True` instead of the mask, if queries and keys have the same length.",
        )


def _is_triangle(node: ast.expr, ctx: Context, depth: int = 6) -> bool:
    """Whether a value is a triangle of ones on all ways that lead to it."""
    if depth == 0:
        return False
    if isinstance(node, (ast.Name, ast.Attribute)):
        values = _values(node, ctx)
        return bool(values) and all(_is_triangle(value, ctx, depth - 1) for value in values)
    if isinstance(node, ast.Subscript):
        return _is_triangle(node.value, ctx, depth - 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not)):
        return _is_triangle(node.operand, ctx, depth - 1)
    if isinstance(node, ast.Compare):
        return (
            len(node.ops) == 1
            and isinstance(node.comparators[0], ast.Constant)
            and _is_triangle(node.left, ctx, depth - 1)
        )
    if not isinstance(node, ast.Call):
        return False
    name = callee_name(node)
    if name in _TRIANGLES:
        is_function = ctx.target(node.func) is not None and bool(node.args)
        filled = node.args[0] if is_function else _receiver(node)
        diagonal = argument(node, 1 if is_function else 0, "diagonal")
        is_causal = is_constant(diagonal, _TRIANGLES[name]) or (diagonal is None and _TRIANGLES[name] == 0)
        return is_causal and isinstance(filled, ast.Call) and callee_name(filled) in _FILLED
    receiver = _receiver(node)
    return name in _KEEPS and receiver is not None and _is_triangle(receiver, ctx, depth - 1)


def _receiver(node: ast.Call) -> ast.expr | None:
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _values(node: ast.Name | ast.Attribute, ctx: Context) -> list[ast.expr]:
    """What a name or a buffer holds, [] where that is not all plain to see."""
    if isinstance(node, ast.Attribute):
        return _buffer(node, ctx)
    made = ctx.inference.flow.definitions(node)
    values = [item.value for item in made if item.value is not None and not item.path]
    return values if len(values) == len(made) else []


def _buffer(node: ast.Attribute, ctx: Context) -> list[ast.expr]:
    """What `self.mask` is given in the class around: by an assignment or by `register_buffer`."""
    around = ctx.tree.class_of(node)
    if around is None or not (isinstance(node.value, ast.Name) and node.value.id == "self"):
        return []
    found: list[ast.expr] = []
    for part in ast.walk(around):
        if isinstance(part, ast.Call) and callee_name(part) == "register_buffer" and len(part.args) > 1:
            if is_constant(part.args[0], node.attr):
                found.append(part.args[1])
        elif isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Attribute) and ast.dump(target.value) == ast.dump(node.value):
                    found += [part.value] if target.attr == node.attr else []
    return found
