"""TPL113: tensors built from lists of numpy arrays, element by element."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
    has_unpacking,
)
from perflint.api.transfers import are_small, holds_arrays, is_little
from perflint.api.words import short_text

from ._fixes.stacked_arrays import why_unsafe

_CONSTRUCTORS = (
    "torch.tensor",
    "torch.as_tensor",
    "torch.asarray",
    "torch.Tensor",
    "torch.FloatTensor",
    "torch.LongTensor",
    "torch.DoubleTensor",
    "torch.IntTensor",
)


class TensorFromListOfArrays(Rule):
    """`torch.tensor` of a list of arrays visits every number in Python, hundreds of times slower than one copy.

    What it does

    Reports `torch.tensor(xs)` and similar constructors where `xs` is a list of numpy arrays.

    Why is this slow?

    PyTorch treats the list as a nested sequence and visits each element of each array as a Python object. It warns
    about this once, at run time.

    What to do

    Write `torch.tensor(np.array(xs))`, which copies once more, or `torch.from_numpy(np.stack(xs))`.

    Fix safety

    Safe if the list is a literal of arrays that perflint sees being made, with one visible dtype equal to the
    tensor's, and one dimension or literal sizes: same bits, no shared memory. Otherwise unsafe: a masked array loses
    its mask, a number out of range no longer raises, mixed dtypes promote to the widest (a list takes the first), an
    empty list gives float64 instead of float32, and arrays without rows keep dimensions that a list drops (two of
    shape (0, 3) give (2, 0)).

    Not reported

    - Lists of numbers, also numpy scalars.
    - Lists of tensors: use `torch.stack`.
    - Arrays of a few numbers, where the sizes are literal.
    - In code that runs once: a single array, or a few arrays of literals.

    Measured

    32 arrays of 3 x 224 x 224 floats: 750 ms for the list, 1.5 ms for `torch.from_numpy(np.stack(xs))` (500 times
    less); 256 arrays of 16 floats: 6 times less (CPU).

    References

    - `torch.tensor`: https://docs.pytorch.org/docs/stable/generated/torch.tensor.html
    - `torch.from_numpy`: https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html
    """

    code, name = "TPL113", "tensor-from-list-of-arrays"
    impact = Impact.HIGH
    listens = (Calls(*(name.rpartition(".")[2] for name in _CONSTRUCTORS)),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if len(node.args) != 1 or has_unpacking(node) or not ctx.is_call_of(node, *_CONSTRUCTORS):
            return
        data = node.args[0]
        sure = holds_arrays(data, ctx)
        if sure is None or is_little(data, node, ctx) or are_small(data, node, ctx):
            return
        numpy, imports = ctx.edit.ensure_import("numpy", at=node)
        reason = why_unsafe(node, data, ctx)
        yield self.finding(
            node,
            ctx,
            (
                f"`{ctx.text(node.func)}` converts the arrays in `{short_text(data, ctx, 40)}` number by number in "
                "Python."
            ),
            advice=f"Combine them first: `{ctx.text(node.func)}({numpy}.array({short_text(data, ctx, 40)}))`.",
            fix=Fix(
                "Combine the arrays before creating the tensor",
                Applicability.UNSAFE if reason else Applicability.SAFE,
                (*imports, ctx.edit.wrap(data, f"{numpy}.array(", ")")),
                reason=reason,
                numerics="" if reason else "same bits",
            ),
            confidence=sure,
        )
