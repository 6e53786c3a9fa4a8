"""TPL109: text tokenized in the training step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, callee_name, modules
from perflint.api.phases import comes_from_step, makes_text, opens_data, runs_rarely, stands_in_step
from perflint.api.samples import is_tokenizer

_METHODS = ("encode", "encode_plus", "batch_encode_plus", "tokenize", "apply_chat_template", "predict")
_NAMES = ("tokenizer", "tok", "_tokenizer", "text_tokenizer", "bert_tokenizer", "clip_tokenizer")


class TokenizeInStep(Rule):
    """Text that is known before the loop is tokenized in the training step, while the device waits.

    What it does

    Reports calls of a tokenizer, or of `SentenceTransformer.encode`, in the training step, on text that comes from
    the data.

    Why is this slow?

    Tokenization is serial work on the host, between two steps, and is repeated on every epoch. It is hidden only
    while the host runs ahead of the device. Any read of a device value in the step removes that lead.

    What to do

    Tokenize once before the loop (`dataset.map(...)`), or in the dataset or `collate_fn` of a loader with workers.
    Tokenize text that is the same on every step (a prompt, an anchor) before the loop. Compute the embeddings of a
    frozen `SentenceTransformer` once, before the loop.

    Fix safety

    No fix: the text must be known before the loop.

    Not reported

    - Text that the step itself produces: reinforcement learning, generation, evaluation prompts, chat templates.
    - Decoding for a log.
    - Collate functions, and code that builds a model.

    References

    - Hugging Face datasets, batch mapping: https://huggingface.co/docs/datasets/about_map_batch
    - torch.utils.data, single- and multi-process data loading:
      https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading
    """

    code, name = "TPL109", "tokenize-in-step"
    impact = Impact.MEDIUM
    listens = (Calls(*_NAMES, *_METHODS),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not node.args or ctx.role(node) != "train":
            return
        # A frozen encoder of texts runs without gradients, and is the more worth running beforehand.
        encodes = ctx.target(node.func) in modules.TEXT_ENCODERS
        if not encodes and (not _is_tokenizer_call(node, ctx) or ctx.grad_off(node)):
            return
        if makes_text(node, ctx) or opens_data(node, ctx) or runs_rarely(node, ctx):
            return
        constant = isinstance(node.args[0], ast.Constant)
        if not constant and not stands_in_step(node, ctx) and not comes_from_step(node, ctx):
            return  # the text comes from a caller, who may have made it just now
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}(...)` {'tokenizes its texts' if encodes else ctx.heat(node).phrase} on the host"
            f"{' and ' + ctx.heat(node).phrase if encodes else ''}, and the device waits for its tokens."
            + (" The text is the same each time." if constant else ""),
            advice=_advice(encodes=encodes, constant=constant),
            confidence=Confidence.MEDIUM,
        )


def _advice(*, encodes: bool, constant: bool) -> str:
    if encodes:
        return "Encode the texts once before the loop, and reuse the embeddings: the encoder does not change."
    if constant:
        return "Tokenize before the loop."
    return "Tokenize before the loop, or in the dataset or collate function of a loader with workers."


def _is_tokenizer_call(node: ast.Call, ctx: Context) -> bool:
    func = node.func
    if callee_name(node) in _METHODS and isinstance(func, ast.Attribute):
        return is_tokenizer(func.value, ctx)
    return isinstance(func, (ast.Name, ast.Attribute)) and is_tokenizer(func, ctx)
