"""TPL201: values read from the device on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Claims,
    Context,
    Finding,
    Heat,
    Impact,
    Nodes,
    Rule,
    Tag,
    callee_name,
)
from perflint.api.waits import (
    NUMBER_NAMES,
    READ_NAMES,
    Read,
    device_number,
    device_read,
    first_of_block,
    formatter_around,
    impact_at,
    impact_of_decision,
    in_forward,
    in_step,
    is_beside_generation,
    is_exceptional,
    is_kept_until_end,
    is_wanted_on_host,
    may_be_tensor,
    numbers_of,
    only_last_counts,
    read_before,
    region_of,
    roots,
    stored_on_host,
    used_under_guard,
    works_on_host,
)
from perflint.api.words import short_text

from ._fixes.put_off import read_after_loop
from ._fixes.read_advice import advice_for_number, advice_for_read


class SyncInHotLoop(Rule):
    """Reading a device tensor's value on the host synchronizes on every step.

    What it does

    Reports `.item()`, `.tolist()`, `.cpu()`, `float(t)`, `int(t)`, `bool(t)`, `min`, `max`, `sorted`, `range`, `math`
    functions, slice bounds, writes into host tensors and `loss.data[0]` of old torch that read a device tensor on the
    hot path.

    Why is this slow?

    The host queues work far ahead of the device. A read blocks the host until all queued GPU work has finished. The
    few bytes are negligible; the lost lead is not: the device is idle while the host queues the next kernels. A read
    costs most in the middle of a step, in a forward pass, and where there are several. It costs least as the last
    operation of a step.

    What to do

    Keep the value a tensor as long as possible. Accumulate with `total += loss.detach()` and read once after the
    loop. Collect with `losses.append(loss.detach())` and read `torch.stack(losses).tolist()` at the end. Read logged
    values only on the steps that log. Read several values of one step together: `torch.stack([a, b]).tolist()`.
    `sum([t, u])`, `abs(t)`, `torch.clamp(max=t)` and `clip_grad_norm_` do not synchronize.

    Fix safety

    Unsafe, with the same bits: a sum or list stays on the device until the loop ends or a guard in it logs, so until
    then the name holds tensors. The device sums in float64 as Python does, which MPS does not support. All reads of a
    block are put off together. There is no fix where the loop looks at the numbers on every step.

    Not reported

    - Tensors on the CPU, numpy scalars and Python numbers (0.3 us).
    - Reads under an every-N guard, once per epoch, or on an error path.
    - Reads just behind another wait that the program needs, in the same function or in its callers, and reads just
      before results are copied to the host.
    - Generation whose state is on the host: one read of all values on each iteration.
    - Values that the program hands on from the host: an action for an environment, outputs of an inference loop that
      works with each of them there (arrays that it only collects are of low impact), rows for a server.
    - Results of an evaluation that are read after its loop over batches.

    Known limitations

    A value that the algorithm needs on the host, such as a stopping test, must be read. Read it once.

    Measured

    Each read is one synchronization (counted as `aten::_local_scalar_dense` calls on torch 2.13), and so is each
    slice bound that is a device tensor: `x[i, : lengths[i]]`.

    References

    - `torch.Tensor.item`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html
    - `torch.Tensor.tolist`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.tolist.html
    - Performance tuning guide, avoid unnecessary CPU-GPU synchronization:
      https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    """

    code, name = "TPL201", "sync-in-hot-loop"
    impact = Impact.HIGH
    listens = (Calls(*READ_NAMES, *NUMBER_NAMES), Nodes(ast.Slice, ast.Subscript))
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("read", "to-host", adopts=("read", "to-host"))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        read = device_read(node, ctx)
        if read is None and (not isinstance(node, ast.Call) or callee_name(node) in NUMBER_NAMES):
            found = list(self._needed(node, ctx))
            yield from found or self._stored(node, ctx)
            return
        assert isinstance(node, (ast.Call, ast.Subscript))
        if read is None or works_on_host(node, ctx) or is_exceptional(node, ctx):
            return
        if formatter_around(node, ctx) is not None or used_under_guard(node, ctx) is not None:
            return  # tensor-formatting and unused-metric-work say it better
        if read_before(node, read.value, ctx, tests=True) or _is_read_of(ctx.tree.parent(node), node, ctx):
            return
        is_kept = is_kept_until_end(node, read, ctx)
        if is_beside_generation(node, read, ctx) or (is_wanted_on_host(node, read, ctx) and not is_kept):
            return
        fix, why_not = read_after_loop(node, ctx)
        advice = advice_for_read(node, read, ctx, forward=in_forward(node, ctx))
        yield self.finding(
            node,
            ctx,
            _message(node, read, ctx),
            advice=f"{advice} Not fixed automatically: {why_not}." if why_not else advice,
            fix=fix,
            confidence=min(self.confidence, read.certainty),
            impact=Impact.LOW if is_kept else impact_of_decision(node, ctx),
            block=first_of_block(node, ctx),
        )

    def _needed(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        """`x[i, : lengths[i]]`, `torch.zeros(lengths.max())`: Python asks the device for the number."""
        read = device_number(node, ctx)
        if read is None or not in_step(node, ctx):
            return
        if works_on_host(node, ctx) or is_exceptional(node, ctx):
            return
        if isinstance(node, ast.Slice) and _was_cut_before(node, read, ctx):
            return
        cut = ctx.tree.parent(node)
        cut = ctx.tree.parent(cut) if isinstance(cut, ast.Tuple) else cut
        what = "each device tensor in" if ctx.kind(read.value).tag is Tag.SEQUENCE else "the device tensor"
        at = cut if isinstance(node, ast.Slice) and isinstance(cut, ast.Subscript) else node
        yield self.finding(
            at,
            ctx,
            f"`{short_text(at, ctx)}` reads {what} `{ctx.text(read.value)}` as a number, which "
            f"{ctx.heat(node).phrase}: the host blocks until all queued GPU work has finished.",
            advice=advice_for_number(node, read, ctx),
            confidence=min(self.confidence, read.certainty),
            impact=impact_at(node, ctx),
            block=first_of_block(node, ctx),
        )

    def _stored(self, place: ast.AST, ctx: Context) -> Iterator[Finding]:
        """`kept[i] = scores.max()`, where `kept` is a tensor of the host: what is written there is copied down."""
        read = stored_on_host(place, ctx)
        if read is None or not in_step(place, ctx):
            return
        assert isinstance(place, ast.Subscript)
        if works_on_host(place, ctx) or is_exceptional(place, ctx):
            return
        held = ctx.text(place.value)
        yield self.finding(
            place,
            ctx,
            f"`{short_text(place, ctx)} = ...` copies a device tensor into `{held}`, a host tensor, which "
            f"{ctx.heat(place).phrase}: the host blocks until all queued GPU work has finished.",
            advice=f"Make `{held}` on the device: `device={ctx.text(read.value)}.device`."
            if isinstance(read.value, ast.Name)
            else f"Make `{held}` on the device of what is written into it.",
            confidence=min(self.confidence, read.certainty),
            impact=impact_at(place, ctx),
            block=first_of_block(place, ctx),
        )


def _was_cut_before(node: ast.AST, read: Read, ctx: Context) -> bool:
    """Whether a number of the same tensor is needed before this bound: one finding tells of all."""
    assert isinstance(node, ast.Slice)
    wanted = roots(read.value)
    return any(
        (part.lineno, part.col_offset) < (node.lineno, node.col_offset)
        and any(not wanted.isdisjoint(roots(item)) and may_be_tensor(item, ctx) for item in numbers_of(part, ctx))
        for part in ctx.walk(region_of(node, ctx))
        if isinstance(part, (ast.Slice, ast.Subscript, ast.Call))
    )


def _is_read_of(outer: ast.AST | None, node: ast.expr, ctx: Context) -> bool:
    """Whether what a read gives is read at once: of `int(max(counts))` the whole is told, once."""
    if not isinstance(outer, ast.Call) or node not in outer.args:
        return False
    return device_read(node, ctx) is not None and device_read(outer, ctx) is not None


def _message(node: ast.expr, read: Read, ctx: Context) -> str:
    what = f"{'copies' if read.copies else 'reads'} a device tensor"
    what += ", though only the last is used" if only_last_counts(node, ctx) is not None else ""
    often = ctx.heat(node).phrase
    return f"`{ctx.text(node)}` {often} and {what}: the host blocks until all queued GPU work has finished."
