"""TPL702: gradients scaled although bfloat16 needs no scaling."""

from __future__ import annotations

import ast
import re
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
    last_name,
    pattern,
    precision,
    walk,
)
from perflint.api.phases import is_trial_run

_CHOICE = pattern(rf"(?:{'|'.join(sorted(precision.CHOICES))})", re.IGNORECASE)
_WIDE = pattern(r"bf16|bfloat16", re.IGNORECASE)
_NARROW_TYPES = frozenset({"torch.float16", "torch.half"})
_NARROW = pattern(r"(?<!b)fp16|(?<!b)float16|(?<!b)16|half", re.IGNORECASE)


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
        branch = _branch(node, ctx)
        if branch is False or (branch and _switches_float16(node, ctx)):
            return
        choice = None if branch or has_unpacking(node) or _is_restored(ctx) else _autocast_in_wide_range(ctx)
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


def _branch(node: ast.Call, ctx: Context) -> bool | None:
    """True where the scaler stands in a branch for bfloat16, False in one that another type has chosen."""
    # What leaves the block before, `if bf16 and not supported: raise`, chooses nothing.
    tests = [(test, holds) for test, holds in ctx.conditions(node, exits=False) if _CHOICE.search(ctx.text(test))]
    # The innermost that names a type decides; "dtype" may be part of any word.
    naming = [(test, holds) for test, holds in tests if _WIDE.search(ctx.text(test)) or _NARROW.search(ctx.text(test))]
    chosen = naming or tests
    return chosen[-1][1] and _asks_for_wide(chosen[-1][0], ctx) if chosen else None


def _asks_for_wide(test: ast.expr, ctx: Context) -> bool:
    """Whether a test holds for bfloat16 only: a switch named for it, a comparison with it."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and any(_asks_for_wide(part, ctx) for part in test.values)
    if isinstance(test, ast.Compare):
        text = ctx.text(test)
        same = isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In)) and len(test.ops) == 1
        return same and _WIDE.search(text) is not None and _NARROW.search(_WIDE.sub("", text)) is None
    if not isinstance(test, (ast.Name, ast.Attribute)):
        return False
    text = last_name(test)
    return _WIDE.search(text) is not None and _NARROW.search(_WIDE.sub("", text)) is None


def _switches_float16(node: ast.Call, ctx: Context) -> bool:
    """Whether the switch around a scaler switches an autocast to float16 on in this file, whatever it is called."""
    tests = {ctx.text(test) for test, _ in ctx.conditions(node)}
    for part in walk(ctx.tree.module):
        call = _autocast(part, ctx)
        enabled = keyword(call, "enabled") if call is not None else None
        dtype = keyword(call, "dtype") if call is not None else None
        if enabled is not None and isinstance(dtype, ast.Attribute) and ctx.text(enabled) in tests:
            if ctx.target(dtype) in _NARROW_TYPES:
                return True
    return False


def _is_restored(ctx: Context) -> bool:
    """Whether the file reads the scaler's state back: runs that are resumed expect it."""
    return any(
        isinstance(part, ast.Attribute) and part.attr == "load_state_dict" and "scaler" in ctx.text(part.value).lower()
        for part in walk(ctx.tree.module)
    )


def _autocast_in_wide_range(ctx: Context) -> str | None:
    """Whether all that the file runs in a narrower type is bfloat16: "" where each autocast says so, the name of its
    type where a branch sets that to bfloat16, None otherwise.
    """
    found: str | None = None
    for node in walk(ctx.tree.module):
        call = _autocast(node, ctx)
        if call is None or is_constant(keyword(call, "enabled"), False):  # noqa: FBT003 - the literal
            continue
        if is_constant(keyword(call, "device_type") or (call.args[0] if call.args else None), "cpu"):
            return None
        dtype = keyword(call, "dtype") or _second(call)
        kind = _is_wide(dtype, ctx)
        if kind is None or (found is not None and found != kind):
            return None
        found = kind
    return found


def _autocast(node: ast.AST, ctx: Context) -> ast.Call | None:
    """A call of autocast, or of `partial(autocast, ...)`."""
    if not isinstance(node, ast.Call):
        return None
    if callee_name(node) == "autocast" and ctx.target(node.func) in precision.AUTOCASTS:
        return node
    if callee_name(node) == "partial" and node.args and isinstance(node.args[0], (ast.Name, ast.Attribute)):
        return node if ctx.target(node.args[0]) in precision.AUTOCASTS else None
    return None


def _second(call: ast.Call) -> ast.expr | None:
    return call.args[1] if len(call.args) > 1 else None


def _is_wide(dtype: ast.expr | None, ctx: Context) -> str | None:
    if isinstance(dtype, (ast.Name, ast.Attribute)) and ctx.target(dtype) == "torch.bfloat16":
        return ""
    if not isinstance(dtype, ast.Name):
        return None
    made = [item.value for item in ctx.inference.flow.definitions(dtype)]
    wide = [isinstance(value, (ast.Name, ast.Attribute)) and ctx.target(value) == "torch.bfloat16" for value in made]
    if not wide or not any(wide):
        return None
    if all(wide):
        return ""
    plain = all(isinstance(value, (ast.Name, ast.Attribute)) for value in made)
    return dtype.id if plain else None


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
