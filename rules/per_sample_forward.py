"""TPL601: a model run on one sample at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    CLASS,
    Calls,
    Confidence,
    Context,
    Edge,
    Finding,
    Hop,
    Impact,
    Loops,
    Ref,
    Rule,
)
from perflint.api.gradients import name_of_whole, runs_network
from perflint.api.loops import goes_from_file_to_file, names_in, turns_few_times
from perflint.api.names import CHANGED_BY_RUN, ONE_BY_ONE, OVER_BATCHES, PLURAL, TIMES
from perflint.api.samples import (
    Turning,
    bound_by,
    changes_model,
    edge_of_items,
    feeds_itself,
    gives_the_same_in_batches,
    hands_out_parts,
    is_of_nesting,
    is_of_own_size,
    is_of_unstacked,
    is_row_of_tensor,
    is_several_texts,
    loop_header,
    makes_batch_of_one,
    makes_tokens,
    needed,
    rows_of,
    shows_each,
    takers,
    turning_loops,
)

_TOKENIZERS = ("tokenizer", "processor", "tok", "encode", "encode_plus", "to_tokens")
#: What is read of a language model's result, whatever the tokenizer before it is called.
_OUTPUTS = ("logits", "hidden_states", "last_hidden_state", "pooler_output")


class PerSampleForward(Rule):
    """A model runs on one sample at a time where one batch would do.

    What it does

    Reports forward passes on single samples in a Python loop.

    Why is this slow?

    A forward pass launches the same kernels for one sample as for many. For one sample they are too small to fill the
    device, so launching them is the time.

    What to do

    Stack the samples, or pad the texts and pass the attention mask, and run the model once per batch. For padded
    texts, read the last token of each text (pad on the left, or gather by length): `[:, -1]` of a batch padded on the
    right is padding. Results agree to rounding, not to the last bit.

    Fix safety

    No fix: padding and masks define what a batch means.

    Not reported

    - Samples whose shapes differ and cannot be padded, and parts that are as large as fits in memory.
    - Environments and streams, where the next sample does not exist yet.
    - Per-sample gradients (use `torch.func.vmap`) and adaptation to each sample.
    - Models that normalize over the batch while training.
    - Loops whose iterations need the previous result, change the model or request gradients.
    - Loops over batches, tests, and code that measures time.

    Measured

    64 samples through a small MLP ran 27 times as fast in one batch, 32 texts through a transformer layer 5.7 times;
    16 images in a small convolutional network made no difference (CPU).

    References

    - `torch.stack`: https://docs.pytorch.org/docs/stable/generated/torch.stack.html
    - Performance tuning guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    """

    code, name = "TPL601", "per-sample-forward"
    impact = Impact.HIGH
    confidence = Confidence.MEDIUM
    listens = (Calls("unsqueeze", *_TOKENIZERS), Loops("range", "append", *_OUTPUTS))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if _builds_module(node, ctx):
            return
        for made, call in _candidates(node, ctx):
            turning = _loop_of(made, call, ctx)
            hops = [ctx.hop(made, _SPOKEN[_what(made)])] if made.lineno != call.lineno else []
            if turning is not None:
                rows = ctx.text(turning.iter)
            else:
                edge = None if any(True for _ in turning_loops(call, ctx)) else _calling_loop(made, call, ctx)
                if edge is None or not _is_first(call, made, ctx):
                    continue
                hops.append(Hop(edge.caller.path, edge.line, "called once per sample here"))
                rows = loop_header(edge, ctx)
            yield self.finding(
                call,
                ctx,
                f"`{ctx.text(call.func)}` runs on one sample per iteration of the loop over `{rows}`.",
                advice=_advice(made, call, ctx),
                related=tuple(hops),
            )
            return


_SPOKEN = {
    "text": "one text is tokenized here",
    "input": "one input is prepared here",
    "sample": "one sample becomes a batch here",
}


def _what(made: ast.expr) -> str:
    if not isinstance(made, ast.Call) or makes_batch_of_one(made):
        return "sample"
    return "input" if "processor" in ast.dump(made.func) else "text"


def _advice(made: ast.expr, call: ast.Call, ctx: Context) -> str:
    if _what(made) != "sample":
        return (
            f"Prepare several {_what(made)}s with `padding=True`, run `{ctx.text(call.func)}` once on them with the "
            "attention mask, and read each one's own last token."
        )
    return f"Stack the samples and run `{ctx.text(call.func)}` once per batch."


def _builds_module(node: ast.AST, ctx: Context) -> bool:
    """Whether a node stands in the constructor of a module: the loops there make layers, and run none."""
    scope = ctx.scope(node)
    owner, _, name = scope.function.rpartition(".")
    return name == "__init__" and ctx.program.is_module(Ref(CLASS, scope.path, owner))


def _candidates(node: ast.AST, ctx: Context) -> Iterator[tuple[ast.expr, ast.Call]]:
    """One sample, and the model's call that is given it."""
    if isinstance(node, ast.For):
        parts = ctx.walk(node)
        for row, whole in rows_of(node, parts):
            for call in takers(row, ctx):
                if runs_network(call, ctx, sure=False) and is_row_of_tensor(row, whole, ctx):
                    yield row, call
        for part in parts:
            if isinstance(part, ast.Call) and name_of_whole(part.func) not in _TOKENIZERS and makes_tokens(part):
                if ctx.loops(part)[:1] == [node]:
                    yield from ((part, call) for call in takers(part, ctx) if runs_network(call, ctx, sure=True))
    elif isinstance(node, ast.Call) and (
        not is_of_nesting(node, ctx) if makes_batch_of_one(node) else makes_tokens(node)
    ):
        yield from ((node, call) for call in takers(node, ctx) if runs_network(call, ctx, sure=True))


