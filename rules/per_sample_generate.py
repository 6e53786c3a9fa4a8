"""TPL602: text generated for one prompt at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Effect,
    Finding,
    Hop,
    Impact,
    Rule,
    Tag,
    callee_name,
    keyword,
    walk,
)
from perflint.api.gradients import name_of_whole
from perflint.api.loops import CLOCKS, is_timing, names_in, turns_few_times
from perflint.api.names import MODEL, OVER_BATCHES
from perflint.api.phases import Helper, one_text_helper
from perflint.api.samples import (
    bound_by,
    feeds_itself,
    handed_out,
    is_several_texts,
    is_tokenizer_call,
    moves_values,
    needed,
    shows_each,
)


class PerSampleGenerate(Rule):
    """Generating for one prompt at a time leaves the device idle where one batch would fill it.

    What it does

    Reports `generate` on a single prompt in a loop over prompts.

    Why is this slow?

    Each new token of one prompt reads all weights of the model. A batch of prompts reads them once for all, so many
    prompts take hardly longer than one until compute is the bottleneck.

    What to do

    Tokenize several prompts together and generate for all of them: `tokenizer(texts, padding=True,
    return_tensors="pt")` with `tokenizer.padding_side = "left"` for a decoder-only model. Pass the attention mask.
    Remove the prompt's tokens from the result and decode with `batch_decode`.

    Fix safety

    No fix: padding on the wrong side, or a missing mask, changes the output.

    Not reported

    - Prompts with different stopping rules or parameters.
    - Conversations whose next prompt depends on the last answer, and interactive use.
    - Serving engines that batch by themselves, and measurements of single-stream speed.
    - Loops over batches, and tests.

    References

    - transformers, text generation: https://huggingface.co/docs/transformers/llm_tutorial
    """

    code, name = "TPL602", "per-sample-generate"
    impact = Impact.HIGH
    confidence = Confidence.MEDIUM
    listens = (Calls("generate", doing=(Effect.GENERATES,)),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        helper = None
        if not isinstance(node.func, ast.Attribute) or not _is_model(node.func.value, ctx):
            helper = one_text_helper(node, ctx)
            if helper is None:
                return
        loop = next((item for item in ctx.loops(node) if isinstance(item, ast.For)), None)
        function = ctx.tree.function_of(node)
        if (
            loop is None
            or OVER_BATCHES.search(handed_out(loop.iter, ctx))
            or OVER_BATCHES.search(ctx.text(loop.target))
        ):
            return
        if (function is not None and is_timing(function)) or _carries_over(loop, node, ctx):
            return
        if turns_few_times(loop, ctx, 10) or shows_each(loop, ctx) or _is_timed(node, loop):
            return
        if feeds_itself(node, loop):
            return
        if helper is not None:
            if any(_is_one_text(item, loop) for item in helper.texts):
                yield self._behind(node, loop, helper, ctx)
            return
        text = _text_of(node, loop, ctx)
        if text is None:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` generates for one text per iteration of the loop over `{ctx.text(loop.iter)}`.",
            advice=(
                "Generate for several texts at once: pad on the left (`padding_side='left'`), pass the "
                "attention mask, remove the prompts and use `batch_decode`."
            ),
            related=(ctx.hop(text, "one text is tokenized here"),),
        )

    def _behind(self, node: ast.Call, loop: ast.For, helper: Helper, ctx: Context) -> Finding:
        return self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` generates for one text per iteration of the loop over `{ctx.text(loop.iter)}`.",
            advice=(
                "Let it accept several texts and generate for all at once: pad on the left "
                "(`padding_side='left'`), pass the attention mask and use `batch_decode`."
            ),
            related=(Hop(helper.path, helper.line, "it generates here, for one text"),),
        )


def _is_timed(node: ast.Call, loop: ast.For) -> bool:
    """Whether the clock is read in the loop before the generation and after it: how long each takes is the question."""
    clocks = [part.lineno for part in walk(loop) if isinstance(part, ast.Call) and callee_name(part) in CLOCKS]
    return any(line < node.lineno for line in clocks) and any(line > node.lineno for line in clocks)


def _is_model(receiver: ast.expr, ctx: Context) -> bool:
    kind = ctx.kind(receiver)
    return kind.tag is Tag.MODULE or (not kind.known and bool(MODEL.search(name_of_whole(receiver).lower())))


def _text_of(node: ast.Call, loop: ast.For, ctx: Context) -> ast.Call | None:
    """The tokenizer's call that turns this turn's one text into the inputs, where nothing else can be meant."""
    given = [*node.args, *(item.value for item in node.keywords if item.arg in (None, "input_ids", "inputs"))]
    for value in given:
        for made in _origins(value, ctx):
            if not is_tokenizer_call(made):
                continue
            if _is_one_text(made.args[0], loop) or _is_text_of_turn(made, loop, ctx):
                return made
    embedded = keyword(node, "inputs_embeds")
    return None if embedded is None else _text_behind(embedded, loop, ctx)


def _text_behind(embedded: ast.expr, loop: ast.For, ctx: Context) -> ast.Call | None:
    """The tokenizer's call whose one text the embeddings of this turn are made from."""
    for part in needed(embedded, loop)[1]:
        for made in walk(part):
            if isinstance(made, ast.Call) and is_tokenizer_call(made) and _is_text_of_turn(made, loop, ctx):
                return made
    return None


