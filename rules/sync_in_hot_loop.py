"""TPL201: values read from the device on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Claims,
    Context,
    Effect,
    Finding,
    Fix,
    Heat,
    Impact,
    Nodes,
    Rule,
    callee_name,
    counts,
    pattern,
    walk,
)

from ._shared.bounds import NUMBER_NAMES, device_number, may_be_tensor, numbers_of, roots
from ._shared.device_queue import first_of_block, impact_at
from ._shared.generating import beside_generation
from ._shared.guarded import used_under_guard
from ._shared.memory import is_load_shedding
from ._shared.moved import goes_back
from ._shared.printing import formatter_around
from ._shared.read_twice import read_after, read_before
from ._shared.value_uses import Use, check_around, use_of
from ._shared.waits import (
    READ_NAMES,
    Read,
    device_read,
    in_forward,
    is_exceptional,
    is_loss,
    region_of,
    works_on_host,
)
from ._shared.wanted_on_host import goes_to_replay, is_choice
from ._shared.wording import short_text

#: Functions that make texts, and what limits how many tokens they make.
_DECODES = pattern(r"generat|decode|translat|sample|beam|search")
_LENGTH_LIMIT = pattern(r"max_(?:\w+_)?(?:len|length|tokens)(?:_|\b)")
_SHOWS = pattern(r"(?:^|[._])(?:p?bar|tqdm|progress)$")
_WRITERS = frozenset({"write", "writelines", "writerow", "writerows"})
_STEP_ENDS = frozenset({"backward", "step", "scale"})


class SyncInHotLoop(Rule):
    """Reading a device tensor's value on the host synchronizes on every step.

    What it does

    Reports `.item()`, `.tolist()`, `.cpu()`, `float(t)`, `int(t)`, `bool(t)`, `min`, `max`, `sorted`, `range`, `math`
    functions and slice bounds that read a device tensor on the hot path.

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

    Unsafe: the sum keeps the tensor's precision instead of Python's float64, and the name holds a tensor until the
    loop ends. Equal to rounding.

    Not reported

    - Tensors on the CPU, numpy scalars and Python numbers (0.3 us).
    - Reads under an every-N guard, once per epoch, or on an error path.
    - A value that was read just before, with nothing queued since.
    - Values that the program hands on from the host: an action for an environment, outputs of an inference loop, rows
      for a server.
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
        if not isinstance(node, ast.Call) or callee_name(node) in NUMBER_NAMES:
            yield from self._needed(node, ctx)
            return
        read = device_read(node, ctx)
        if read is None or works_on_host(node, ctx) or is_exceptional(node, ctx):
            return
        if formatter_around(node, ctx) is not None or used_under_guard(node, ctx) is not None:
            return  # tensor-formatting and unused-metric-work say it better
        if read_before(node, read.value, ctx, tests=True) or _is_read_of(ctx.tree.parent(node), node, ctx):
            return
        others = _other_reads(node, ctx)
        copies = read.copies and not _is_single_number(node, ctx)
        if (copies and (_hands_on(node, others, ctx) or goes_to_replay(node, ctx))) or goes_back(node, ctx):
            return
        if (
            _is_around_decoding(node, ctx)
            or _sums_up_evaluation(node, ctx)
            or _is_for_export(node, ctx)
            or is_choice(read.value, ctx)
            or (
                ctx.role(node) in ("texts", "eval", "batches")
                and not in_forward(node, ctx)
                and beside_generation(node, ctx)
            )
            or (read.copies and is_load_shedding(node, ctx))
            or _is_written_down(node, ctx)
        ):
            return
        forward = in_forward(node, ctx)
        yield self.finding(
            node,
            ctx,
            _message(node, read, len(others), ctx),
            advice=_advice(node, read, ctx, forward=forward),
            fix=_fix(node, ctx),
            confidence=min(self.confidence, read.certainty),
            impact=impact_at(node, ctx),
            block=first_of_block(node, ctx),
        )

    def _needed(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        """`x[i, : lengths[i]]`, `torch.zeros(lengths.max())`: Python asks the device for the number."""
        read = device_number(node, ctx)
        if read is None or (ctx.role(node) not in ("train", "batches") and not in_forward(node, ctx)):
            return
        if works_on_host(node, ctx) or is_exceptional(node, ctx):
            return
        if isinstance(node, ast.Call):
            yield self._sized(node, read, ctx)
            return
        if isinstance(node, ast.Subscript):
            yield self._picked(node, read, ctx)
            return
        if _was_cut_before(node, read, ctx):
            return
        cut = ctx.tree.parent(node)
        cut = ctx.tree.parent(cut) if isinstance(cut, ast.Tuple) else cut
        yield self.finding(
            cut if isinstance(cut, ast.Subscript) else node,
            ctx,
            f"`{ctx.text(read.value)}` says where to cut, which {ctx.heat(node).phrase}: it is a device tensor, so the "
            "host waits there until the device has done all that was queued.",
            advice="Read the bounds of all rows at once before the loop (`.tolist()`), or take the parts by a mask or "
            "by `gather`, on the device."
            if ctx.loops(node)
            else "Take the part by a mask or by `gather`, on the device, or keep the number on the host all along.",
            confidence=min(self.confidence, read.certainty),
            impact=Impact.HIGH if in_forward(node, ctx) or ctx.loops(node) else Impact.MEDIUM,
        )

    def _picked(self, node: ast.Subscript, read: Read, ctx: Context) -> Finding:
        """`weights[expert]`, with one integer on the device."""
        index = ctx.text(read.value)
        return self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx)}` reads the device tensor `{index}` as a number, which "
            f"{ctx.heat(node).phrase}: the host blocks until all queued GPU work has finished.",
            advice=f"Read all positions of the step with one `.tolist()`, or select on the device: "
            f"`{short_text(node.value, ctx)}.index_select(0, {index}.view(1))`.",
            confidence=min(self.confidence, read.certainty),
            impact=impact_at(node, ctx),
            block=first_of_block(node, ctx),
        )

    def _sized(self, node: ast.Call, read: Read, ctx: Context) -> Finding:
        """`torch.zeros(k)`, `x.topk(k)`, `torch.tensor([a.sum(), b.sum()])`."""
        number = ctx.text(read.value)
        if callee_name(node) in counts.OF_LISTS:
            advice = f"Stack the device tensors (`torch.stack([...])`) instead of reading `{number}` on the host."
        else:
            advice = _advice_for(Use.SIZE, node, read, ctx)
        return self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx)}` reads the device tensor `{number}` as a number, which "
            f"{ctx.heat(node).phrase}: the host blocks until all queued GPU work has finished.",
            advice=advice,
            confidence=min(self.confidence, read.certainty),
            impact=impact_at(node, ctx),
            block=first_of_block(node, ctx),
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


