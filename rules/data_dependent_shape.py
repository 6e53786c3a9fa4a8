"""TPL205: results whose size depends on the values of a device tensor, and checks of linear algebra."""

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
    Nodes,
    Rule,
    callee_name,
    tensors,
)
from perflint.api.waits import (
    COUNTING_NAMES,
    Count,
    certainty_on_device,
    counted_at,
    first_of_block,
    impact_at,
    in_step,
    is_boolean,
    is_exceptional,
    is_read_next,
    mask_in,
    works_on_host,
)
from perflint.api.words import short_text

from ._fixes.count_advice import advice_for
from ._fixes.count_once import select_by_positions
from ._fixes.mask_advice import SUPPRESSED, suppression_behind

#: What the host waits for, by what makes it wait.
_WHY = {
    Count.OF_RESULT: "its size depends on the values, so the host blocks until the device has counted",
    Count.OF_WRITTEN: "the host blocks until the device has counted the written positions",
    Count.IN_BACKWARD: "its backward selects by the mask, so the host blocks until the device has counted",
    Count.OF_ZEROS: "its backward counts the zeros among the factors, so the host blocks until the device has counted",
    Count.OF_NORMS: "the host blocks until it knows the norms, by which it chooses the approximation",
    Count.OF_INDEX: "it looks up a size in the index, so the host blocks until the device has found it",
    Count.OF_ERRORS: "it checks for errors on the host, so the host blocks until the result is known",
}
_TESTS = (ast.Compare, ast.BinOp, ast.Call)


class DataDependentShape(Rule):
    """The size of the result depends on values of a device tensor, so the host blocks until it is known.

    What it does

    Reports operations with a data-dependent shape on the hot path: `nonzero`, one-argument `torch.where`, boolean
    mask indexing (`x[mask]`, `x[mask] = y`), `masked_select`, `unique`, `bincount`, `one_hot` without `num_classes`,
    `repeat_interleave` without `output_size`, `torchvision.ops.nms`; `masked_scatter`, whose backward selects by the
    mask, `prod` and `cumprod`, whose backward counts zeros; `torch.linalg.inv`, `solve`, `cholesky` and similar; and
    for graphs `scatter` without `dim_size`, `softmax` without `num_nodes`, `to_dense_batch`, `radius_graph`.

    Why is this slow?

    PyTorch must know the size of the result before it can allocate it. The host blocks until the device has counted.
    The `torch.linalg` functions block to check for errors. Under `torch.compile`, the former are graph breaks.

    What to do

    If the selected entries are reduced, multiply by the mask and divide by its sum. If they are written back to their
    places, use `torch.where(mask, x, other)` or `masked_fill`. Neither drops rows: to use fewer rows, carry the mask
    along or pad to a bound. `x[mask] = 0` with a Python number does not synchronize. Pass `num_classes`, `output_size`,
    `dim_size`. `torch.nonzero_static(size=...)` bounds the result. `torch.linalg.inv_ex` and similar skip the check. If
    a mask selects several times, compute `index = mask.nonzero(as_tuple=True)` once; `x[index]` does not synchronize.

    Fix safety

    Unsafe, with the same bits, where a mask selects several times: its positions are counted once. A mask of a shape
    that does not fit raises an error, positions do not. Other findings have no fix: with a mask instead of a selection,
    rounding, NaN times zero and empty selections give other results.

    Not reported

    - Positions that are found once to select several times.
    - Results that the host reads next anyway (decoded to text, converted to a list).
    - Masks on the CPU, three-argument `where`, integer indices, `multinomial`, `topk` and `sort`.
    - Code outside of forward passes and training steps.

    Known limitations

    Some algorithms need the packed result: detection, routing to experts, packing of sequences. Suppress the finding
    there.

    References

    - `torch.nonzero`: https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html
    - `torch.nonzero_static`: https://docs.pytorch.org/docs/stable/generated/torch.nonzero_static.html
    - `torch.where`: https://docs.pytorch.org/docs/stable/generated/torch.where.html
    - `torch.linalg.inv_ex`: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html
    """

    code, name = "TPL205", "data-dependent-shape"
    impact = Impact.LOW
    listens = (Calls(*COUNTING_NAMES), Nodes(ast.Subscript))
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("shape", "read", "synchronize", adopts=("shape",))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.Call, ast.Subscript))
        if isinstance(node, ast.Subscript) and not isinstance(
            mask_in(node, ctx), (ast.Name, ast.Attribute, ast.Subscript, ast.UnaryOp, *_TESTS)
        ):
            return
        counted = counted_at(node, ctx)
        if counted is None or is_exceptional(node, ctx) or not _is_worth_it(node, ctx) or is_read_next(node, ctx):
            return
        suppression = suppression_behind(node, ctx)
        certainty = certainty_on_device(counted.value, ctx) or Confidence.LOW
        if isinstance(node, ast.Subscript) and (certainty is Confidence.LOW or not is_boolean(mask_in(node, ctx), ctx)):
            certainty = Confidence.MEDIUM
        yield self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx)}` {ctx.heat(node).phrase}: {_WHY[counted.what]}.",
            advice=advice_for(node, counted.what, ctx) if suppression is None else SUPPRESSED,
            fix=select_by_positions(node, ctx) if isinstance(node, ast.Subscript) else None,
            confidence=min(self.confidence, certainty),
            impact=_impact(node, ctx),
            block=suppression or first_of_block(node, ctx),
        )


def _impact(node: ast.Call | ast.Subscript, ctx: Context) -> Impact:
    """Only whoever makes the batch may know how many rows repeats come to; the check of a decomposition stays."""
    name = callee_name(node) if isinstance(node, ast.Call) else ""
    if name in tensors.CHECKS_THAT_STAY:
        return Impact.LOW
    found = impact_at(node, ctx)
    return min(found, Impact.MEDIUM) if name == "repeat_interleave" else found


def _is_worth_it(node: ast.AST, ctx: Context) -> bool:
    if works_on_host(node, ctx):
        return False
    return in_step(node, ctx) and ctx.role(node) not in ("data", "eval")
