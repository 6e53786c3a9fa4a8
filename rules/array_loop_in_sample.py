"""TPL121: a sample that is computed by a Python loop over an array."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Heat, Impact, Loops, Nodes, Rule
from perflint.api.loading import filled_by_element, masked_by_class
from perflint.api.loops import goes_by_element, indexed_one_by_one, read_one_by_one

_WHOLE = "Compute it with operations on whole arrays, with `np.arange` for the indices."
_LISTED = "Read all values at once with `.tolist()`, and loop over Python numbers."
_EITHER = "Use operations on whole arrays, or read all values at once with `.tolist()`."
_INDEXED = "Index the tensor once, with all indices: `x[indices]`."


class ArrayLoopInSample(Rule):
    """A dataset computes an array in a Python loop, one element at a time or one pass over the array for each class.

    What it does

    Reports, in datasets, transforms and collate functions: nested loops that store `x[i, j]`, loops over classes that
    store `x[labels == class]`, loops that read `x[i].item()` or compare elements, and loops that collect or set rows of
    a tensor one index at a time.

    Why is this slow?

    Python takes about a microsecond for each operation on an element, and several for an element of a tensor, so a
    small heat map takes milliseconds. A comparison for each class reads the whole label map again, once for each class.

    What to do

    Compute the array with operations on whole arrays: `np.arange` for the indices, with broadcasting. Map classes with
    a look-up table: `table[labels]`. Index a tensor once with all indices: `x[indices]`. Where Python must decide by
    each value, call `x.tolist()` once before the loop.

    Fix safety

    No fix: the loop may skip elements, and labels outside of the table need a value of their own.

    Not reported

    - Loops of fewer than 8 iterations, and classes that all become the same number.
    - Elements that depend on other elements of the array, and loops that numba compiles.
    - Code that no dataset, transform or collate function runs.

    Measured

    A label map of 1024 x 1024 pixels and 19 classes: 15 ms in a loop over the classes, 1.5 ms with a look-up table.

    References

    - NumPy, broadcasting: https://numpy.org/doc/stable/user/basics.broadcasting.html
    - NumPy, integer array indexing:
      https://numpy.org/doc/stable/user/basics.indexing.html#integer-array-indexing
    """

    code, name = "TPL121", "array-loop-in-sample"
    impact = Impact.MEDIUM
    listens = (Loops(), Nodes(ast.ListComp, ast.SetComp, ast.GeneratorExp, mentioning=("item",)))
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if ctx.role(node) != "data":
            return
        if isinstance(node, ast.For):
            found = self._loop(node, ctx)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            read = read_one_by_one(node, ctx)
            found = None if read is None else (f"This reads `{read}` one element at a time, for every sample.", _LISTED)
        else:
            return
        if found is not None:
            yield self.finding(node, ctx, found[0], advice=found[1], confidence=Confidence.MEDIUM)

    def _loop(self, node: ast.For, ctx: Context) -> tuple[str, str] | None:
        """What is wrong with a loop, and what to do."""
        element = filled_by_element(node, ctx)
        if element is not None:
            array = ctx.text(element.value)
            return f"This loop computes `{array}` one element at a time, for every sample.", _WHOLE
        masked = masked_by_class(node, ctx)
        if masked is not None:
            return (
                f"`{ctx.text(masked.slice)}` compares the whole array in every iteration, for every sample.",
                "Build a look-up table once, and index it with the array: `table[labels]`.",
            )
        found = goes_by_element(node, ctx)
        if found is not None:
            return f"This loop goes through `{found.array}` one element at a time, for every sample.", _EITHER
        indexed = indexed_one_by_one(node, ctx)
        if indexed is None:
            return None
        return f"This loop indexes `{indexed}` one row at a time, for every sample.", _INDEXED
