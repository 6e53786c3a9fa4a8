"""TPL617: a projection inside of a recurrent loop that could come before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Context, Finding, Heat, Impact, Loops, Rule
from perflint.api.invariants import Repeated, repeated_projections
from perflint.api.loops import trains_inside, turns_few_times
from perflint.api.words import short_text


class ProjectionInRecurrence(Rule):
    """Every iteration of a recurrent loop applies a layer to a tensor that the loop never changes.

    What it does

    Reports loops with a state, as those of decoders, that apply a linear layer or a convolution to a tensor that is the
    same in all iterations, in the loop or in the functions that it calls.

    Why is this slow?

    Additive attention projects all encoder outputs and the one decoder state. The projection of the encoder outputs
    does not depend on the state, but costs as many products as there are positions, forward and backward, in each
    iteration.

    What to do

    Apply the layer once before the loop and pass its result on. Give the attention module a method for the keys, or
    let it take keys that are projected already.

    Fix safety

    No fix: the layer and the loop mostly stand in different functions.

    Not reported

    - Inputs that the loop sets, and layers that differ between iterations.
    - Layers behind a condition, such as a cache that is filled once, and layers after dropout.
    - Inputs of models that run a stack of layers in each iteration, beside which one projection costs little.
    - Loops that train the layer, and loops of few iterations.

    Known limitations

    A layer of a joined input, `layer(torch.cat([state, keys], -1))`, is the sum of one layer for each: the advice then
    changes the names of parameters in checkpoints.

    Measured

    Additive attention of width 256, batches of 8, forward and backward: 1.63 times as fast for 10 steps over 50 keys,
    1.96 for 30 steps over 100 (`perflint verify --rule TPL617 --device cpu`, torch 2.13, one thread).

    References

    - Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate, A.1.2:
      https://arxiv.org/abs/1409.0473
    """

    code, name = "TPL617", "projection-in-recurrence"
    impact = Impact.MEDIUM
    listens = (Loops(),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        if ctx.body_heat(node) < Heat.STEP or turns_few_times(node, ctx):
            return
        found = list(repeated_projections(node, ctx))
        if not found or trains_inside(node, ctx):
            return
        for item in found:
            yield self.finding(
                item.call,
                ctx,
                _message(item, ctx),
                advice=_advice(item, ctx),
                related=(*dict.fromkeys(part.place for part in item.applied), ctx.hop(node, "the loop")),
            )


def _message(item: Repeated, ctx: Context) -> str:
    layers, given, first = _layers(item), short_text(item.given, ctx), item.applied[0]
    if item.by_position:
        return f"{layers} is applied to one position of a known sequence, `{given}`, in each iteration of this loop."
    if first.joined:
        return (
            f"Each iteration applies {layers} to `{given}`, joined with the state, although the loop never changes it."
        )
    return f"Each iteration applies {layers} to `{given}`, although the loop never changes it."


def _advice(item: Repeated, ctx: Context) -> str:
    layers, given = _layers(item), short_text(_whole(item.given), ctx)
    if item.by_position:
        return f"Apply {layers} to all of `{given}` before the loop and take the position from the result."
    if item.applied[0].joined:
        return (
            f"Write {layers} as the sum of one layer for each input, and apply that of `{given}` once before the loop."
        )
    sliced = ", slice the result" if isinstance(item.given, ast.Subscript) else ""
    return f"Apply {layers} to `{given}` once before the loop{sliced} and pass it to `{ctx.text(item.call.func)}`."


def _layers(item: Repeated) -> str:
    return " and ".join(dict.fromkeys(f"`{part.layer}`" for part in item.applied))


def _whole(given: ast.expr) -> ast.expr:
    """`x` of `x[:, t]`."""
    return given.value if isinstance(given, ast.Subscript) else given