def _is_written_down(node: ast.Call, ctx: Context) -> bool:
    """Whether a loop goes through what is read to write each row to a file."""
    if ctx.role(node) == "train":
        return False
    child: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.For):
            return child is outer.iter and any(
                isinstance(part, ast.Call)
                and callee_name(part) in _WRITERS
                and isinstance(part.func, ast.Attribute)
                and not _SHOWS.search(ctx.text(part.func.value))
                for part in walk(outer)
            )
        if isinstance(outer, ast.stmt):
            return False
        child = outer
    return False


def _is_read_of(outer: ast.AST | None, node: ast.Call, ctx: Context) -> bool:
    """Whether what a read gives is read at once: of `int(max(counts))` the whole is told, once."""
    if not isinstance(outer, ast.Call) or node not in outer.args:
        return False
    return device_read(node, ctx) is not None and device_read(outer, ctx) is not None


def _message(node: ast.Call, read: Read, others: int, ctx: Context) -> str:
    what = "copies" if read.copies else "reads"
    words = (
        f"`{ctx.text(node)}` {ctx.heat(node).phrase} and {what} a device tensor, so the host waits there until the "
        "device has done all that was queued."
    )
    if others:
        words += f" It is one of {others + 1} such waits here."
    return words


def _advice(node: ast.Call, read: Read, ctx: Context, *, forward: bool) -> str:
    value = " ".join(ctx.edit.receiver(read.value).split()).removesuffix(".detach()")
    statement = ctx.tree.statement_of(node)
    use = use_of(node, ctx)
    if use is not Use.OTHER:
        return _advice_for(use, node, read, ctx)
    if read.copies:
        return (
            f"Keep `{value}` on the device and copy once after the loop, or copy with `non_blocking=True` into pinned "
            "memory and read it later."
        )
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return f"Add `{value}.detach()` instead, and read the sum once after the loop."
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.Call) and callee_name(parent) == "append":
        return f"Append `{value}.detach()`, and read all at once after the loop: `torch.stack(...).tolist()`."
    if forward:
        return f"Keep `{value}` a tensor, and compute with it on the device."
    return f"Keep `{value}` on the device, and read it only on the steps that need the number."


