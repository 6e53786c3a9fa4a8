"""TPL209: values read from the device on every step and used on few."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Claims, Context, Finding, Fix, Heat, Impact, Nodes, Rule, walk
from perflint.api.aliases import is_written_in
from perflint.api.waits import READ_NAMES, GuardedUse, device_read, is_exceptional, used_under_guard, works_on_host


class UnusedMetricWork(Rule):
    """A value is read from the device on every step, but is used only on the few steps that log.

    What it does

    Reports reads such as `loss.item()` whose result only a guarded branch (log, save, evaluate) uses.

    Why is this slow?

    The read blocks the host until all queued GPU work has finished. On all other steps nothing uses the number.

    What to do

    Move the read under the guard: `if step % log_every == 0: print(loss.item())`.

    Fix safety

    Unsafe: the read moves to a later line, where the tensor could have been modified in place, and device errors
    surface later. Otherwise same bits.

    Not reported

    - Values that enter a running mean or a list on every step (sync-in-hot-loop reports those).

    Known limitations

    A read that deliberately limits how far the host runs ahead is reported. Make that explicit instead.

    References

    - `torch.Tensor.item`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html
    """

    code, name = "TPL209", "unused-metric-work"
    numerics = "same bits"
    impact = Impact.HIGH
    listens = (Calls(*READ_NAMES), Nodes(ast.Subscript))
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("read", "to-host")

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.Call, ast.Subscript))
        read = device_read(node, ctx)
        if read is None or works_on_host(node, ctx) or is_exceptional(node, ctx):
            return
        found = used_under_guard(node, ctx)
        if found is None:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase} and synchronizes, but only `if "
            f"{_short(ctx.text(found.guard.test))}` uses `{found.name}`.",
            advice=f"Move it under that `if` on line {found.guard.lineno}.",
            fix=_fix(found, ctx),
            confidence=min(self.confidence, read.certainty),
            related=(ctx.hop(found.guard, f"where `{found.name}` is used"),),
        )


def _fix(found: GuardedUse, ctx: Context) -> Fix | None:
    names = {part.id for part in walk(found.statement.value) if isinstance(part, ast.Name)}
    block = ctx.tree.parent(found.statement)
    between = [item for item in getattr(block, "body", ()) if found.statement.lineno < item.lineno < found.guard.lineno]
    if any(names & ctx.inference.flow.names_written(item) for item in between):
        return None
    text = ctx.tree.text(found.statement)
    read = [part for part in walk(found.statement.value) if isinstance(part, ast.Name)]
    if "\n" in text or any(is_written_in(part, item, ctx) for item in between for part in read):
        return None
    if _outlives_step(read, found, ctx) and any(isinstance(part, ast.Call) for item in between for part in walk(item)):
        return None  # what is read of a model, or of what is kept, may change with each call
    return Fix(
        "Read it only on the steps that use it",
        Applicability.UNSAFE,
        (
            *ctx.edit.delete_statement(found.statement),
            ctx.edit.insert_before(found.guard.body[0], text),
        ),
        reason="the tensor could be modified in place before the value is read",
    )


def _outlives_step(read: list[ast.Name], found: GuardedUse, ctx: Context) -> bool:
    """Whether something that is read was there before this turn of the loop: a module, an attribute of `self`."""
    loops = ctx.loops(found.statement)
    bound = ctx.inference.flow.names_written(loops[0]) if loops else frozenset()
    return any(part.id not in bound and ctx.target(part) is None for part in read)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
