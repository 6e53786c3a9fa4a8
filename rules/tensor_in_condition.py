"""TPL202: branches that ask the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Heat, Impact, Nodes, Rule, callee_name, is_unreached

from ._shared.asking import COMPREHENSIONS, certainty_asked, is_asked, is_tested, leaves, read_by_helper, tests
from ._shared.read_twice import read_before
from ._shared.waits import in_forward, works_on_host


class TensorInCondition(Rule):
    """A branch on a device tensor makes the host wait for the value before it can go on.

    Why it is slow
    `if`, `while`, `assert`, `and`, `or`, `not` and the conditional expression turn a tensor into a Python bool. For a
    device tensor that is one wait until all work queued before has run, for each tensor that is asked. Inside a
    forward it happens once per layer, and the device idles until the host has queued more. `assert` does so as well.

    What to write instead
    Compute both and choose on the device: `torch.where(mask, a, b)`, `masked_fill`, or multiply by the mask; an empty
    mask changes nothing then, so `if mask.any():` can go. Ask about shapes, lengths or configuration, which the host
    knows. Checks: `torch._assert_async(condition)`, or every N steps, or behind a debugging switch.

    When to leave it
    Tests of shapes, sizes, dtypes, `is None`, lengths, Python numbers and flags, tensors on the CPU, checks under an
    every-N guard, values that the test before has asked for or that were read just before: perflint is silent there.
    A loop that must stop when the device says so has to ask; it can ask every few turns. Under `torch.compile` an
    `assert` becomes an asynchronous check; an `if` cuts the graph.

    Fix safety
    There is no automatic fix: skipping work for an empty mask and computing with it can differ where values are not
    finite, and a check that comes later changes where a run stops.
    """

    code, name = "TPL202", "tensor-in-condition"
    impact = Impact.MEDIUM
    listens = (Nodes(ast.If, ast.While, ast.Assert, ast.IfExp, ast.BoolOp, *COMPREHENSIONS),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.BoolOp) and is_tested(node, ctx):
            return
        asked = [
            leaf
            for test in (*tests(node), *_tested_later(node, ctx))
            for leaf in leaves(test)
            if is_asked(leaf, ctx) and not _was_read(leaf, ctx) and not is_unreached(leaf, ctx)
        ]
        if not asked or works_on_host(asked[0], ctx):
            return
        yield self.finding(
            asked[0],
            ctx,
            _message(node, asked, ctx),
            advice=_advice(node, asked[0], ctx),
            confidence=min(self.confidence, *(certainty_asked(leaf, ctx) or Confidence.LOW for leaf in asked)),
            impact=Impact.HIGH if in_forward(asked[0], ctx) else None,
        )


def _tested_later(node: ast.AST, ctx: Context) -> Iterator[ast.expr]:
    """`begins = padded and mask[0].all()` and then `if not begins`: what stands last is asked there."""
    statement = ctx.tree.parent(node) if isinstance(node, ast.BoolOp) else None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(node, ast.BoolOp) or not isinstance(target, ast.Name):
        return
    last = node.values[-1]
    if not (isinstance(last, ast.Call) and isinstance(last.func, ast.Attribute) and last.func.attr in ("any", "all")):
        return
    around = ctx.tree.function_of(node) or ctx.tree.module
    if any(
        isinstance(leaf, ast.Name) and leaf.id == target.id
        for part in ctx.walk(around)
        if isinstance(part, (ast.If, ast.While, ast.Assert)) and part.lineno > node.lineno
        for leaf in leaves(part.test)
    ):
        yield last


#: Tests of a value for what is wrong with it.
_SOUNDNESS = frozenset({"isnan", "isinf", "isfinite"})


def _was_read(leaf: ast.expr, ctx: Context) -> bool:
    """`print(loss.item())` and then `if loss < 0.05`: the host has just waited for the loss."""
    sides = [leaf.left, *leaf.comparators] if isinstance(leaf, ast.Compare) else [leaf]
    values = [side for side in sides if ctx.kind(side).is_tensor]
    if isinstance(leaf, ast.Call) and callee_name(leaf) in _SOUNDNESS:
        values = leaf.args[:1] or ([leaf.func.value] if isinstance(leaf.func, ast.Attribute) else [])
    return bool(values) and all(read_before(leaf, value, ctx) for value in values)


def _message(node: ast.AST, asked: list[ast.expr], ctx: Context) -> str:
    statement = {ast.While: "loop", ast.Assert: "assert"}.get(type(node), "branch")
    text = ctx.text(asked[0])
    short = text if len(text) <= 60 else f"{text[:57]}..."
    helped = any(read_by_helper(part, ctx) is not None for part in ctx.walk(asked[0]) if isinstance(part, ast.expr))
    is_tensor = "reads" if helped else "is"
    words = (
        f"`{short}` {is_tensor} a device tensor, and this {statement} {ctx.heat(asked[0]).phrase}: the host waits for "
        "its value."
    )
    if len(asked) > 1:
        words += f" {len(asked)} tensors are asked here, each with a wait of its own."
    return words


def _advice(node: ast.AST, leaf: ast.expr, ctx: Context) -> str:
    last = node.body[-1] if isinstance(node, ast.If) else None
    if isinstance(node, ast.Assert):
        return f"Check every N steps or behind a debugging switch, or use `torch._assert_async({ctx.text(leaf)})`."
    if isinstance(last, ast.Raise):
        return "Check every N steps or behind a debugging switch, or use `torch._assert_async` with what has to hold."
    if isinstance(node, ast.While) or isinstance(last, ast.Break):
        return "Ask every few turns, or bound the number of turns by what the host knows."
    if isinstance(leaf, ast.Call) and isinstance(leaf.func, ast.Attribute) and leaf.func.attr in ("any", "all"):
        return "Do the masked work always (`torch.where`, `masked_fill`): with an empty mask it changes nothing."
    return "Choose on the device with `torch.where`, or ask about something the host knows."
