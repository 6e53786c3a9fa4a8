"""TPL601: a model run on one sample at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import (
    CLASS,
    Calls,
    Confidence,
    Context,
    Edge,
    Finding,
    FunctionFacts,
    Hop,
    Impact,
    LoopFacts,
    Loops,
    Ref,
    Rule,
    Tag,
    is_constant,
    keyword,
    pattern,
    walk,
)
from perflint.api.gradients import FORWARD_METHODS, is_model_call, name_of_whole
from perflint.api.loops import names_in, turns_few_times
from perflint.api.names import CHANGED_BY_RUN, CHEAP, OVER_BATCHES, PLURAL, TIMES, TOKENIZER

from ._shared.samples import (
    Turning,
    bound_by,
    feeds_itself,
    handed_out,
    is_of_own_size,
    is_several_texts,
    needed,
    shows_each,
    takers,
    turning_loops,
)

_TOKENIZERS = ("tokenizer", "processor", "tok", "encode", "encode_plus", "to_tokens")
#: What is read of a language model's result, whatever the tokenizer before it is called.
_OUTPUTS = ("logits", "hidden_states", "last_hidden_state", "pooler_output")
_BATCH_STATISTICS = pattern(r"Batch_?Norm|\bbn\d*\b", re.IGNORECASE)
_FEW = 10
_WRAPPERS = ("enumerate", "tqdm", "zip", "list", "sorted", "reversed")


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
    listens = (Calls("unsqueeze", *_TOKENIZERS), Loops("range", *_OUTPUTS))

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
                rows = _loop_header(edge, ctx)
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
    if not isinstance(made, ast.Call) or _is_unsqueeze(made):
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
        for row in _rows(node, parts):
            for call in takers(row, ctx):
                if _is_model(call, ctx, sure=False) and ctx.kind(row.value).tag is Tag.TENSOR:
                    if not (_is_of_module(row, ctx) or _is_of_nesting(row, ctx)):
                        yield row, call
        for part in parts:
            if isinstance(part, ast.Call) and name_of_whole(part.func) not in _TOKENIZERS and _is_tokenizer(part):
                if ctx.loops(part)[:1] == [node]:
                    yield from ((part, call) for call in takers(part, ctx) if _is_model(call, ctx, sure=True))
    elif isinstance(node, ast.Call):
        if _is_unsqueeze(node):
            for call in () if _is_of_nesting(node, ctx) else takers(node, ctx):
                if _is_model(call, ctx, sure=True):
                    yield node, call
        elif _is_tokenizer(node):
            for call in takers(node, ctx):
                if _is_model(call, ctx, sure=True):
                    yield node, call


def _is_unsqueeze(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "unsqueeze":
        return False
    dim = node.args[0] if node.args else keyword(node, "dim")
    made = node.func.value
    if isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Slice):
        return False  # A part of a sequence, such as all that stands before a position: TPL608.
    # A tensor of a Python list is as long as that sample is.
    return is_constant(dim, 0) and not (
        isinstance(made, ast.Call) and name_of_whole(made.func) in ("tensor", "as_tensor")
    )


def _is_tokenizer(node: ast.Call) -> bool:
    """`tokenizer(text, return_tensors=…)` and `model.to_tokens(text)`."""
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr == "to_tokens":
        return bool(node.args)
    if isinstance(func, ast.Attribute) and func.attr in ("encode", "encode_plus"):
        func = func.value
    if not node.args or not any(item.arg == "return_tensors" for item in node.keywords):
        return False
    return isinstance(func, (ast.Name, ast.Attribute)) and bool(TOKENIZER.search(name_of_whole(func).lower()))


def _rows(loop: ast.For, parts: list[ast.AST]) -> Iterator[ast.Subscript]:
    """`x[i]` and `x[i : i + 1]` in a loop's `parts`, for its own `i`."""
    if not isinstance(loop.target, ast.Name):
        return
    index = loop.target.id
    for part in parts:
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and _is_one_row(part.slice, index):
            yield part


def _is_of_module(row: ast.Subscript, ctx: Context) -> bool:
    """Whether a row is one of a module's own tensors: the weights of one of its experts are no sample."""
    owner: ast.expr = row.value
    while isinstance(owner, (ast.Attribute, ast.Subscript, ast.Call)):
        owner = owner.func if isinstance(owner, ast.Call) else owner.value
        if ctx.kind(owner).tag is Tag.MODULE:
            return True
    return False


def _is_of_nesting(sample: ast.expr, ctx: Context) -> bool:
    """Whether a sample is `images[query][i]` out of what nobody has seen made: lists in lists hold any sizes."""
    while isinstance(sample, ast.Call) and isinstance(sample.func, ast.Attribute):
        sample = sample.func.value
    if not isinstance(sample, ast.Subscript) or not isinstance(sample.value, ast.Subscript):
        return False
    indices, kind = (sample.slice, sample.value.slice), ctx.kind(sample.value)
    return not (kind.is_tensor and kind.certainty is Confidence.HIGH) and not any(
        isinstance(index, (ast.Constant, ast.Slice, ast.Tuple)) or ctx.kind(index).tag is Tag.STRING
        for index in indices
    )


