"""TPL202: branches that ask the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Claims,
    Confidence,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Nodes,
    Rule,
    callee_name,
    is_unreached,
)
from perflint.api.waits import (
    COMPREHENSIONS,
    certainty_asked,
    first_of_block,
    impact_of_decision,
    is_asked,
    is_tested,
    leaves,
    only_writes_masked,
    read_before,
    read_by_helper,
    tested_later,
    tests,
    works_on_host,
)

from ._fixes.checks import assert_on_device, without_test
from ._fixes.decision_advice import advice_for_decision


class TensorInCondition(Rule):
    """Branching on a device tensor synchronizes: the host blocks until the value is known.

    What it does

    Reports `if`, `while`, `assert`, `and`, `or`, `not` and conditional expressions that convert a device tensor to a
    Python bool on the hot path.

    Why is this slow?

    The conversion blocks the host until all queued GPU work has finished, once per tensor. In a forward pass this
    happens once per layer. The device is idle until the host has queued more work.

    What to do

    If the condition selects between values, compute both and write `torch.where(mask, a, b)`. An `if mask.any():`
    that guards only masked writes (`x[mask] = 0`) can go: with an empty mask they change nothing. Test shapes,
    lengths or configuration instead, which the host knows. For checks, use `torch._assert_async(condition)`, or check
    every N steps or under a debug option.

    Fix safety

    Unsafe, with the same bits where no check fails: an assertion, or an `if` that only raises with a fixed text,
    becomes `torch._assert_async`, which raises RuntimeError later and has no MPS version. A block that only writes by
    the mask that its test reduces loses the test: with an empty mask the values are computed all the same. Other
    branches have no fix: computing both sides can differ for values that are not finite.

    Not reported

    - Tests of shapes, sizes, dtypes, lengths, `is None`, Python numbers and flags.
    - Tensors on the CPU.
    - Checks under an every-N guard.
    - Values that an earlier test or read has already synchronized on.

    Known limitations

    A loop that must stop on a device value has to read it; it can read every few iterations. Under `torch.compile` an
    `assert` becomes an asynchronous check, and an `if` is a graph break.

    References

    - `torch.where`: https://docs.pytorch.org/docs/stable/generated/torch.where.html
    - Performance tuning guide, avoid unnecessary CPU-GPU synchronization:
      https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    """

    code, name = "TPL202", "tensor-in-condition"
    impact = Impact.MEDIUM
    listens = (Nodes(ast.If, ast.While, ast.Assert, ast.IfExp, ast.BoolOp, *COMPREHENSIONS),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("read")

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.BoolOp) and is_tested(node, ctx):
            return
        asked = [
            leaf
            for test in (*tests(node), *tested_later(node, ctx))
            for leaf in leaves(test)
            if is_asked(leaf, ctx) and not _was_read(leaf, ctx) and not is_unreached(leaf, ctx)
        ]
        if not asked or works_on_host(asked[0], ctx):
            return
        yield self.finding(
            asked[0],
            ctx,
            _message(node, asked, ctx),
            advice=advice_for_decision(node, asked[0], ctx),
            fix=_fix(node, asked, ctx),
            confidence=min(self.confidence, *(certainty_asked(leaf, ctx) or Confidence.LOW for leaf in asked)),
            impact=impact_of_decision(asked[0], ctx),
            block=first_of_block(asked[0], ctx),
        )


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
    words = f"`{short}` {is_tensor} a device tensor: this {statement} {ctx.heat(asked[0]).phrase} and synchronizes."
    if len(asked) > 1:
        words += f" {len(asked)} tensors are tested, and each synchronizes."
    return words


def _fix(node: ast.AST, asked: list[ast.expr], ctx: Context) -> Fix | None:
    if isinstance(node, ast.If) and only_writes_masked(node, asked[0], ctx):
        return without_test(node, ctx)
    return assert_on_device(node, ctx)
