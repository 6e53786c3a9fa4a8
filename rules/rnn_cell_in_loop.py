"""TPL611: a recurrent cell stepped over a sequence that is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Impact, Loops, Rule, Tier, argument, walk
from perflint.api.loops import turns_few_times
from perflint.api.samples import feeds_itself, needed

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
    listens = (Loops(*_CELLS),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.For) or turns_few_times(node, ctx, _FEW) or _stops_early(node):
            return
        for statement in node.body:
            call = statement.value if isinstance(statement, ast.Assign) else None
            if not isinstance(call, ast.Call):
                continue
            cell = _CELLS.get(_class_of(call, ctx))
            if cell is None or not _steps_through(call, node):
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


def _steps_through(call: ast.Call, loop: ast.For) -> bool:
    """Whether the input is there before the loop, and the state goes from turn to turn through the cell only."""
    given, state = argument(call, 0, "input"), argument(call, 1, "hx")
    if given is None or state is None or feeds_itself(call, loop, [given]):
        return False
    turning = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    if turning & {part.id for part in walk(call.func) if isinstance(part, ast.Name)}:
        return False  # Another cell on each turn: a stack of layers.
    if not turning & needed(given, loop)[0] or not _is_by_position(given, turning, loop):
        return False
    carried = {part.id for part in walk(state) if isinstance(part, ast.Name)}
    return bool(carried) and all(_values(name, loop) == [call] for name in carried)


def _is_by_position(given: ast.expr, turning: set[str], loop: ast.For) -> bool:
    """Whether a turn's input is an element of the sequence: the loop's own, or the one at its index."""
    counts = isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"
    if not counts:
        return True
    for part in needed(given, loop)[1]:
        for item in walk(part):
            if isinstance(item, ast.Subscript) and any(
                isinstance(name, ast.Name) and name.id in turning for name in walk(item.slice)
            ):
                return True
    return False


def _values(name: str, loop: ast.For) -> list[ast.expr]:
    """What a loop sets a name to."""
    found: list[ast.expr] = []
    for part in walk(loop):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(part, ast.Assign):
            targets, value = part.targets, part.value
        elif isinstance(part, (ast.AugAssign, ast.AnnAssign)):
            targets, value = [part.target], part.value
        if value is not None and any(name in _set_by(target) for target in targets):
            found.append(value)
    return found


def _set_by(target: ast.expr) -> set[str]:
    """The names that a target sets, or into which it stores."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {name for item in target.elts for name in _set_by(item)}
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()
