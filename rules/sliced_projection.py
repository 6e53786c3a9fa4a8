"""TPL619: a layer over a vocabulary runs on positions whose outputs are dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Heat, Impact, Nodes, Rule
from perflint.api.layers import sliced_head
from perflint.api.names import FEW_SYMBOLS


class SlicedProjection(Rule):
    """A linear layer computes the scores of a whole vocabulary for positions that the next line drops.

    What it does

    Reports `logits[:, -1]` and `logits[:, start:]`, on every step, of what a linear layer over a vocabulary gives for
    all positions, where nothing uses the other positions.

    Why is this slow?

    The layer works position by position. For each position that is dropped it multiplies by a matrix of the size of the
    vocabulary and writes as many numbers; in training the backward pass does twice that for gradients of zero. In small
    models this layer is most of the work.

    What to do

    Take the positions before the layer: `self.head(x[:, -1:])`. Where the model's `forward` gives all of them to
    others, let its callers say which they want, as `logits_to_keep` does in Hugging Face's models.

    Fix safety

    No fix: the positions are dropped in another function than the layer stands in, and sums are rounded in another
    order.

    Not reported

    - Layers that have neither 8,000 outputs nor as many as an embedding of the same class has rows.
    - Shifts by a position (`logits[:, :-1]`).
    - Models that are given a cache, a state or a single position.

    Measured

    1,280 positions of 600 numbers, half of them kept, 10,000 words, forward and backward pass: 2.3 times as long with
    all positions; 320 positions 1.7 times (CPU, 1 thread, torch 2.13).

    References

    - `torch.nn.Linear`: https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html
    """

    code, name = "TPL619", "sliced-projection"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Nodes(ast.Subscript),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Subscript)
        found = sliced_head(node, ctx)
        if found is None:
            return
        whole = ctx.text(found.through.func) if found.through is not None else ""
        where = f" in the `forward` of `{whole}`" if whole not in ("", "self") else " in `forward`" if whole else ""
        named = f"{ctx.text(ctx.tree.statement_of(node))} {found.place.path}"
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` keeps some positions of what `{found.layer}` computes for all; it "
            f"{ctx.heat(node).phrase}.",
            advice=f"Take the positions{where} before `{found.layer}`, of what it is given.",
            impact=Impact.LOW if FEW_SYMBOLS.search(named) else None,
            related=(found.place,),
        )
