"""TPL115: training text padded to the longest length there is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Impact, Rule, Tier, callee_name, is_constant
from perflint.api.loading import is_cut_to_length, is_short_length, option_of, prepares_training_data
from perflint.api.names import OF_TPUS
from perflint.api.phases import is_for_evaluation
from perflint.api.samples import is_tokenizer

from ._shared.jax import trains_with_jax

_METHODS = ("encode_plus", "batch_encode_plus", "pad")
_NAMES = ("tokenizer", "tok", "_tokenizer", "text_tokenizer", "processor")
_COLLATORS = ("DataCollatorWithPadding", "DataCollatorForSeq2Seq", "DataCollatorForTokenClassification")
#: What has to be of one length: programs that are compiled for their shapes, and encoders of short prompts.
_STATIC = ("xla", "torch_xla", "tpu", "TPU", "neuron", "CLIP", "CLIPTokenizer", "CLIPTextModel")
#: What trains without a loop of the program's own.
_TRAINERS = ("Trainer", "Seq2SeqTrainer", "SFTTrainer", "SentenceTransformerTrainer")


class PadToMaxLength(Rule):
    """Padding every text to the maximum length makes the model compute on padding.

    What it does

    Reports tokenizer calls with `padding="max_length"` that make training batches.

    Why is this slow?

    Each batch is as long as the longest allowed text instead of the longest text in it. Texts of 100 tokens padded to
    512 are five times the tokens, and the cost of attention grows faster than that. The mask keeps the result
    correct, but the work is done.

    What to do

    Pad to the longest text of the batch in the collate function: `padding=True` or `DataCollatorWithPadding`. Sorting
    by length, or packing, saves more.

    Fix safety

    No fix: padding moves to another function, and batches change their shape.

    Not reported

    - Programs that need one shape: XLA, CUDA graphs, compiled models that must not be recompiled.
    - Text encoders that were trained on full-length padding, such as CLIP's.
    - Texts of about ten tokens, also by the default of a `max_length` parameter.
    - Texts that are cut from a longer text, audio, and evaluation.

    References

    - Hugging Face transformers, padding and truncation: https://huggingface.co/docs/transformers/pad_truncation
    """

    code, name = "TPL115", "pad-to-max-length"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    listens = (Calls(*_NAMES, *_METHODS, *_COLLATORS),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not is_constant(option_of(node, "padding", ctx), "max_length") or not _pads_text(node, ctx):
            return
        if (
            not (ctx.program.whole.has_training or ctx.program.mentions(_TRAINERS))
            or ctx.role(node) in ("eval", "decode", "forward")
            or ctx.grad_off(node)
        ):
            return
        if _needs_one_shape(ctx) or is_for_evaluation(node, ctx) or not prepares_training_data(node, ctx):
            return
        if _is_for_jax(node, ctx) or option_of(node, "sampling_rate", ctx) is not None or is_cut_to_length(node, ctx):
            return
        longest = option_of(node, "max_length", ctx)
        if longest is not None and is_short_length(longest, ctx):
            return
        length = f"`{ctx.text(longest)}`" if longest is not None else "the model's maximum length"
        yield self.finding(
            node,
            ctx,
            f"Each text is padded to {length}, so the model computes on padding in every step.",
            advice="Pad to the longest text of the batch in the collate function: `padding=True`.",
            confidence=Confidence.MEDIUM,
        )


def _is_for_jax(node: ast.Call, ctx: Context) -> bool:
    """Whether the batch is for a program that is compiled for its shapes, one file of which this is."""
    tensors = option_of(node, "return_tensors", ctx)
    return trains_with_jax(ctx) or any(is_constant(tensors, name) for name in ("jax", "tf"))


def _pads_text(node: ast.Call, ctx: Context) -> bool:
    if callee_name(node) in _COLLATORS:
        return True
    func = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS else node.func
    return is_tokenizer(func, ctx)


def _needs_one_shape(ctx: Context) -> bool:
    return ctx.program.mentions(_STATIC) or bool(OF_TPUS.search(ctx.source.text))
