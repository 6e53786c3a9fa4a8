"""TPL504: a module moved to its device again on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Rule,
    Tag,
    argument,
    callee_name,
)
from perflint.api.phases import is_on_a_mac
from perflint.api.transfers import comes_and_goes, goes_to_device, is_another_module, is_any_argument, is_moved_around

#: Modules of torch that hold others.
_CONTAINERS = frozenset(
    "Module Sequential ModuleList ModuleDict Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer "
    "TransformerDecoderLayer DataParallel DistributedDataParallel ParameterDict ParameterList".split()
)


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
        if not (_follows(node) or goes_to_device(node, ctx)) or not _is_module(module, node, statement, ctx):
            return
        if not goes_to_device(node, ctx):
            return
        if (
            is_another_module(module, node, statement, ctx)
            or comes_and_goes(module, ctx)
            or _is_where_needed(node, ctx)
        ):
            return
        if is_moved_around(module, node, ctx) or is_any_argument(module, node, ctx) or _goes_by_table(node):
            return
        if _is_a_layer(module, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase}: after the first step it is a no-op that still traverses "
            "every parameter.",
            advice=f"Move `{ctx.text(module)}` once, where it is built or before the loop.",
            fix=_before_the_loop(node, statement, ctx),
        )


def _is_module(module: ast.expr, node: ast.Call, statement: ast.stmt, ctx: Context) -> bool:
    if not isinstance(module, (ast.Name, ast.Attribute)):
        return False
    kind = ctx.kind(module)
    if kind.tag is Tag.MODULE:
        return True
    # A tensor's move hands back a copy: a result that nobody takes says that this is a module.
    return not kind.known and isinstance(statement, ast.Expr) and statement.value is node


def _is_a_layer(module: ast.expr, ctx: Context) -> bool:
    """Whether it is a single layer of torch, which is walked in no time."""
    made = ctx.refs(module) if isinstance(module, (ast.Name, ast.Attribute)) else ()
    return bool(made) and all(
        ref.name.startswith("torch.nn.") and ref.name.rpartition(".")[2] not in _CONTAINERS for ref in made
    )


def _follows(node: ast.Call) -> bool:
    """`x.to(y.device)`"""
    given = argument(node, 0, "device")
    return callee_name(node) == "to" and isinstance(given, ast.Attribute) and given.attr == "device"


def _goes_by_table(node: ast.Call) -> bool:
    """`module.to(state["encoder"]["device"])`: one of several states is restored, and the next may be another."""
    given = node.args[0] if node.args else None
    return isinstance(given, ast.Subscript) and isinstance(given.value, ast.Subscript)


def _is_where_needed(node: ast.Call, ctx: Context) -> bool:
    """Whether the move stands under a test of where the module is: `if p.device != x.device`."""
    return any(word in ctx.text(test) for test, _ in ctx.conditions(node) for word in ("device", "offload"))


def _before_the_loop(node: ast.Call, statement: ast.stmt, ctx: Context) -> Fix | None:
    if not (isinstance(statement, ast.Expr) and statement.value is node):
        return None
    outermost: ast.stmt | None = None
    for loop in ctx.loops(node):
        if not ctx.inference.flow.is_invariant(node, loop, lambda call: call is node):
            break
        outermost = loop
    if outermost is None or ctx.tree.parent(statement) not in ctx.loops(node):
        return None
    return Fix(
        "Move the module once before the loop",
        Applicability.UNSAFE,
        (ctx.edit.insert_before(outermost, ctx.tree.text(statement)), *ctx.edit.delete_statement(statement)),
        reason="the module is moved even if the loop has no iterations",
    )
