"""TPL602: text generated for one prompt at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Effect, Finding, Hop, Impact, Rule, Tag
from perflint.api.gradients import name_of_whole
from perflint.api.loops import is_timed_each_turn, is_timing, turns_few_times
from perflint.api.names import MODEL, OVER_BATCHES
from perflint.api.phases import one_text_helper
from perflint.api.samples import adds_to_inputs, feeds_itself, handed_out, is_one_text, shows_each, text_of_turn

_ADVICE = (
    "Generate for several texts at once: pad on the left (`padding_side='left'`), pass the attention mask, remove the "
    "prompts and use `batch_decode`."
)
_ADVICE_FOR_HELPER = (
    "Let it accept several texts and generate for all at once: pad on the left (`padding_side='left'`), pass the "
    "attention mask and use `batch_decode`."
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
        if (function is not None and is_timing(function)) or adds_to_inputs(node, loop, ctx):
            return
        if turns_few_times(loop, ctx, 10) or shows_each(loop, ctx) or is_timed_each_turn(node, loop):
            return
        if feeds_itself(node, loop):
            return
        if helper is None:
            text = text_of_turn(node, loop, ctx)
            place = None if text is None else ctx.hop(text, "one text is tokenized here")
        else:
            one = any(is_one_text(item, loop) for item in helper.texts)
            place = Hop(helper.path, helper.line, "it generates here, for one text") if one else None
        if place is None:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` generates for one text per iteration of the loop over `{ctx.text(loop.iter)}`.",
            advice=_ADVICE if helper is None else _ADVICE_FOR_HELPER,
            related=(place,),
        )


def _is_model(receiver: ast.expr, ctx: Context) -> bool:
    kind = ctx.kind(receiver)
    return kind.tag is Tag.MODULE or (not kind.known and bool(MODEL.search(name_of_whole(receiver).lower())))