def _loop_of(made: ast.expr, call: ast.Call, ctx: Context) -> Turning | None:
    """The loop that hands out one sample a turn, where its turns do not need each other."""
    function = ctx.tree.function_of(call)
    if function is not None and any(TIMES.search(name) for name in names_in(function)):
        return None
    if any(isinstance(outer, ast.While) for outer in ctx.loops(call)):
        return None
    around = list(turning_loops(made, ctx))
    for turning, region in turning_loops(call, ctx):
        if not any(turning is other for other, _ in around):
            return None
        names, _ = needed(made, region)
        own = bound_by(turning)
        if own & set(names_in(call.func)):
            continue  # Another model, or another layer, on each turn.
        if not own & names:
            continue
        if _is_several(made, ctx) or (_what(made) == "sample" and is_of_own_size(made, own, region)):
            return None
        return turning if _is_apart(turning, region, call, ctx) and not is_of_unstacked(turning, ctx) else None
    return None


def _is_apart(turning: Turning, region: ast.AST, call: ast.Call, ctx: Context) -> bool:
    """Whether the samples are there before the loop, and the model stays the same in it."""
    if feeds_itself(call, region):
        return False
    if turns_few_times(turning, ctx, 10) or shows_each(turning, ctx) or hands_out_parts(turning, ctx):
        return False
    if any(CHANGED_BY_RUN.search(name) for name in names_in(region)) or changes_model(region, call):
        return False
    return gives_the_same_in_batches(call, ctx) and not goes_from_file_to_file(region, ctx)


def _is_several(made: ast.expr, ctx: Context) -> bool:
    """Whether what is tokenized is a list of texts."""
    return _what(made) != "sample" and isinstance(made, ast.Call) and is_several_texts(made.args[0], ctx)


def _calling_loop(made: ast.expr, call: ast.Call, ctx: Context) -> Edge | None:
    """The call in a loop that gives the function around `call` one sample a turn."""
    function = ctx.tree.function_of(call)
    if function is None or ctx.loops(call) or not gives_the_same_in_batches(call, ctx) or _is_rough(function, call):
        return None
    names, _ = needed(made, function)
    if feeds_itself(call, function):
        return None
    given = {name for name in names if not OVER_BATCHES.search(name) and not PLURAL.search(name)}
    return edge_of_items(ctx.own_scope(function), given, set(names_in(call.func)), ctx)


def _is_rough(function: ast.AST, call: ast.Call) -> bool:
    """Whether a function times, trains or changes what it runs, or generates token by token."""
    if ONE_BY_ONE.search(getattr(function, "name", "")):
        return True
    names = set(names_in(function))
    return any(TIMES.search(name) or CHANGED_BY_RUN.search(name) for name in names) or changes_model(function, call)


def _is_first(call: ast.Call, made: ast.expr, ctx: Context) -> bool:
    """Whether no call before this one in its function runs the same model on one sample: one finding says it."""
    function = ctx.tree.function_of(call)
    assert function is not None
    text = ctx.text(call.func)
    for part in ctx.tree.walk(function):
        if isinstance(part, ast.Call) and (part.lineno, part.col_offset) < (made.lineno, made.col_offset):
            if any(ctx.text(other.func) == text for _, other in _candidates(part, ctx)):
                return False
    return True
