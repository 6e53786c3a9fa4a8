"""TPL303: a full garbage collection on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule
from perflint.api.phases import is_between_phases, is_load_shedding, is_tried_out


class GcInHotLoop(Rule):
    """A full garbage collection on every step visits every Python object of the process.

    What it does

    Reports `gc.collect()` on the hot path.

    Why is this slow?

    `gc.collect()` visits all tracked objects while the device is idle. Tensors are freed by reference counting;
    collection matters only for reference cycles, and Python collects those by itself.

    What to do

    Delete the call. If cycles hold memory, break them (usually a closure, or an exception that keeps a frame alive),
    or collect once per epoch. To avoid pauses, call `gc.disable()` or `gc.freeze()` after set-up, and `gc.collect(1)`
    every few hundred steps.

    Fix safety

    Unsafe: without the call, cycles that hold tensors stay until Python's own collector runs. Results are the same
    bits.

    Not reported

    - Calls in an out-of-memory handler, under an every-N guard or a memory threshold, or between phases.
    - Calls with a generation argument.
    - Loops of a few steps.
    - Programs that manage collection with `gc.disable()` or `gc.freeze()`.

    Measured

    After `import torch` there are about 166,000 objects and one call takes 88 ms; with the compiler stack loaded 168
    ms; a bare interpreter takes 0.6 ms (CPython 3.11, torch 2.13).

    References

    - gc: https://docs.python.org/3/library/gc.html
    - Understanding GPU memory, reference cycles: https://pytorch.org/blog/understanding-gpu-memory-2/
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
                reason="reference cycles that hold tensors would stay until Python collects by itself",
            )
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase} and visits every Python object of the process each time.",
            advice="Delete it, or collect once per epoch: reference counting frees tensors without it.",
            fix=fix,
        )


def _manages_collection(ctx: Context) -> bool:
    return any(call.func == "gc.disable" for facts in ctx.summary.functions.values() for call in facts.calls)
