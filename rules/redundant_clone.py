"""TPL312: copies of tensors that nothing else refers to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Confidence, Context, Finding, Fix, Heat, Impact, Rule
from perflint.api.aliases import (
    crosses_devices,
    is_idle_copy,
    is_idle_layout,
    is_new_tensor,
    just_made,
    may_change,
    overwritten_by,
)

from ._fixes.without_clone import without_clone
from ._shared.plain_forms import is_plain_form


class RedundantClone(Rule):
    """A tensor that was just created is cloned, although nothing else refers to it.

    What it does

    Reports `.clone()` directly on the result of an operation that returns a new tensor, and copies in a forward that
    are only read, of tensors that nothing modifies afterwards. On every step also copies that are overwritten before
    anything reads them: `x.clone().zero_()`, and `.contiguous()` on slices that only operations by element read.

    Why is this slow?

    `(a + b).clone()` reads and writes the sum once more, and both exist for a moment. `+`, `torch.cat`, `.sum()` and
    moves between host and GPU return a new tensor already. So does `.contiguous()` on a slice that an activation reads
    next: it reads any order, and writes a new tensor.

    What to do

    Remove the `.clone()`. Make what is overwritten with `torch.zeros_like`, `torch.full_like` or `torch.empty_like`.

    Fix safety

    Unsafe: no value changes, but a tensor that autograd has saved must not be modified in place, and perflint cannot
    see every later modification.

    Not reported

    - Views, which share memory (`view`, `expand`, `detach`, slices), and slices that release a large tensor.
    - `.to`, `.float`, and `.contiguous` of what is no slice, which may return the same tensor.
    - Clones that request a memory format.
    - Results that autograd has saved (`exp`, `sigmoid`, `softmax`) and that are modified in place.
    - Reference implementations that are written to be read.
    - `.cpu().clone()`, unless the tensor is certainly on a GPU.

    References

    - `torch.clone`: https://docs.pytorch.org/docs/stable/generated/torch.clone.html
    - Tensor views: https://docs.pytorch.org/docs/stable/tensor_view.html
    """

    code, name = "TPL312", "redundant-clone"
    numerics = "same bits"
    impact = Impact.LOW
    listens = (Calls("clone"), Calls("contiguous", at_least=Heat.STEP))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
            return
        value = node.func.value
        if node.func.attr == "contiguous":
            yield from self._ordered(node, ctx)
            return
        made = just_made(value, ctx)
        if is_plain_form(node, ctx):
            return
        # Of all that a network may give, only tensors are cloned.
        instead = overwritten_by(node, ctx) if ctx.heat(node) >= Heat.STEP and ctx.kind(value).holds_tensors else None
        if instead is not None:
            yield self.finding(
                node,
                ctx,
                f"`{ctx.text(node)}` copies values that the next operation on it overwrites.",
                advice=f"Make a tensor of that size with `{instead}`, which reads nothing.",
            )
            return
        moved = made is not None and crosses_devices(made, ctx)
        is_new = moved or (made is not None and is_new_tensor(made, ctx, changes=may_change(node, ctx)))
        if not is_new and not is_idle_copy(node, ctx):
            return
        text = ctx.text(value)
        what = text if len(text) <= 60 else f"{text[:57]}..."
        why = "already a copy on the other device" if moved else "already a new tensor" if is_new else ""
        yield self.finding(
            node,
            ctx,
            f"`{what}` is {why}, and `.clone()` copies it again."
            if why
            else f"`{what}` is not modified afterwards, and `.clone()` copies it only for reading.",
            advice="Remove the `.clone()`.",
            fix=Fix(
                "Remove the copy",
                Applicability.UNSAFE,
                without_clone(node, value, ctx),
                reason="the tensor must not be modified in place while autograd needs it",
            ),
            confidence=None if made is not None and ctx.kind(made).is_tensor else Confidence.MEDIUM,
        )

    def _ordered(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`x[:, :, :-n].contiguous()` before an activation."""
        if ctx.heat(node) >= Heat.STEP and is_idle_layout(node, ctx) and not ctx.program.whole.compiles:
            yield self.finding(
                node,
                ctx,
                f"`{ctx.text(node)}` {ctx.heat(node).phrase} and copies a slice for operations that read it as it is.",
                advice="Remove the `.contiguous()`: what reads the slice writes a contiguous result.",
                impact=Impact.MEDIUM,
                confidence=Confidence.MEDIUM,
            )
