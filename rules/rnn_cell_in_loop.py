"""TPL611: a recurrent cell stepped over a sequence that is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Impact, Loops, Rule, Tier, walk
from perflint.api.loops import turns_few_times
from perflint.api.samples import steps_through

_CELLS = {"LSTMCell": "LSTM", "GRUCell": "GRU", "RNNCell": "RNN"}
#: Loops of fewer turns are not worth a word.
_FEW = 10


class RnnCellInLoop(Rule):
    """A recurrent cell steps over a known sequence in Python, although `nn.LSTM` or `nn.GRU` takes it as a whole.

    What it does

    Reports loops over positions that call `nn.LSTMCell`, `nn.GRUCell` or `nn.RNNCell` on a known sequence.

    Why is this slow?

    Each iteration launches the cell's kernels for one position. The product of inputs and weights, which needs no
    earlier state, runs one position at a time instead of in one matmul.

    What to do

    Use `nn.LSTM`, `nn.GRU` or `nn.RNN` with the same sizes on the whole sequence: it returns the outputs of all
    positions and the last state. Stacked cells become `num_layers`. Apply the following layers to all outputs at
    once.

    Fix safety

    No fix: the parameters have other names (`weight_ih_l0` for `weight_ih`), so checkpoints and initial weights
    change.

    Not reported

    - Inputs that depend on earlier outputs, as in decoders and attention.
    - States that are changed between the steps (masks, resets, normalization, zoneout).
    - Sequences whose length depends on what is computed.
    - Loops over models or layers.

    Measured

    A loop over `nn.LSTMCell` took 5 to 10 times as long as `nn.LSTM` for 256 and for 32 steps (CPU).

    References

    - `torch.nn.LSTM`: https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
    - `torch.nn.GRU`: https://docs.pytorch.org/docs/stable/generated/torch.nn.GRU.html
    """

    code, name = "TPL611", "rnn-cell-in-loop"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Loops(),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.For) or not ctx.program.mentions(_CELLS):
            return
        if turns_few_times(node, ctx, _FEW) or _stops_early(node):
            return
        for statement in node.body:
            call = statement.value if isinstance(statement, ast.Assign) else None
            if not isinstance(call, ast.Call):
                continue
            cell = _CELLS.get(_class_of(call, ctx))
            if cell is None or not steps_through(call, node):
                continue
            yield self.finding(
                call,
                ctx,
                f"`{ctx.text(call.func)}` steps over `{ctx.text(node.iter)}` in Python, one position per iteration.",
                advice=(
                    f"Pass the whole sequence to `nn.{cell}`, and apply the following layers to all its outputs "
                    "at once."
                ),
            )
            return


def _class_of(call: ast.Call, ctx: Context) -> str:
    kind = ctx.kind(call.func)
    module, _, name = kind.qualified.rpartition(".")
    return name if module.startswith("torch.nn") else ""


def _stops_early(loop: ast.For) -> bool:
    return any(isinstance(part, (ast.Break, ast.Return, ast.Yield)) for part in walk(loop))
