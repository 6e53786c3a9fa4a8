"""TPL310: tensors of constants that hot code copies to the device again, and masks that it fills again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Claims,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Rule,
    callee_name,
    has_unpacking,
    keyword,
)
from perflint.api.invariants import constant_copied, is_fallback_copy, is_number, is_only_read, is_traced, single
from perflint.api.phases import leads_to_a_search
from perflint.api.transfers import MOVES, What, copy_at
from perflint.api.waits import NUMBER_METHODS, costs_little, given_number, impact_at, waits_for_little
from perflint.api.words import short_call

from ._fixes.filled import filled_on_device, filled_text
from ._fixes.keeping import device_of, keep, register, where_to_keep
from ._shared.square_masks import is_of_prompt, is_set_up, square


class ConstantTensorInHotPath(Rule):
    """A constant tensor is copied to the device, or an L x L mask is computed again, on every step.

    What it does

    Reports `torch.tensor(0.5, device=device)` and similar constants, and triangular masks, that are created on the
    hot path. Also numbers given to `add_jitter` and `mul` of a matrix of linear_operator, which makes such tensors.

    Why is this slow?

    `torch.tensor(0.5, device=device)` creates the tensor on the host, copies it from pageable memory and blocks until
    all queued GPU work has finished, for a value that never changes. A triangular mask fills L x L elements again.

    What to do

    Pass the Python number if the operation accepts it: `torch.where(mask, x, 0.5)`. `torch.full((), 0.5,
    device=device)` is filled on the device and does not block. Cache lists and masks: in a module with
    `self.register_buffer("name", ..., persistent=False)`, which moves with the module and adds no key to its state
    dict; elsewhere before the loop. For causal attention, `is_causal=True` needs no mask.

    Fix safety

    Unsafe: `torch.full` gives the same bits, but a traced or exported graph has another operation there. No fix for
    lists and masks: the code does not show where to cache them, and for which devices and dtypes.

    Not reported

    - Tensors that are modified, returned or collected: a cached one would be shared.
    - Values from the batch, random numbers, constructors, and defaults for an empty batch.
    - Code under `torch.compile`, which makes constants of them.
    - `zeros`, `ones`, `arange` and `empty` with `device=`: one kernel launch each.

    Measured

    `tril(ones(1024, 1024))` takes 1.06 ms, a slice of a cached mask 2 us (CPU, torch 2.13).

    References

    - `torch.full`: https://docs.pytorch.org/docs/stable/generated/torch.full.html
    - torch.nn.Module:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code, name = "TPL310", "constant-tensor-in-hot-path"
    minor_beside_reads = True
    numerics = "same bits"
    impact = Impact.MEDIUM
    listens = (Calls("tensor", "as_tensor", "asarray", "new_tensor", "tril", "triu", *MOVES, *NUMBER_METHODS),)
    claims = Claims("to-device", "host-allocation", "launch", waits=False)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if has_unpacking(node) or ctx.role(node) == "data" or leads_to_a_search(node, ctx):
            return
        if callee_name(node) in MOVES:
            yield from self._move(node, ctx)  # of a graph that is traced as well: what is there already is an input
        elif is_traced(node, ctx):
            return
        elif callee_name(node) in ("tril", "triu"):
            yield from self._mask(node, ctx)
        elif callee_name(node) in NUMBER_METHODS:
            yield from self._number(node, ctx)
        else:
            yield from self._copy(node, ctx)

    def _copy(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`torch.tensor(0.5, device=device)`"""
        data = constant_copied(node, ctx)
        if data is None:
            return
        if is_number(single(data), ctx):
            filled = " ".join(filled_text(node, ctx).split())
            advice = f"Pass the Python number if the operation accepts it, or write `{filled}`."
            fix = filled_on_device(node, ctx)
        else:
            advice = f"Create it once and reuse it: {where_to_keep(node, ctx)}."
            fix = _kept(node, ctx)
        yield self._found(node, advice, fix, ctx)

    def _number(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`covariance.add_jitter(1e-4)` of a matrix of linear_operator."""
        given = given_number(node, ctx)
        if given is None:
            return
        matrix = ctx.text(given.matrix)
        like = matrix if matrix.isidentifier() else "x"
        tensor = f"torch.full((), {given.number}, dtype={like}.dtype, device={like}.device)"
        yield self._found(node, f"Pass a tensor that is filled on the device: `.{given.instead}({tensor})`.", None, ctx)

    def _move(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`torch.FloatTensor(TABLE).to(device)`, `self.table.to(device)` of what is on the host."""
        copy = copy_at(node, ctx)
        if copy is None or copy.what is not What.CONSTANT or not is_only_read(node, ctx, kept=True):
            return
        if is_fallback_copy(node, ctx):
            return
        if isinstance(copy.moved, ast.Attribute) and where_to_keep(node, ctx).startswith("as an attribute"):
            advice, fix = f"Move it to the device once, where `{ctx.text(copy.moved)}` is created.", None
        elif isinstance(copy.moved, ast.Attribute):
            advice = f'Keep it on the device: `self.register_buffer("{copy.moved.attr}", ..., persistent=False)`.'
            fix = register(node, ctx)
        else:
            advice = f"Create it once and reuse it: {where_to_keep(node, ctx)}."
            fix = keep(node, copy.moved, device_of(node, ctx), None, ctx) if len(node.args) < 2 else None
        yield self._found(node, advice, fix, ctx)

    def _found(self, node: ast.Call, advice: str, fix: Fix | None, ctx: Context) -> Finding:
        # Once in an iteration that trains nothing it is little beside the pass.
        is_drained = waits_for_little(node, ctx)
        is_little = is_drained or costs_little(node, ctx, is_drained=impact_at(node, ctx) is Impact.LOW)
        return self.finding(
            node,
            ctx,
            f"`{short_call(node, ctx)}` {ctx.heat(node).phrase}: a constant is copied to the device, which "
            "synchronizes.",
            advice=advice,
            fix=fix,
            impact=Impact.LOW if is_little else Impact.MEDIUM,
            block=ctx.tree.function_of(node),
        )

    def _mask(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        size = square(node, ctx)
        if size is None or not is_only_read(node, ctx, kept=True) or is_of_prompt(node, ctx):
            return
        if is_set_up(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{short_call(node, ctx)}` {ctx.heat(node).phrase}: the same {size} x {size} mask is computed again.",
            advice=f"Compute it once for the largest size and slice it: {where_to_keep(node, ctx)}.",
            impact=Impact.LOW,
        )


def _kept(node: ast.Call, ctx: Context) -> Fix | None:
    """The list is copied once, on the type that it is given or has."""
    dtype = keyword(node, "dtype")
    if callee_name(node) == "new_tensor":
        return None  # its type is that of another tensor
    is_written_out = dtype is None or (ctx.target(dtype) or "").startswith("torch.")
    return keep(node, node, device_of(node, ctx), None, ctx) if is_written_out else None