def _advice_for(use: Use, node: ast.Call, read: Read, ctx: Context) -> str:
    """What to do about a value that the host needs: as a tensor it would wait where it is used."""
    if use is Use.CHECK:
        return f"Check on the device with {_check_on_device(node, read, ctx)}, or only behind a debugging switch."
    if use is Use.SIZE:
        return (
            "A size has to be known on the host: compute it there from what the host has (lengths of the inputs), use "
            "a fixed size with padding, or read all sizes of the step with one `.tolist()`."
        )
    if use is Use.LOOKUP:
        return (
            "The host needs the number for its look-up: read all numbers of the step with one `.tolist()`, or keep "
            "what is looked up in a tensor and index that with the tensor."
        )
    return (
        "The host needs the value to decide: test it every few iterations, decide by what the host knows, or compute "
        "both results and choose with `torch.where`."
    )


def _check_on_device(node: ast.Call, read: Read, ctx: Context) -> str:
    """`torch._assert_async(loss < 10)` for `assert loss.item() < 10`."""
    check = check_around(node, ctx)
    test = check.test if isinstance(check, ast.Assert) else None
    if test is node:
        return f"`torch._assert_async({ctx.text(read.value)})`"
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and node in (test.left, *test.comparators):
        tensor = " ".join(ctx.edit.receiver(read.value).split())
        return f"`torch._assert_async({ctx.text(test).replace(ctx.text(node), tensor)})`"
    return "`torch._assert_async` of what has to hold"


def _other_reads(node: ast.Call, ctx: Context) -> list[ast.Call]:
    """Other reads of the device in the same turn of the loop, those that are printed included."""
    return [
        part
        for part in ctx.walk(region_of(node, ctx))
        if isinstance(part, ast.Call)
        and part is not node
        and callee_name(part) in READ_NAMES
        and ctx.heat(part) >= Heat.STEP
        and (read := device_read(part, ctx)) is not None
        and not read_before(part, read.value, ctx, tests=True)
        and not _is_of_other_arm(part, node, ctx)
    ]


def _is_of_other_arm(part: ast.AST, node: ast.AST, ctx: Context) -> bool:
    """Whether one `if` lets only one of two nodes run."""
    below = {id(outer): child for outer, child in _ways_up(node, ctx)}
    for outer, child in _ways_up(part, ctx):
        if id(outer) in below:
            return {_arm(outer, child), _arm(outer, below[id(outer)])} == {"body", "orelse"}
    return False


def _arm(outer: ast.AST, child: ast.AST) -> str:
    """Which arm of an `if` a node is; "" for its test, which both follow, and for anything else."""
    for name in ("body", "orelse") if isinstance(outer, (ast.If, ast.IfExp)) else ():
        arm = getattr(outer, name)
        if child is arm or (isinstance(arm, list) and child in arm):
            return name
    return ""


