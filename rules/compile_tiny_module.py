"""TPL403: a single layer or operation compiled on its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Context,
    Finding,
    Impact,
    Rule,
    Tag,
    Tier,
)
from perflint.api.compiled import is_compile_call
from perflint.api.gradients import single_operation


class CompileTinyModule(Rule):
    """`torch.compile` around a single layer or operation costs more than it saves.

    What it does

    Reports `torch.compile` of one layer, one operation, or a short chain of small operations.

    Why is this slow?

    Every call of compiled code checks its guards and goes through a wrapper: 30 to 40 us. A single layer has nothing
    to fuse with, and matrix products are library calls already. Compilation takes 2 to 30 seconds on top.

    What to do

    Compile the whole model, or its repeated blocks, so that the operation is fused with its neighbours.

    Fix safety

    No fix: only the author knows what to compile instead.

    Not reported

    - `flex_attention`, which must be compiled to be fast.
    - Pointwise work on millions of numbers, losses and softmax over a vocabulary.
    - Optimizer steps and repeated blocks.

    Known limitations

    The source does not show sizes, so this rule is off by default. A benchmark that compares both on purpose is
    reported too. Note that `isinstance` and `match` do not see the original class in the result of `torch.compile`.

    Measured

    Compiled against eager: `nn.Linear(32)` 4.6 times slower, `torch.relu` 22 times slower, a pointwise chain on at
    most ten thousand numbers 1.3 times slower; a chain on a million numbers 3.2 times faster, six MLP blocks 1.2
    times faster (CPU, torch 2.13). A matrix product, a mask and another product gain nothing.

    References

    - `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    """

    code, name = "TPL403", "compile-tiny-module"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    listens = (Calls("compile"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        compiled = _compiled(node, ctx)
        what = None if compiled is None else single_operation(compiled, ctx)
        if compiled is None or what is None:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` compiles only {what}: the guard checks cost more than compilation saves.",
            advice="Compile the model or block that contains it.",
        )


def _compiled(node: ast.Call, ctx: Context) -> ast.expr | None:
    if is_compile_call(node, ctx):
        return node.args[0]
    if isinstance(node.func, ast.Attribute) and not node.args and ctx.kind(node.func.value).tag is Tag.MODULE:
        return node.func.value
    return None
