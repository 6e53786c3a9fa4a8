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
    walk,
)
from perflint.api.gradients import name_of_whole
from perflint.api.loops import CLOCKS, is_timing, names_in, turns_few_times
from perflint.api.names import MODEL, OVER_BATCHES
from perflint.api.phases import Helper, one_text_helper
from perflint.api.samples import (
    feeds_itself,
    handed_out,
    inputs_of,
    is_one_text,
    shows_each,
    text_of_turn,
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
            if any(is_one_text(item, loop) for item in helper.texts):
                yield self._behind(node, loop, helper, ctx)
            return
        text = text_of_turn(node, loop, ctx)
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


def _carries_over(loop: ast.For, node: ast.Call, ctx: Context) -> bool:
    """Whether a turn needs the last one's answer: a history that the loop reads and adds to."""
    asked = set(names_in(node)) | {name for made in inputs_of(node, ctx) for name in names_in(made)}
    written = ctx.inference.flow.names_mutated(loop) - set(names_in(loop.target))
    return bool(asked & written)