def _ways_up(node: ast.AST, ctx: Context) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What is around a node, innermost first, each with the child that leads to the node."""
    child = node
    for outer in ctx.tree.ancestors(node):
        yield outer, child
        child = outer


def _hands_on(node: ast.Call, others: list[ast.Call], ctx: Context) -> bool:
    """Whether a whole tensor is moved because it leaves torch or the loop: results have to reach the host somehow, but
    once per step, not once per sample of it.
    """
    parent = ctx.tree.parent(node)
    to_numpy = (isinstance(parent, ast.Attribute) and parent.attr == "numpy") or _becomes_array(parent, ctx)
    if in_forward(node, ctx):
        return to_numpy or isinstance(parent, ast.Return) or _is_put_away(node, ctx)
    if ctx.role(node) == "train":
        return _is_iterated(node, ctx) or (not others and to_numpy and not _is_of_number(node, ctx))
    return not others or len([loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]) < 2


def _is_single_number(node: ast.Call, ctx: Context) -> bool:
    """`value.cpu().item()`, `int(value.cpu())`: read as a number, by way of a copy."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.Call):
        return isinstance(outer.func, ast.Name) and outer.func.id in ("int", "float", "bool") and node in outer.args
    return isinstance(outer, ast.Attribute) and outer.attr == "item"


def _is_of_number(node: ast.Call, ctx: Context) -> bool:
    """`loss.detach().cpu().numpy()`, `value.mean().data.cpu().numpy()`: a number read in a roundabout way."""
    if not isinstance(node.func, ast.Attribute):
        return False
    value = node.func.value
    while isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    reduced = value
    while isinstance(reduced, ast.Call) and isinstance(reduced.func, ast.Attribute) and reduced.func.attr == "detach":
        reduced = reduced.func.value
    if isinstance(reduced, ast.Call) and callee_name(reduced) in ("mean", "sum"):
        return isinstance(reduced.func, ast.Attribute) and not (reduced.args or reduced.keywords)
    return is_loss(value, ctx)


def _is_put_away(node: ast.Call, ctx: Context) -> bool:
    """`message.tensors = tuple(t.cpu() for t in message.tensors)`: a whole list is kept or sent from the host. Or
    `self.weights = weights.detach().cpu()`: one is kept, for whoever wants to look at it.
    """
    statement = ctx.tree.statement_of(node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Attribute, ast.Subscript)):
        return False
    if statement.value is node and isinstance(statement.targets[0], ast.Attribute):
        return True
    return any(
        isinstance(outer, (ast.ListComp, ast.GeneratorExp)) and outer.elt is node for outer in ctx.tree.ancestors(node)
    )


