"""TPL107: tensors that are made on the host and moved at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Claims,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Rule,
    Tag,
    beside_own_training,
    callee_name,
    has_unpacking,
    tensors,
)
from perflint.api.gradients import is_model_call
from perflint.api.invariants import is_constant_copy
from perflint.api.names import EPOCH, PICTURES_FILE
from perflint.api.phases import beside_generation, hands_over, is_empty_case, is_export, is_tried_out
from perflint.api.transfers import (
    asks_not_to_block,
    constructor,
    copied_data,
    drawn_by,
    dtype_of,
    goes_to_accelerator,
    is_pass,
    is_written_out,
)
from perflint.api.waits import emptied_by, finds_little, impact_of_copy
from perflint.api.words import short_text

from ._fixes.allocating import Made, can_be_told, filled_there, has_default_device, made_on_device, there
from ._fixes.copy_fixes import moved_without_waiting
from ._fixes.keeping import device_of, keep
from ._fixes.legacy_fixes import made_there

#: Whose work is the data they are given: `device=` makes the same copy.
_COPIES = tensors.COPYING_CONSTRUCTORS
_MADE = (tensors.CONSTRUCTORS - _COPIES - {"torch.from_file", "torch.empty_strided"}) | {"torch.tensor"}
#: Make a tensor of numbers; a tensor they hand back as it is.
_AS_IT_IS = frozenset({"torch.as_tensor", "torch.asarray"})
_MOVES = frozenset({"to", "cuda", "type_as", "type"})
_LEGACY_NAMES = frozenset(name.rpartition(".")[2] for name in tensors.DEVICE_CONSTRUCTORS)


class AllocThenTransfer(Rule):
    """A tensor is created on the host and moved at once: the CPU fills it, and the copy blocks the host.

    What it does

    Reports `torch.zeros(n).to(device)` and similar constructor calls on the hot path, and legacy calls such as
    `torch.cuda.FloatTensor(array)`.

    Why is this slow?

    `torch.zeros(n).to(device)` fills memory on the host, copies it, and blocks until all queued GPU work has
    finished. `torch.zeros(n, device=device)` queues one kernel. `torch.tensor(data)` copies either way: only
    `non_blocking=True` avoids the wait. The legacy `torch.cuda.FloatTensor(array)` converts on the host, copies and
    blocks as well.

    What to do

    Pass `device=` to the constructor: `torch.zeros(n, device=device)`, `torch.arange(n, device=x.device)`. Use
    `x.new_zeros(n)` to match device and dtype of `x`. Draw random numbers on the device: `torch.randn(n,
    device=device)`. Copy other arrays from pinned memory with `non_blocking=True`.

    Fix safety

    Safe for `zeros`, `ones`, `empty`, `eye`, `full` with a literal, `arange` of integers and index grids, followed only
    by shape operations and exact casts (`.unsqueeze(0)`, `.float()`), if the device is the
    only argument of the move and nothing requires gradients: same bits. Otherwise unsafe: random tensors come from
    the device's generator (other values, and the host's generator does not advance), `linspace` and similar may
    differ in the last digit, and a tensor with `requires_grad=True` becomes a leaf. A legacy class that copies
    `np.ones(size)` or `np.zeros(size)` makes the same bits from the size; one that copies draws of numpy draws others.

    Not reported

    - Code that runs once. Code that runs once per epoch has low impact; random tensors and warm-up inputs are left
      alone.
    - Code that only tries something out (a loop of ten steps, an exporter's example input), plots, or that nothing
      calls.
    - Values that replace an argument which every caller passes.
    - `torch.from_numpy`, `torch.stack`, `torch.cat` and `torch.FloatTensor(...)`, which accept no `device=`.
    - `torch.cuda.FloatTensor(2, 3)`, which takes sizes and allocates on the device.
    - Tensors that the host uses first, `nn.Parameter(torch.zeros(n)).to(device)`, `pin_memory=True` and `generator=`.
    - Code under `with torch.device(...)` or `set_default_device`, where `.to` does nothing.

    References

    - Performance tuning guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    - `torch.zeros`: https://docs.pytorch.org/docs/stable/generated/torch.zeros.html
    """

    code, name = "TPL107", "alloc-then-transfer"
    minor_beside_reads = True
    impact = Impact.MEDIUM
    listens = (Calls(*_MOVES), Calls(at_least=Heat.STEP))
    at_least = Heat.EPOCH
    needs_accelerator = True
    claims = Claims("to-device", "host-allocation", waits=False)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if callee_name(node) not in _MOVES:
            yield from self._legacy(node, ctx) if ctx.once(_names_legacy_classes, ctx.tree.module) else ()
            return
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
            return
        if PICTURES_FILE.search(ctx.path) or is_export(ctx):
            return
        made = constructor(node.func.value, _MADE | _AS_IT_IS | tensors.LIKE_CONSTRUCTORS, ctx)
        if made is None or _hands_back(made, ctx) or ctx.role(node) == "data" or not goes_to_accelerator(node, ctx):
            return
        function = ctx.target(made.func)
        assert function is not None
        if function in _COPIES and asks_not_to_block(node, ctx):
            return  # `device=` would block, which this does not
        if not can_be_told(made, function, ctx) or has_default_device(made, ctx):
            return
        if is_tried_out(node, ctx) or is_empty_case(node, ctx):
            return
        if not _is_worth_it(node, function, ctx) or hands_over(node, ctx) or beside_generation(node, ctx):
            return
        if function in _COPIES and ctx.heat(node) >= Heat.STEP and emptied_by(node, ctx) is not None:
            return  # a few numbers, which nobody waits for
        yield self._found(Made(node, made, function), ctx)

    def _found(self, made: Made, ctx: Context) -> Finding:
        node, short = made.move, made.function.removeprefix("torch.")
        hot = ctx.heat(node) >= Heat.STEP
        copies = made.function in _COPIES
        cost = "a second call copies the result to the device" if copies and not hot else "the copy synchronizes"
        device, dtype = there(made, ctx)
        given = f"dtype={dtype}, device={device}" if dtype else f"device={device or '...'}"
        if hot and copies and _is_constant(made, ctx):
            advice = "Create the tensor once and reuse it, or use `torch.full` for a single number."
            fix = filled_there(made, ctx) or keep(node, made.value, device_of(node, ctx), None, ctx)
        elif hot and copies and (fix := filled_there(made, ctx)) is not None:
            advice = f"Fill it on the device: `torch.full((), number, device={device or '...'})`."
        elif hot and copies:
            advice = f"Copy without blocking: `torch.{short}(...).to({device or '...'}, non_blocking=True)`."
            fix = moved_without_waiting(node, ctx)
        else:
            advice = f"Create it on the device: `torch.{short}(..., {given})`."
            fix = made_on_device(made, ctx)
        # What is idle already, and a pass that waits for its results in any case, lose the time of a small copy.
        counts = hot and not is_pass(node, ctx) and emptied_by(node, ctx) is None and not finds_little(node, ctx)
        cap = impact_of_copy(node, ctx) if copies else Impact.MEDIUM
        return self.finding(
            node,
            ctx,
            f"`torch.{short}(...)` {ctx.heat(node).phrase} on the host, and {cost}.",
            advice=advice,
            fix=fix,
            impact=min(Impact.MEDIUM, cap) if counts else Impact.LOW,
            confidence=Confidence.HIGH if ctx.kind(node).certainty is Confidence.HIGH else Confidence.MEDIUM,
        )

    def _legacy(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`torch.cuda.FloatTensor(array)`: the constructor is the move."""
        if ctx.heat(node) < Heat.STEP or ctx.role(node) == "data":
            return
        data = copied_data(node, ctx)
        if data is None or PICTURES_FILE.search(ctx.path) or is_export(ctx) or is_tried_out(node, ctx):
            return
        if is_empty_case(node, ctx):
            return
        draw, dtype = drawn_by(data, ctx), dtype_of(node, ctx)
        if draw:
            advice = f"Draw it on the device: `{draw}(..., dtype={dtype}, device=...)`."
        elif ctx.kind(data).tag is Tag.ARRAY:
            advice = f"Create it on the device, or copy from pinned memory: `torch.from_numpy(...).to({dtype})"
            advice += ".pin_memory().to(device, non_blocking=True)`."
        else:
            advice = (
                f"Create it on the device (`torch.full`, `torch.arange` with `dtype={dtype}, device=...`), or "
                "only once."
            )
        yield self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx, 60)}` {ctx.heat(node).phrase}: the tensor is created on the host, and the "
            "copy to the device synchronizes.",
            advice=advice,
            fix=made_there(node, data, ctx),
            confidence=ctx.kind(node.func).certainty,
        )


def _hands_back(made: ast.Call, ctx: Context) -> bool:
    """Whether `torch.as_tensor(x)` may be of a tensor, or of an array that blocking-transfer tells of."""
    return ctx.target(made.func) in _AS_IT_IS and not (made.args and is_written_out(made.args[0], ctx))


def _names_legacy_classes(_: ast.Module, ctx: Context) -> bool:
    """Whether the program speaks of device tensors' classes at all: most do not, and every call is asked."""
    return ctx.program.mentions(_LEGACY_NAMES)


def _is_worth_it(node: ast.Call, function: str, ctx: Context) -> bool:
    """Whether what runs once an epoch is worth a word: there only what the device makes as well as the host, in an
    epoch's own code and not as a made-up input that a model is warmed up with.
    """
    if ctx.heat(node) >= Heat.STEP:
        return True
    if function in tensors.RANDOM_CONSTRUCTORS:
        return False
    _, route, _ = ctx.heat_and_route(node)
    if not route or not EPOCH.search(route[0].text):
        return False
    child: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.stmt):
            break
        if isinstance(outer, ast.Call) and child is not outer.func:
            if is_model_call(outer, ctx):
                return False
        child = outer
    return True


def _is_constant(made: Made, ctx: Context) -> bool:
    """Whether one copy would do for all steps, as constant-tensor-in-hot-path says of `torch.tensor(1, device=...)`."""
    read = made.move if made.call is made.value else made.call
    is_constant = ctx.kind(made.move).on_accelerator and is_constant_copy(made.move, made.call.args[0], read, ctx)
    return is_constant and not beside_own_training(made.move, ctx)