def _origins(value: ast.expr, ctx: Context) -> Iterator[ast.Call]:
    """The calls that inputs come from: through `.to(device)`, `.input_ids`, `["input_ids"]` and names."""
    if isinstance(value, ast.Starred):
        value = value.value
    for _ in range(6):
        if isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        elif isinstance(value, ast.Call):
            if isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "cuda"):
                value = value.func.value
                continue
            yield value
            return
        elif isinstance(value, ast.DictComp) and moves_values(value):
            moved = value.generators[0].iter
            value = moved.func if isinstance(moved, ast.Call) else moved
        elif isinstance(value, ast.Name):
            found = ctx.inference.origins(value)
            if len(found) != 1 or found[0] is value:
                return
            value = found[0]
        else:
            return


def _is_one_text(value: ast.expr, loop: ast.For) -> bool:
    """The loop's own element, an item of it, or a text made with it; a list of one text is one text."""
    if isinstance(value, ast.List) and len(value.elts) == 1:
        value = value.elts[0]
    if not isinstance(value, (ast.Name, ast.Subscript, ast.JoinedStr, ast.BinOp)):
        return False
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        return False
    return bool(set(names_in(value)) & set(names_in(loop.target)))


def _is_text_of_turn(made: ast.Call, loop: ast.For, ctx: Context) -> bool:
    """Whether one text is written in the loop from what the turn hands out: `prompt = template.format(row["text"])`."""
    if _steps(loop.iter) or is_several_texts(made.args[0], ctx):
        return False
    if not bound_by(loop) & needed(made.args[0], loop)[0]:
        return False
    # Several texts have several lengths, and make a tensor only when they are padded.
    return ctx.kind(made.args[0]).tag is Tag.STRING or not any(item.arg == "padding" for item in made.keywords)


def _steps(rows: ast.expr) -> bool:
    """`range(0, len(texts), size)`, whose turns are batches."""
    return any(
        isinstance(part, ast.Call) and name_of_whole(part.func) == "range" and len(part.args) > 2 for part in walk(rows)
    )


def _carries_over(loop: ast.For, node: ast.Call, ctx: Context) -> bool:
    """Whether a turn needs the last one's answer: a history that the loop reads and adds to."""
    asked = set(names_in(node)) | {name for made in _all_inputs(node, ctx) for name in names_in(made)}
    written = ctx.inference.flow.names_mutated(loop) - set(names_in(loop.target))
    return bool(asked & written)


def _all_inputs(node: ast.Call, ctx: Context) -> Iterator[ast.Call]:
    for value in [*node.args, *(item.value for item in node.keywords)]:
        yield from _origins(value, ctx)