def _is_one_row(item: ast.expr, index: str) -> bool:
    if isinstance(item, ast.Tuple):
        item = item.elts[0] if item.elts else item
    if isinstance(item, ast.Name):
        return item.id == index
    if not isinstance(item, ast.Slice) or not isinstance(item.lower, ast.Name) or item.lower.id != index:
        return False
    upper = item.upper
    return (
        isinstance(upper, ast.BinOp)
        and isinstance(upper.op, ast.Add)
        and isinstance(upper.left, ast.Name)
        and upper.left.id == index
        and is_constant(upper.right, 1)
    )


def _is_model(call: ast.Call, ctx: Context, *, sure: bool) -> bool:
    """Whether a call runs a network. `sure`: what it is given can only be meant for one."""
    if callee_is_cheap(call):
        return False
    if is_model_call(call, ctx):
        return True
    if not sure or not isinstance(call.func, ast.Attribute) or call.func.attr not in FORWARD_METHODS | {"decode"}:
        return False
    return not ctx.kind(call.func.value).known and ctx.project_target(call.func) is None


def callee_is_cheap(call: ast.Call) -> bool:
    """Whether what is called only changes an image, or looks a row up."""
    return bool(CHEAP.search(name_of_whole(call.func))) or (
        isinstance(call.func, ast.Attribute) and bool(CHEAP.search(name_of_whole(call.func.value)))
    )


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
        return turning if _is_apart(turning, region, call, ctx) and not _is_of_list(turning, ctx) else None
    return None


def _is_of_list(turning: Turning, ctx: Context) -> bool:
    """Whether a loop goes through what a project's `collate_fn` leaves a list in each batch: had its tensors one size,
    they would have been stacked.
    """
    rows = turning.iter
    while isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.args:
        rows = rows.args[0]  # `enumerate(images)`, `range(len(images))`
    kind = ctx.kind(rows)
    if kind.tag is not Tag.SEQUENCE or kind.certainty is Confidence.HIGH or kind.element is None:
        return False
    return kind.element.tag in (Tag.TENSOR, Tag.SEQUENCE)


def _is_apart(turning: Turning, region: ast.AST, call: ast.Call, ctx: Context) -> bool:
    """Whether the samples are there before the loop, and the model stays the same in it."""
    if feeds_itself(call, region):
        return False
    if turns_few_times(turning, ctx, 10) or shows_each(turning, ctx) or _comes_in_parts(turning, ctx):
        return False
    if any(CHANGED_BY_RUN.search(name) for name in names_in(region)) or _changes_model(region, call):
        return False
    return _gives_the_same(call, ctx)


def _gives_the_same(call: ast.Call, ctx: Context) -> bool:
    """Whether a sample's result does not depend on what else is in its batch, nor on an earlier call."""
    if any(isinstance(outer, ast.Try) and _saves_memory(outer) for outer in ctx.tree.ancestors(call)):
        return False
    if _has_a_batched_way(call, ctx):
        return False
    keywords = {item.arg for item in call.keywords}
    if keywords & {"past_key_values", "cache", "memory", "state", "hidden", "hidden_state", "hx", "mems"}:
        return False
    return ctx.grad_off(call) or not (ctx.program.trains(ctx.scope(call)) or _has_batch_statistics(call.func, ctx))


def _has_batch_statistics(model: ast.expr, ctx: Context) -> bool:
    """Whether the file, or that of the model's class, speaks of batch normalisation."""
    homes = {ctx.path, ctx.kind(model).path} - {""}
    texts = (there.source.text for there in map(ctx.at, sorted(homes)) if there is not None)
    return any(_BATCH_STATISTICS.search(text) for text in texts)


def _has_a_batched_way(call: ast.Call, ctx: Context) -> bool:
    """Whether a list is asked for, and what is none goes through the same model: lists hold what cannot be stacked."""
    asked = {(id(test), not holds) for test, holds in ctx.conditions(call) if "list" in names_in(test)}
    if not asked:
        return False
    text = ctx.text(call.func)
    return any(
        isinstance(part, ast.Call)
        and ctx.text(part.func) == text
        and not asked.isdisjoint((id(test), holds) for test, holds in ctx.conditions(part))
        for part in ctx.walk(ctx.tree.scope_of(call))
    )


def _saves_memory(attempt: ast.Try) -> bool:
    """Whether a `try` catches an accelerator that is out of memory: its way round is meant to be slow."""
    caught = {name for handler in attempt.handlers if handler.type is not None for name in names_in(handler.type)}
    return bool(caught & {"RuntimeError", "OutOfMemoryError", "AcceleratorError"})


def _changes_model(region: ast.AST, call: ast.Call) -> bool:
    """Whether the loop sets what is called, or switches it to training."""
    own = {part.id for part in walk(call.func) if isinstance(part, ast.Name)} - {"self"}
    for part in walk(region):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id in own:
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "train":
            return not (part.args and is_constant(part.args[0], value=False))
    return False


