"""TPL121: a sample that is computed by a Python loop over an array."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Heat, Impact, Loops, Rule
from perflint.api.loading import filled_by_element, masked_by_class


class ArrayLoopInSample(Rule):
    """A dataset computes an array in a Python loop, one element at a time or one pass over the array for each class.

    What it does

    Reports, in datasets, transforms and collate functions: nested loops that store `x[i, j]`, and loops over classes
    that store `x[labels == class]`.

    Why is this slow?

    Python takes about a microsecond for each operation on an element, so a small heat map takes milliseconds. A
    comparison for each class reads the whole label map again, once for each class.

    What to do

    Compute the array with operations on whole arrays: `np.arange` for the indices, with broadcasting. Map classes with
    a look-up table: `table[labels]`.

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
    listens = (Loops(),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.For) or ctx.role(node) != "data":
            return
        element = filled_by_element(node, ctx)
        if element is not None:
            yield self.finding(
                node,
                ctx,
                f"This loop computes `{ctx.text(element.value)}` one element at a time, for every sample.",
                advice="Compute it with operations on whole arrays, with `np.arange` for the indices.",
                confidence=Confidence.MEDIUM,
            )
            return
        masked = masked_by_class(node, ctx)
        if masked is not None:
            yield self.finding(
                node,
                ctx,
                f"`{ctx.text(masked.slice)}` compares the whole array in every iteration, for every sample.",
                advice="Build a look-up table once, and index it with the array: `table[labels]`.",
                confidence=Confidence.MEDIUM,
            )
