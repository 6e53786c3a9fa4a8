"""Which types a file runs in narrower precision, and which of them a branch is for."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.precision import CHOICE_OF_TYPE, NARROW_RANGE, WIDE_RANGE
from perflint.ir.calls import callee_name, is_constant, keyword
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk
from perflint.torch_model import precision

_NARROW_TYPES = frozenset({"torch.float16", "torch.half"})


def branch_for_wide(node: ast.Call, ctx: FileFacts) -> bool | None:
    """True where the scaler stands in a branch for bfloat16, False in one that another type has chosen."""
    # What leaves the block before, `if bf16 and not supported: raise`, chooses nothing.
    tests = [
        (test, holds) for test, holds in ctx.conditions(node, exits=False) if CHOICE_OF_TYPE.search(ctx.text(test))
    ]
    # The innermost that names a type decides; "dtype" may be part of any word.
    naming = [
        (test, holds)
        for test, holds in tests
        if WIDE_RANGE.search(ctx.text(test)) or NARROW_RANGE.search(ctx.text(test))
    ]
    chosen = naming or tests
    return chosen[-1][1] and _asks_for_wide(chosen[-1][0], ctx) if chosen else None


def _asks_for_wide(test: ast.expr, ctx: FileFacts) -> bool:
    """Whether a test holds for bfloat16 only: a switch named for it, a comparison with it."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and any(_asks_for_wide(part, ctx) for part in test.values)
    if isinstance(test, ast.Compare):
        text = ctx.text(test)
        same = isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In)) and len(test.ops) == 1
        return same and WIDE_RANGE.search(text) is not None and NARROW_RANGE.search(WIDE_RANGE.sub("", text)) is None
    if not isinstance(test, (ast.Name, ast.Attribute)):
        return False
    text = last_name(test)
    return WIDE_RANGE.search(text) is not None and NARROW_RANGE.search(WIDE_RANGE.sub("", text)) is None


def switches_float16(node: ast.Call, ctx: FileFacts) -> bool:
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


def autocast_in_wide_range(ctx: FileFacts) -> str | None:
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


def _autocast(node: ast.AST, ctx: FileFacts) -> ast.Call | None:
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


def _is_wide(dtype: ast.expr | None, ctx: FileFacts) -> str | None:
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
