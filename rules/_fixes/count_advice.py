"""What to do where the host waits for a count: by what is counted."""

from __future__ import annotations

import ast

from perflint.api import Context, callee_name
from perflint.api.waits import Count, sparing

from .mask_advice import BOUNDED, instead_of_selecting, is_bounded, without_rows, written_to

_COUNT_EARLIER = "Do it on the host where the data is prepared, or keep the duplicates."
_LOOK_UP_EARLIER = "Do it on the host where the data is prepared."
_SUPPRESS = "Suppress for all images at once (`batched_nms`), or in evaluation only."
#: Logarithms of zeros have gradients that are no numbers.
_PRODUCTS = {
    "prod": "Multiply a few factors one by one, `x[..., 0] * x[..., 1]`: that does not synchronize.",
    "cumprod": (
        "Where no factor can be 0 or less, `x.log().cumsum(dim).exp()` is the same, and does not synchronize; the "
        "gradient of a 0 would be NaN."
    ),
}
#: A mask cannot take the place of any of these.
_BY_NAME = {
    "nonzero": "Work with the mask itself, where all rows can be computed.",
    "argwhere": "Work with the mask itself, where all rows can be computed.",
    "bincount": (
        "With a known number of bins, `torch.zeros(bins, device=...).scatter_add_(0, x, ones)` does not synchronize."
    ),
    "where": "Use the mask itself, or `where` with three arguments.",
    "one_hot": "Pass `num_classes`.",
    "repeat_interleave": "Pass `output_size`: sum the repeats on the host, where the batch is made.",
    "nms": _SUPPRESS,
    "batched_nms": _SUPPRESS,
}

#: It checks `max_num_nodes` against the batch as well, which is a wait of its own.
_LOOKED_UP = {
    "to_dense_batch": "Pass `batch_size`, which the host knows (`data.num_graphs`): then it waits once, and not twice.",
}


def advice_for(node: ast.Call | ast.Subscript, what: Count, ctx: Context) -> str:
    """What to do instead of the operation that has something counted."""
    if isinstance(node, ast.Subscript):
        return instead_of_selecting(node, ctx) if isinstance(node.ctx, ast.Load) else written_to(node, ctx)
    name = callee_name(node)
    if what is Count.OF_INDEX:
        told = sparing(node, ctx)
        return f"Pass `{told[0][0]}`, which the host knows." if told else _LOOKED_UP.get(name, _LOOK_UP_EARLIER)
    if what is Count.IN_BACKWARD:
        return "Gather instead: `rows = mask.cumsum(0) - 1`, then `torch.where(mask, source[rows.clamp(min=0)], x)`."
    if what is Count.OF_ZEROS:
        return _PRODUCTS[name]
    if what in (Count.OF_ERRORS, Count.OF_NORMS):
        return _unchecked(name)
    if name == "masked_select":
        return without_rows(node, ctx)
    if name in ("nonzero", "argwhere") and is_bounded(node, ctx):
        return BOUNDED
    return _BY_NAME.get(name, _COUNT_EARLIER)


def _unchecked(name: str) -> str:
    if name in ("inv", "inverse", "cholesky", "solve"):
        return f"`torch.linalg.{'inv' if name == 'inverse' else name}_ex` skips the check."
    return "Do it less often, or on the host if the matrices are small."
