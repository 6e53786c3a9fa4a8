"""TPL606: attention that is multiplied out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    CLASS,
    Calls,
    Context,
    Finding,
    Heat,
    Impact,
    Place,
    Ref,
    Rule,
    attention,
    class_of,
    walk,
)

from ._shared.attention import Attention, softmax_calls, written_out
from ._shared.fused_ways import has_fused_way, outermost_class

#: `scaled_dot_product_attention` is there since this version.
_SINCE = (2, 0)
#: It takes `scale=` since this one.
_SCALES_SINCE = (2, 1)


class ManualAttention(Rule):
    """softmax(q k^T) v is computed step by step, although `scaled_dot_product_attention` does it in one kernel.

    What it does

    Reports attention that is written as a matmul, a softmax and a second matmul.

    Why is this slow?

    Each step writes an L x L matrix per head to memory, and the next one reads it; a backward pass keeps several of
    them. The fused kernel never creates the matrix. On a GPU its memory grows with L instead of L squared. The
    fastest kernels need fp16 or bf16.

    What to do

    Write `F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p if self.training else 0.0)`. Note the
    differences:

    - A boolean mask is True where attention is kept, the opposite of `masked_fill`.
    - A row whose keys are all masked gives 0 (by hand: NaN, or the mean of the values).
    - `dropout_p` applies in evaluation, too.
    - `is_causal=True` aligns the triangle at the top left if queries and keys differ in number.
    - The scale is 1/sqrt(d) unless `scale=` is passed (since torch 2.1).
    - A bias goes into `attn_mask`; it may need gradients, and keeps the attention from its flash kernel.
    - The softmax is computed in float32, whatever the inputs are.

    Fix safety

    No fix: results are equal to rounding at best (5e-7), and masks must be inverted.

    Not reported

    - Weights that are returned, stored, changed or read by a hook.
    - Capped or sigmoid scores, a learned temperature, or biases that are products with the queries themselves.
    - A softmax over another dimension.
    - A few learned queries, or tokens beside an image, as in Segment Anything's decoder.
    - Dropout under a test of `self.training`.
    - A fallback beside a fused path, or an option between the two.
    - Very short sequences, torch before 2.0, exported models, double backward.

    Measured

    Without gradients on one CPU thread, the manual form took 1.05 times as long for 64 tokens (causal: 1.6), 1.65
    times for 512 (causal: 2.2) and 3.5 times for 2048 (causal, against `is_causal=True`: 7.1 times; torch 2.13).

    References

    - `torch.nn.functional.scaled_dot_product_attention`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    """

    code, name = "TPL606", "manual-attention"
    impact = Impact.MEDIUM
    listens = (Calls("softmax", at_least=Heat.STEP), Calls("Softmax"))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        for call in softmax_calls(node, ctx):
            if ctx.heat(call) >= Heat.STEP:
                yield from self._at(call, ctx)

    def _at(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        if (ctx.torch_version or _SINCE) < _SINCE or ctx.mentions(*attention.DISPATCHERS):
            return
        if has_fused_way(node, ctx):  # most have, which costs least to see
            return
        found = written_out(node, ctx)
        if found is None or _is_learned(found.query, ctx) or _goes_two_ways(node, ctx):
            return
        if not found.scaled and not _serves_without_scale(found, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"The attention of `{ctx.text(found.query)}`, `{ctx.text(found.key)}` and `{ctx.text(found.value)}` is "
            "computed in separate steps, and each step stores a queries x keys matrix.",
            advice=_advice(found, ctx),
            related=tuple(
                ctx.hop(product, ctx.text(product))
                for product in (found.first, found.second)
                if getattr(product, "lineno", node.lineno) != node.lineno
            ),
        )


def _serves_without_scale(found: Attention, ctx: Context) -> bool:
    """Whether a product that nothing scales is attention of tokens all the same: three things that are computed of the
    input, none of them a table that is asked or kept.
    """
    parts = (found.query, found.key, found.value)
    if (ctx.torch_version or _SCALES_SINCE) < _SCALES_SINCE or len({ctx.text(part) for part in parts}) < len(parts):
        return False
    return not any(_is_learned(part, ctx) for part in parts)


_SPREAD = frozenset({"expand", "repeat", "unsqueeze"})


def _is_learned(query: ast.expr, ctx: Context) -> bool:
    """Whether the queries are parameters: few, whatever the length of the input, so that the scores are few rows."""
    if isinstance(query, ast.Attribute):
        kind = ctx.kind(query)
        return kind.is_tensor and kind.requires_grad is True and kind.place is Place.MODULE
    if isinstance(query, ast.Name):
        origins = ctx.inference.origins(query)
        return len(origins) == 1 and origins[0] is not query and _is_learned(origins[0], ctx)
    if isinstance(query, ast.BinOp):
        return _is_learned(query.left, ctx) or _is_learned(query.right, ctx)
    if isinstance(query, ast.Call) and isinstance(query.func, ast.Attribute) and query.func.attr in _SPREAD:
        return _is_learned(query.func.value, ctx)
    return isinstance(query, ast.Subscript) and _is_learned(query.value, ctx)


def _goes_two_ways(node: ast.AST, ctx: Context) -> bool:
    """Whether the class is one that Segment Anything's decoder is made of, which is copied into many projects: its few
    tokens ask an image and an image asks them.
    """
    owner = outermost_class(node, ctx)
    if not isinstance(owner, ast.ClassDef):
        return False
    return any(
        isinstance(part, ast.Name) and part.id == owner.name
        for path, name in ctx.program.whole.classes_called("TwoWay")
        if ctx.program.mentions((owner.name,), (path,))
        for item, _ in class_of(Ref(CLASS, path, name), ctx)
        for part in walk(item)
    )


def _advice(found: Attention, ctx: Context) -> str:
    query, key, value = (ctx.text(part) for part in (found.query, found.key, found.value))
    words = f"`F.scaled_dot_product_attention({query}, {key}, {value}"
    masks = " ".join(ctx.text(mask) for mask in found.masks)
    if any(name in masks for name in ("tril", "triu", "causal")):
        words += ", is_causal=True"
    elif found.masks:
        words += ", attn_mask=..."
    if found.drops:
        words += ", dropout_p=... if self.training else 0.0"
    if found.scaled:
        words += (
            ")`, with `scale=` if their product is not multiplied by 1/sqrt(d): 1.0 if the queries were scaled before."
        )
    else:
        words += ", scale=1.0)`."
    if found.turned:
        words += " It takes (..., tokens, width): transpose its inputs and its result accordingly."
    if "attn_mask" in words:
        words += " In a boolean mask, True means that attention is kept."
    return words
