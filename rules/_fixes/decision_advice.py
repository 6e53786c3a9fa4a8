"""What to say of a branch that asks a tensor of the device, and what to do about it."""

from __future__ import annotations

import ast

from perflint.api import Context
from perflint.api.waits import chooses_values, kept_answer, only_writes_masked, read_by_helper


def advice_for_decision(node: ast.AST, leaf: ast.expr, ctx: Context) -> str:
    last = node.body[-1] if isinstance(node, ast.If) else None
    if isinstance(node, ast.Assert):
        return f"Check on the device: `torch._assert_async({ctx.text(leaf)})`. Or check behind a debugging switch."
    if isinstance(last, ast.Raise):
        return "Check on the device: `torch._assert_async` with what has to hold. Or check every N steps."
    if isinstance(node, ast.While) or isinstance(last, ast.Break):
        return "Test every few iterations, or bound the number of iterations by a host value."
    if isinstance(node, ast.If) and only_writes_masked(node, leaf, ctx):
        return "Do the masked work without the test: with an empty mask it changes nothing."
    if chooses_values(node):
        return "Select on the device with `torch.where`, or test a host value."
    return "Decide by a host value, or test every few iterations: the branch does not select between values."


def message_of_decision(node: ast.AST, asked: list[ast.expr], ctx: Context) -> str:
    statement = {ast.While: "loop", ast.Assert: "assert"}.get(type(node), "branch")
    text = ctx.text(asked[0])
    short = text if len(text) <= 60 else f"{text[:57]}..."
    helped = any(read_by_helper(part, ctx) is not None for part in ctx.walk(asked[0]) if isinstance(part, ast.expr))
    looks = isinstance(asked[0], ast.Compare) and isinstance(asked[0].ops[0], (ast.In, ast.NotIn))
    is_tensor = "reads a device tensor" if helped else "compares device tensors" if looks else "is a device tensor"
    words = f"`{short}` {is_tensor}: this {statement} {ctx.heat(asked[0]).phrase} and synchronizes."
    # Of what an `and` kept, one may be a tensor and the others plain numbers.
    count = len([part for part in asked if kept_answer(part, ctx) is None])
    if count > 1:
        words += f" {count} tensors are tested, and each synchronizes."
    return words