def _comes_in_parts(turning: Turning, ctx: Context) -> bool:
    target, rows = ctx.text(turning.target), turning.iter
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.func.id in ("enumerate", "tqdm"):
        rows = rows.args[0] if rows.args else rows
    if isinstance(rows, (ast.Name, ast.Attribute)) and name_of_whole(rows) in ("batch", "minibatch", "batch_samples"):
        return bool(OVER_BATCHES.search(target))
    return bool(OVER_BATCHES.search(target) or OVER_BATCHES.search(handed_out(turning.iter, ctx)))


def _is_several(made: ast.expr, ctx: Context) -> bool:
    """Whether what is tokenized is a list of texts."""
    return _what(made) != "sample" and isinstance(made, ast.Call) and is_several_texts(made.args[0], ctx)


def _calling_loop(made: ast.expr, call: ast.Call, ctx: Context) -> Edge | None:
    """The call in a loop that gives the function around `call` one sample a turn."""
    function = ctx.tree.function_of(call)
    if function is None or ctx.loops(call) or not _gives_the_same(call, ctx) or _is_rough(function, call):
        return None
    names, _ = needed(made, function)
    if feeds_itself(call, function):
        return None
    scope = ctx.own_scope(function)
    params = [
        param.name for param in ctx.program.function(scope).params if param.name.lstrip("=*") not in ("self", "cls")
    ]
    given = [name for name in params if name in names and not OVER_BATCHES.search(name) and not PLURAL.search(name)]
    held = [name for name in params if name in set(names_in(call.func))]
    for edge in ctx.program.callers(scope):
        if edge.callback or edge.confidence < Confidence.HIGH:
            continue
        own = _targets_around(edge, ctx)
        if own and not any(own & _names_of(ctx.program.argument(edge, name)) for name in held):
            if any(own & _names_behind(ctx.program.argument(edge, name), edge, ctx) for name in given):
                return edge
    return None


def _is_rough(function: ast.AST, call: ast.Call) -> bool:
    """Whether a function times, trains or changes what it runs, or generates token by token."""
    if re.search(r"generat|(?:^|_)decode|stream|^_*sample_", getattr(function, "name", ""), re.IGNORECASE):
        return True
    names = set(names_in(function))
    return any(TIMES.search(name) or CHANGED_BY_RUN.search(name) for name in names) or _changes_model(function, call)


def _targets_around(edge: Edge, ctx: Context) -> set[str]:
    """The targets of the innermost loop around a call in another function, where its turns are single samples."""
    facts = ctx.program.function(edge.caller)
    index = _loop_index(edge, ctx)
    if index is None or _is_busy(facts):
        return set()
    loop = facts.loops[index]
    # The turns of a `range` are numbers, and a call that is given one is not given a sample.
    if loop.kind == "while" or "range(" in loop.text or OVER_BATCHES.search(loop.text) or _is_written_out(loop, facts):
        return set()
    return set(loop.targets)


def _is_written_out(loop: LoopFacts, facts: FunctionFacts) -> bool:
    """Whether a loop of another function runs over a handful that is written out."""
    rows = loop.iterable
    while isinstance(rows, tuple) and rows[0] == "call" and rows[1] in _WRAPPERS and rows[2]:
        rows = rows[2][0]
    found = facts.binds.get(rows, ()) if isinstance(rows, str) else (rows,)
    return any(isinstance(item, tuple) and item[0] == "seq" and 0 < len(item[1]) < _FEW for item in found)


def _loop_index(edge: Edge, ctx: Context) -> int | None:
    contexts, context = ctx.program.function(edge.caller).contexts, edge.context
    while context >= 0:
        if contexts[context].kind == "loop":
            return int(contexts[context].detail)
        context = contexts[context].parent
    return None


def _loop_header(edge: Edge, ctx: Context) -> str:
    index = _loop_index(edge, ctx)
    text = ctx.program.function(edge.caller).loops[index].text if index is not None else ""
    return re.sub(r"^.*?\bin\s+|:\s*$", "", text)


def _names_of(value: object) -> set[str]:
    """The names in a value of the summaries' notation."""
    if isinstance(value, str):
        return {value.partition(".")[0]}
    if not isinstance(value, tuple) or (value and value[0] in ("const", "lambda")):
        return set()
    parts = value[1:] if value and isinstance(value[0], str) else value
    return {name for part in parts for name in _names_of(part)}


def _names_behind(value: object, edge: Edge, ctx: Context) -> set[str]:
    """The names in what a call passes, and those that the names it passes are set from."""
    names = _names_of(value)
    if isinstance(value, str) and "." not in value:
        for given in ctx.program.function(edge.caller).binds.get(value, ()):
            names |= _names_of(given)
    return names


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


def _is_busy(facts: FunctionFacts) -> bool:
    """Whether the caller trains, plays or measures."""
    called = {str(call.func).rpartition(".")[2] for call in facts.calls}
    return any(TIMES.search(name) or CHANGED_BY_RUN.search(name) for name in called)
