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
    is_constant,
    walk,
)
from perflint.api.gradients import arguments, is_model_call
from perflint.api.loops import names_in
from perflint.api.names import CHEAP, NOT_CAUSAL
from perflint.api.samples import feeds_itself

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
        prefixes = list(_prefixes(node, node.target.id, ctx))
        if not prefixes or NOT_CAUSAL.search(_place(node, ctx)):
            return
        for prefix in prefixes:
            call = _forward_of(prefix, node, ctx)
            if call is None or not _reads_next(prefix, node):
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


def _prefixes(loop: ast.For, index: str, ctx: Context) -> Iterator[ast.Subscript]:
    """`x[:, :t]`, `x[:t]`, `x[:, : t + 1]` of sequences that the loop leaves as they are."""
    flow = ctx.inference.flow
    for part in ctx.walk(loop):
        if not isinstance(part, ast.Subscript) or not isinstance(part.ctx, ast.Load):
            continue
        items = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        if (
            len(items) not in (1, 2)
            or not _is_up_to(items[-1], index)
            or not all(_is_whole(item) for item in items[:-1])
        ):
            continue
        base = part.value
        if isinstance(base, (ast.Name, ast.Attribute)) and flow.is_invariant(base, loop):
            yield part


def _is_whole(item: ast.expr) -> bool:
    return isinstance(item, ast.Slice) and item.lower is None and item.upper is None and item.step is None


def _is_up_to(item: ast.expr, index: str) -> bool:
    if not isinstance(item, ast.Slice) or item.lower is not None or item.step is not None:
        return False
    return item.upper is not None and _is_index(item.upper, index)


def _is_index(node: ast.expr, index: str) -> bool:
    """`t`, `t + 1`, `t - 1`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and is_constant(node.right, 1):
        node = node.left
    return isinstance(node, ast.Name) and node.id == index


def _forward_of(prefix: ast.Subscript, loop: ast.For, ctx: Context) -> ast.Call | None:
    """The model's call that is given the prefix, or what the turn makes of it."""
    made = _made_of(prefix, loop, ctx)
    for part in ctx.walk(loop):
        if not isinstance(part, ast.Call) or not _is_causal_model(part, ctx):
            continue
        given = [item for value in arguments(part) for item in walk(value)]
        if any(item is prefix or (isinstance(item, ast.Name) and item.id in made) for item in given):
            # What an earlier turn gave is a cache, or a choice that is fed back.
            return None if feeds_itself(part, loop) else part
    return None


def _is_causal_model(call: ast.Call, ctx: Context) -> bool:
    if CHEAP.search(callee_name(call)) or NOT_CAUSAL.search(callee_name(call)):
        return False
    return is_model_call(call, ctx)


def _made_of(prefix: ast.Subscript, loop: ast.For, ctx: Context) -> set[str]:
    """The names that a turn sets to something made of the prefix, before a model sees it."""
    settings = [
        part
        for part in ctx.walk(loop)
        if isinstance(part, ast.Assign)
        and not any(isinstance(item, ast.Call) and _is_causal_model(item, ctx) for item in walk(part.value))
    ]
    made: set[str] = set()
    for _ in range(4):
        for setting in settings:
            if any(item is prefix or (isinstance(item, ast.Name) and item.id in made) for item in walk(setting.value)):
                made |= {item.id for target in setting.targets for item in walk(target) if isinstance(item, ast.Name)}
    return made


def _reads_next(prefix: ast.Subscript, loop: ast.For) -> bool:
    """Whether a turn reads the last position of what the model gave, or the sequence's own next element."""
    whole = set(names_in(prefix.value))
    index = loop.target.id if isinstance(loop.target, ast.Name) else ""
    for part in walk(loop):
        if not isinstance(part, ast.Subscript):
            continue
        items = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        if len(items) > 1 and _is_whole(items[0]) and _is_minus_one(items[1]):
            return True
        if any(_is_index(item, index) for item in items[:2]) and whole <= set(names_in(part.value)):
            return True
    return False


def _is_minus_one(item: ast.expr) -> bool:
    return isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub) and is_constant(item.operand, 1)
