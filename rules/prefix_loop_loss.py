"""TPL608: a model run once for each position, on the sequence up to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Confidence,
    Context,
    Finding,
    Impact,
    Loops,
    Rule,
    callee_name,
)
from perflint.api.names import NOT_CAUSAL
from perflint.api.samples import forward_of_prefix, prefixes_in, reads_next

#: Loops of fewer turns are not worth a word.
_FEW = 4


class PrefixLoopLoss(Rule):
    """The model runs once per position on its prefix, although one forward pass gives every position.

    What it does

    Reports loops that run a model on `x[:, :t]` for each `t` of a known sequence.

    Why is this slow?

    A causal model computes the outputs of all positions in one forward pass. The loop runs a forward pass for each of
    K positions, computes the first tokens in every one, and in training keeps K graphs until the backward pass.

    What to do

    Run one forward pass on the whole sequence, shifted by one against the targets: position `t` of `logits =
    model(x[:, :-1]).logits` is what iteration `t` reads at `[:, -1]`. Compute the loss of all positions at once.

    Fix safety

    No fix: the source does not prove that a model is causal.

    Not reported

    - Loops that feed the chosen token back: use a key-value cache.
    - Models that are not causal, where later positions change earlier ones.
    - Measurements of input that arrives step by step.
    - Sequences that the loop writes, and models that receive results of earlier iterations.

    Known limitations

    Both forms agree only with dropout off. If each step's mean excludes padding, keep these means per step.

    References

    - `torch.nn.functional.cross_entropy`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
    """

    code, name = "TPL608", "prefix-loop-loss"
    impact = Impact.HIGH
    confidence = Confidence.MEDIUM
    listens = (Loops("range", "trange"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
            return
        if not _counts(node.iter):
            return
        prefixes = list(prefixes_in(node, node.target.id, ctx))
        if not prefixes or NOT_CAUSAL.search(_place(node, ctx)):
            return
        for prefix in prefixes:
            call = forward_of_prefix(prefix, node, ctx)
            if call is None or not reads_next(prefix, node):
                continue
            whole = ctx.text(prefix.value)
            yield self.finding(
                call,
                ctx,
                f"`{ctx.text(call.func)}` runs once per position of `{whole}`, each time on the whole prefix.",
                advice=(
                    f"Run `{ctx.text(call.func)}` once on all of `{whole}`, shifted by one, and read every "
                    "position from its output."
                ),
                related=(ctx.hop(prefix, "the prefix of this iteration"),) if prefix.lineno != call.lineno else (),
            )
            return


def _place(node: ast.For, ctx: Context) -> str:
    function = ctx.tree.function_of(node)
    owner = ctx.tree.class_of(node)
    return f"{getattr(function, 'name', '')} {getattr(owner, 'name', '')}"


def _counts(turns: ast.expr) -> bool:
    """Whether a loop runs over `range(...)`, and not over a handful."""
    if not isinstance(turns, ast.Call):
        return False
    if callee_name(turns) == "tqdm" and turns.args:
        return _counts(turns.args[0])
    if callee_name(turns) not in ("range", "trange") or not turns.args or len(turns.args) > 2:
        return False
    stop = turns.args[-1]
    return not (isinstance(stop, ast.Constant) and isinstance(stop.value, int) and stop.value < _FEW)
