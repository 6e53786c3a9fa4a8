"""TPL702: gradients scaled although bfloat16 needs no scaling."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
    argument,
    callee_name,
    has_unpacking,
    is_constant,
    keyword,
    precision,
    walk,
)
from perflint.api.phases import autocast_in_wide_range, branch_for_wide, is_trial_run, switches_float16


class ScalerWithBfloat16(Rule):
    """A `GradScaler` scales the loss of training in bfloat16.

    What it does

    Reports a `GradScaler` in a loop whose autocast dtype is bfloat16.

    Why is this slow?

    bfloat16 has the range of float32, so gradients do not underflow. The scaler still multiplies the loss, divides
    every gradient and searches for infinities. With an optimizer that is not fused it synchronizes once per step.

    What to do

    Remove the scaler: `loss.backward()` and `optimizer.step()`. The smallest change is `GradScaler(enabled=False)`,
    which makes its methods no-ops. If the dtype is chosen at run time, pass `enabled=dtype == torch.float16`.

    Fix safety

    Unsafe: a step with infinite or NaN gradients is no longer skipped, and the state dict of a disabled scaler is
    empty. Changes training in those cases, otherwise same to rounding.

    Not reported

    - float16, and dtypes that are known only at run time.
    - `enabled=` with a computed value.
    - Scalers that are restored from checkpoints.
    - The CPU.

    References

    - torch.amp, gradient scaling: https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling
    """

    code, name = "TPL702", "scaler-with-bfloat16"
    impact = Impact.LOW
    listens = (Calls(*sorted(precision.SCALERS)),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        enabled = keyword(node, "enabled")
        if not (enabled is None or is_constant(enabled, True)):  # noqa: FBT003 - the literal
            return
        if is_constant(argument(node, 0, "device"), "cpu") or is_trial_run(node, ctx):
            return
        branch = branch_for_wide(node, ctx)
        if branch is False or (branch and switches_float16(node, ctx)):
            return
        choice = None if branch or has_unpacking(node) or _is_restored(ctx) else autocast_in_wide_range(ctx)
        if not branch and choice is None:
            return
        certain = branch or choice == ""
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` scales bfloat16 gradients, which have the range of float32 and need no scaling."
            if certain
            else f"`{ctx.text(node)}` also scales gradients if `{choice}` is bfloat16, which needs no scaling.",
            advice="Remove the scaler, or create it with `enabled=False`."
            if certain
            else f"Create it with `enabled={choice} == torch.float16`.",
            confidence=Confidence.HIGH if certain else Confidence.MEDIUM,
            fix=_fix(node, choice or "", ctx),
        )


def _is_restored(ctx: Context) -> bool:
    """Whether the file reads the scaler's state back: runs that are resumed expect it."""
    return any(
        isinstance(part, ast.Attribute) and part.attr == "load_state_dict" and "scaler" in ctx.text(part.value).lower()
        for part in walk(ctx.tree.module)
    )


def _fix(node: ast.Call, choice: str, ctx: Context) -> Fix | None:
    if callee_name(node) == "NativeScaler" or has_unpacking(node):
        return None
    torch, imports = ctx.edit.ensure_import("torch", at=node)
    wanted = f"{choice} == {torch}.float16" if choice else "False"
    return Fix(
        "Disable the scaler",
        Applicability.UNSAFE,
        (ctx.edit.set_keyword(node, "enabled", wanted), *(imports if choice else ())),
        reason="steps with infinite gradients are no longer skipped, and the scaler's state dict becomes empty",
        numerics="changes training",
    )
