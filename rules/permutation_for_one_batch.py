"""TPL117: a permutation of the whole data set, to draw one batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, Tag, argument, callee_name
from perflint.api.loops import is_bound_before_steps

_TARGETS = (
    "torch.randperm",
    "numpy.random.permutation",
    "numpy.random.Generator.permutation",
    "random.shuffle",
)


class PermutationForOneBatch(Rule):
    """The whole data set is permuted on every step, and one batch of the permutation is used.

    What it does

    Reports `torch.randperm(n)[:k]` and `np.random.permutation(n)[:k]` in code that runs every step, where `n` is the
    size of something that outlives the step, such as a data set or a replay buffer.

    Why is this slow?

    A permutation of n numbers costs time and memory in proportion to n: on the device it is a sort. A batch needs k of
    them.

    What to do

    Draw with replacement: `torch.randint(n, (k,), device=...)`. Or permute once per epoch and take the next k indices
    on every step, which is what a `DataLoader` with `shuffle=True` does.

    Fix safety

    No fix: the drawn samples differ.

    Not reported

    - Permutations of the batch itself, of tokens or patches of an input, and permutations that are used as a whole.
    - Code that runs per epoch.

    References

    - `torch.randperm`: https://docs.pytorch.org/docs/stable/generated/torch.randperm.html
    - `torch.randint`: https://docs.pytorch.org/docs/stable/generated/torch.randint.html
    """

    code, name = "TPL117", "permutation-for-one-batch"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("randperm", "permutation"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        size = argument(node, 0, "n") or argument(node, 0, "x")
        if size is None or not ctx.is_call_of(node, *_TARGETS) or not _is_cut(node, ctx):
            return
        whole = _measured(size, ctx)
        if whole is None:
            return
        outlives = isinstance(whole, ast.Name) and is_bound_before_steps(whole, node, ctx)
        if not outlives and ctx.kind(whole).tag is not Tag.DATASET:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` permutes all of `{ctx.text(whole)}` but uses one batch of it; it "
            f"{ctx.heat(node).phrase}.",
            advice=(
                "Draw the indices with `torch.randint`, or permute once per epoch and use the next indices in "
                "each step."
            ),
        )


def _is_cut(node: ast.Call, ctx: Context) -> bool:
    """Whether only the first numbers are taken: `[:k]`, at once or under a name."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.Subscript):
        return _is_head(outer)
    if not isinstance(outer, ast.Assign) or len(outer.targets) != 1 or not isinstance(outer.targets[0], ast.Name):
        return False
    function = ctx.tree.function_of(node) or ctx.tree.module
    uses = [part for part in ctx.tree.named(outer.targets[0].id, function) if isinstance(part.ctx, ast.Load)]
    return bool(uses) and all(_is_head(ctx.tree.parent(use)) for use in uses)


def _is_head(outer: ast.AST | None) -> bool:
    if not isinstance(outer, ast.Subscript) or not isinstance(outer.slice, ast.Slice):
        return False
    return outer.slice.lower is None and outer.slice.upper is not None


def _measured(size: ast.expr, ctx: Context) -> ast.expr | None:
    """`data` of `len(data)`, `data.shape[0]` and `data.size(0)`, also under a name."""
    for origin in [size, *ctx.inference.origins(size)]:
        if isinstance(origin, ast.Call) and len(origin.args) == 1:
            if callee_name(origin) == "len":
                return origin.args[0]
            if callee_name(origin) == "size" and isinstance(origin.func, ast.Attribute):
                return origin.func.value
        is_part = isinstance(origin, ast.Subscript) and isinstance(origin.value, ast.Attribute)
        if is_part and origin.value.attr == "shape":  # type: ignore[attr-defined]
            return origin.value.value  # type: ignore[attr-defined, no-any-return]
    return None
