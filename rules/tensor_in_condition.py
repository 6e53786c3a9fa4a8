"""TPL202: branches that ask the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Claims, Confidence, Context, Finding, Fix, Heat, Impact, Nodes, Rule, is_unreached
from perflint.api.waits import (
    COMPREHENSIONS,
    certainty_asked,
    first_of_block,
    impact_of_decision,
    is_asked,
    is_tested,
    leaves,
    only_writes_masked,
    tests,
    was_read_before,
    works_on_host,
)

from ._fixes.checks import assert_on_device, without_test
from ._fixes.decision_advice import advice_for_decision, message_of_decision


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
            for test in tests(node)
            for leaf in leaves(test)
            if is_asked(leaf, ctx) and not was_read_before(leaf, ctx) and not is_unreached(leaf, ctx)
        ]
        if not asked or works_on_host(asked[0], ctx):
            return
        sure = min(self.confidence, *(certainty_asked(leaf, ctx) or Confidence.LOW for leaf in asked))
        for at, leaf in enumerate(asked):
            if at == 0 or leaf.lineno > asked[at - 1].lineno:  # a finding for each line that waits
                yield self.finding(
                    leaf,
                    ctx,
                    message_of_decision(node, asked[at:], ctx),
                    advice=advice_for_decision(node, leaf, ctx),
                    fix=None if at else _fix(node, asked, ctx),
                    confidence=sure,
                    impact=impact_of_decision(leaf, ctx),
                    block=first_of_block(leaf, ctx),
                )


def _fix(node: ast.AST, asked: list[ast.expr], ctx: Context) -> Fix | None:
    if isinstance(node, ast.If) and only_writes_masked(node, asked[0], ctx):
        return without_test(node, ctx)
    return assert_on_device(node, ctx)
