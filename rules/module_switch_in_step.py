"""TPL504: a module moved to its device again on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule
from perflint.api.phases import is_on_a_mac
from perflint.api.transfers import (
    comes_and_goes,
    follows_another,
    goes_by_table,
    goes_to_device,
    is_a_layer,
    is_another_module,
    is_any_argument,
    is_moved_around,
    is_where_needed,
    may_be_module,
)

from ._fixes.move_before_loop import move_before_loop


class ModuleSwitchInStep(Rule):
    """A module is moved on every step to the device it is already on.

    What it does

    Reports `module.to(device)` and `module.cuda()` on the hot path.

    Why is this slow?

    After the first call this is a no-op, but it still traverses every submodule, parameter and buffer.

    What to do

    Move the module once, where it is built or before the loop.

    Fix safety

    Unsafe: the module moves before the loop, even if the loop has no iterations. Same bits.

    Not reported

    - Modules that are offloaded to save memory (moved back to the host elsewhere).
    - Modules that the same iteration creates, and single layers.
    - Moves that happen lazily, under a test of the device or of Metal, per epoch, before an evaluation, or before a
      loop of training steps.
    - Tensors.
    - `train()` and `eval()`, which cost a third of it and are often needed.

    Measured

    3.6 ms for a module of 400 submodules and 400 parameters; `next(module.parameters()).device` takes 4 us (CPU).

    References

    - torch.nn.Module: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to
    """

    code, name = "TPL504", "module-switch-in-step"
    numerics = "same bits"
    impact = Impact.LOW
    listens = (Calls("to", "cuda"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or ctx.guards(node) or is_on_a_mac(node, ctx):
            return
        module = node.func.value
        statement = ctx.tree.statement_of(node)
        # `x.to(y.device)`: where `y` is takes long to find out, and `x` is hardly ever a module.
        if not (follows_another(node) or goes_to_device(node, ctx)) or not may_be_module(module, node, statement, ctx):
            return
        if not goes_to_device(node, ctx):
            return
        if is_another_module(module, node, statement, ctx) or comes_and_goes(module, ctx) or is_where_needed(node, ctx):
            return
        if is_moved_around(module, node, ctx) or is_any_argument(module, node, ctx) or goes_by_table(node):
            return
        if is_a_layer(module, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase}: after the first step it is a no-op that still traverses "
            "every parameter.",
            advice=f"Move `{ctx.text(module)}` once, where it is built or before the loop.",
            fix=move_before_loop(node, statement, ctx),
        )