def _becomes_array(statement: ast.AST | None, ctx: Context) -> bool:
    """`values = values.cpu()`, and later `values.numpy()`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    definition = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
    uses = ctx.inference.flow.uses_of(definition) if definition is not None else ()
    parents = (ctx.tree.parent(use) for use in uses)
    return any(isinstance(outer, ast.Attribute) and outer.attr == "numpy" for outer in parents)


def _is_iterated(node: ast.expr, ctx: Context) -> bool:
    """`for row in ids.cpu()`, or so with a name for it in a helper: one copy instead of one for each row."""
    child: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.For, ast.comprehension)):
            return child is outer.iter
        if isinstance(outer, ast.Assign) and isinstance(node, ast.Call) and not ctx.loops(node):
            target = outer.targets[0] if len(outer.targets) == 1 else None
            definition = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
            uses = ctx.inference.flow.uses_of(definition) if definition is not None else ()
            return any(_is_iterated(use, ctx) for use in uses)
        if isinstance(outer, ast.stmt):
            return False
        child = outer
    return False


def _is_around_decoding(node: ast.Call, ctx: Context) -> bool:
    """Whether a function that makes token after token reads this before or after its loop: once for each text."""
    function = ctx.tree.function_of(node)
    if function is None or ctx.loops(node) or ctx.role(node) == "decode":
        return False
    loops = (part for part in ctx.walk(function) if isinstance(part, (ast.For, ast.While)))
    decodes = bool(_DECODES.search(function.name))
    return any(ctx.role(loop.body[0]) == "decode" or (decodes and _counts_tokens(loop, ctx)) for loop in loops)


def _counts_tokens(loop: ast.For | ast.While, ctx: Context) -> bool:
    """`for step in range(2, max_seq_len)`"""
    header = loop.iter if isinstance(loop, ast.For) else loop.test
    return isinstance(header, (ast.Call, ast.Compare)) and bool(_LENGTH_LIMIT.search(ctx.text(header)))


def _sums_up_evaluation(node: ast.Call, ctx: Context) -> bool:
    """Whether a model has been switched to evaluation on every path here, and no loop goes through batches around it:
    once for each evaluation, whose result is wanted as a number.
    """
    if ctx.loops(node) or in_forward(node, ctx) or ctx.program.effects(ctx.scope(node)).does(Effect.BACKWARD):
        return False
    graph = ctx.control_flow(node)
    switches: dict[str, list[ast.Call]] = {"eval": [], "train": []}
    for part in ctx.walk(graph.scope):
        if isinstance(part, ast.Call) and callee_name(part) in switches and isinstance(part.func, ast.Attribute):
            switches[part.func.attr] += [part] if graph.dominates(part, node) else []
    return any(
        not any(graph.dominates(off, on) and _receiver(on, ctx) == _receiver(off, ctx) for on in switches["train"])
        for off in switches["eval"]
    )


def _receiver(call: ast.Call, ctx: Context) -> str:
    return ctx.text(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_for_export(node: ast.Call, ctx: Context) -> bool:
    """Whether the number is told to `torch._check`: code for `torch.export`, which knows no other way to read one."""
    statement = ctx.tree.statement_of(node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    definition = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
    uses = ctx.inference.flow.uses_of(definition) if definition is not None else ()
    return any(
        isinstance(outer, ast.Call) and (ctx.target(outer.func) or "").startswith("torch._check")
        for use in uses
        for outer in ctx.tree.ancestors(use)
    )


def _fix(node: ast.Call, ctx: Context) -> Fix | None:
    """`total += loss.item()` in a loop that does not look at `total`: sum on the device, read after the loop."""
    statement = ctx.tree.statement_of(node)
    loops = ctx.loops(node)
    if callee_name(node) != "item" or not loops or not isinstance(node.func, ast.Attribute):
        return None
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, ast.Add) or statement.value is not node:
        return None
    target, loop = statement.target, loops[0]
    if not isinstance(target, ast.Name) or ctx.body_heat(loop) < Heat.STEP or ctx.heat(loop) >= Heat.STEP:
        return None
    if _is_used(target.id, statement, loop) or read_after(node, node.func.value, loop, ctx):
        return None
    if _may_be_read_meanwhile(target.id, loop, ctx):
        return None
    value = ctx.tree.text(node.func.value)
    if not value.endswith(".detach()") and not ctx.grad_off(node):
        value = f"{ctx.edit.receiver(node.func.value)}.detach()"
    number = "int" if _is_count(node.func.value, ctx) else "float"
    return Fix(
        "Sum on the device and read after the loop",
        Applicability.UNSAFE,
        (ctx.edit.replace(node, value), ctx.edit.insert_after(loop, f"{target.id} = {number}({target.id})")),
        reason=f"`{target.id}` is summed in the tensor's precision instead of Python's float64",
        numerics="same to rounding",
    )


def _may_be_read_meanwhile(name: str, loop: ast.AST, ctx: Context) -> bool:
    """Whether a sum may be looked at before the line behind its loop: after an exception, or by another function."""
    around = ctx.tree.function_of(loop) or ctx.tree.module
    child = loop
    for outer in ctx.tree.ancestors(loop):
        if outer is around:
            break
        if isinstance(outer, ast.Try) and child in outer.body:
            return True
        child = outer
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names for part in walk(around)):
        return True
    return isinstance(around, ast.Module) and any(
        isinstance(part, ast.Name) and part.id == name and ctx.tree.function_of(part) is not None
        for part in walk(around)
    )


def _is_count(value: ast.expr, ctx: Context) -> bool:
    """`(prediction == target).sum()`, `torch.sum(prediction == target)`: a whole number."""
    if not (isinstance(value, ast.Call) and callee_name(value) == "sum" and isinstance(value.func, ast.Attribute)):
        return False
    counted = value.func.value
    if ctx.is_call_of(value, "torch.sum"):
        if len(value.args) != 1:
            return False
        counted = value.args[0]
    compared = isinstance(counted, ast.Call) and callee_name(counted) in ("eq", "ne", "gt", "ge", "lt", "le")
    return compared or isinstance(counted, ast.Compare)


def _is_used(name: str, statement: ast.AugAssign, loop: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name and part is not statement.target for part in walk(loop))
