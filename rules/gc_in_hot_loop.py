"""TPL303: a full garbage collection on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule

from ._shared.memory import is_load_shedding
from ._shared.rarely import is_between_phases, is_tried_out


class GcInHotLoop(Rule):
    """A full garbage collection on every step stops Python to visit every object alive.

    Why it is slow
    `gc.collect()` walks all tracked objects. After `import torch` alone there are some 166,000 of them and one call
    takes 88 ms; with the compiler stack loaded 168 ms; a bare interpreter needs 0.6 ms (measured on CPython 3.11 with
    torch 2.13). The device idles meanwhile. Tensors are freed by reference counting: collecting matters only for
    reference cycles, and Python finds those by itself.

    What to write instead
    Delete the call. If cycles hold memory, break them (a closure or an exception that keeps a frame alive is the
    usual one), or collect at the end of an epoch. Against pauses at bad moments: `gc.disable()` or `gc.freeze()` after
    set-up, and `gc.collect(1)` every few hundred steps.

    When to leave it
    In an out-of-memory handler, under an every-N guard or a memory threshold, between phases, with a generation
    argument, in loops of a handful of steps, or in a program that manages collection itself with `gc.disable()` or
    `gc.freeze()`: perflint is silent there.

    Fix safety
    Unsafe: deleting the call lets cycles that hold tensors live until Python's own collector runs. Results stay the
    same bits.
    """

    code, name = "TPL303", "gc-in-hot-loop"
    numerics = "same bits"
    impact = Impact.HIGH
    listens = (Calls("collect"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not ctx.is_call_of(node, "gc.collect") or node.args or node.keywords:
            return
        if ctx.program.mentions({"freeze"}, (ctx.path,)) or _manages_collection(ctx) or is_load_shedding(node, ctx):
            return
        if is_between_phases(node, ctx) or is_tried_out(node, ctx):
            return
        statement = ctx.tree.statement_of(node)
        fix = None
        if isinstance(statement, ast.Expr) and statement.value is node:
            fix = Fix(
                "Delete the collection",
                Applicability.UNSAFE,
                ctx.edit.delete_statement(statement),
                reason="reference cycles that hold tensors would live until Python collects by itself",
            )
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase} and visits every object of the process each time.",
            advice="Delete it, or collect once per epoch; tensors are freed by reference counting without it.",
            fix=fix,
        )


def _manages_collection(ctx: Context) -> bool:
    return any(call.func == "gc.disable" for facts in ctx.summary.functions.values() for call in facts.calls)
