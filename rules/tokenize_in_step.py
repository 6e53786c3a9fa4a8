"""TPL109: text tokenized in the training step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Rule,
    Scope,
    Tag,
    callee_name,
    modules,
    walk,
)
from perflint.api.gradients import is_of_the_host
from perflint.api.names import TOKENIZER
from perflint.api.phases import runs_rarely

_METHODS = ("encode", "encode_plus", "batch_encode_plus", "tokenize", "apply_chat_template", "predict")
_NAMES = ("tokenizer", "tok", "_tokenizer", "text_tokenizer", "bert_tokenizer", "clip_tokenizer")
#: What makes the text in the step itself: then there is nothing to tokenize beforehand.
_FRESH = frozenset("generate sample rollout rollouts respond chat completions".split())
_OPENS = frozenset({"load_dataset", "load_from_disk"})
#: What turns tokens into text, for the step's own use where it stands before the tokenizer, and for a log after it.
_DECODES = frozenset({"decode", "batch_decode"})


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
        if _makes_text(node, ctx) or _opens_data(node, ctx) or runs_rarely(node, ctx):
            return
        constant = isinstance(node.args[0], ast.Constant)
        if not constant and not _is_in_step(node, ctx) and not _comes_from_step(node, ctx):
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
        return _is_tokenizer(func.value, ctx)
    return isinstance(func, (ast.Name, ast.Attribute)) and _is_tokenizer(func, ctx)


def _is_tokenizer(node: ast.expr, ctx: Context) -> bool:
    kind = ctx.kind(node)
    if kind.tag is Tag.TOKENIZER:
        return True
    if kind.known and kind.tag is not Tag.INSTANCE:
        return False
    if not isinstance(node, (ast.Name, ast.Attribute)) or any(ref.path for ref in ctx.refs(node)):
        return False  # a tokenizer of the project's own may be anything, such as a module that quantizes images
    return bool(TOKENIZER.search(ctx.text(node).rpartition(".")[2])) and not is_of_the_host(node, ctx)


def _is_in_step(node: ast.Call, ctx: Context) -> bool:
    """Whether the call stands in the training loop itself, or in the step of a framework."""
    function = ctx.tree.function_of(node)
    if function is not None and function.name in ("training_step", "compute_loss", "train_step"):
        return True
    return any(ctx.is_root_loop(loop) for loop in ctx.loops(node))


def _makes_text(node: ast.Call, ctx: Context) -> bool:
    """Whether the step that tokenizes generates text, or decodes some before it tokenizes."""
    loops = [loop for loop in ctx.loops(node) if ctx.is_root_loop(loop)]
    function = ctx.tree.function_of(node)
    place: ast.AST = loops[0] if loops else function if function is not None else ctx.tree.statement_of(node)
    for part in walk(place):
        if isinstance(part, ast.Call):
            name = callee_name(part)
            if name in _FRESH or (name in _DECODES and (not loops or part.lineno <= node.lineno)):
                return True
    _, route, _ = ctx.heat_and_route(node)
    return any(re.search(r"generat|rollout|sampl|reward|env\b", hop.text, re.IGNORECASE) for hop in route)


def _opens_data(node: ast.Call, ctx: Context) -> bool:
    """Whether the function opens a data set first, to draw a few texts from it: none is called in each step. One that
    trains on what it has opened tokenizes in its own loop.
    """
    function = ctx.tree.function_of(node)
    if function is None or any(ctx.is_root_loop(loop) for loop in ctx.loops(node)):
        return False
    return any(isinstance(part, ast.Call) and callee_name(part) in _OPENS for part in walk(function))


def _comes_from_step(node: ast.Call, ctx: Context) -> bool:
    """Whether the text is handed down from the training loop, through functions none of which makes any."""
    scope, place = ctx.scope(node), node.lineno
    for _ in range(_LONGEST):
        facts = ctx.program.function(scope)
        edge = ctx.program.hottest_call(scope)
        names = {_last(call.func) for call in facts.calls}
        if edge is None or edge.confidence < Confidence.HIGH:
            return False
        if names & (_FRESH | _DECODES):
            return False
        scope, place = edge.caller, edge.line
        if _is_in_root_loop(scope, edge.context, ctx):
            calls = [call for call in ctx.program.function(scope).calls if _is_in_root_loop(scope, call.context, ctx)]
            return not any(
                _last(call.func) in _FRESH or (_last(call.func) in _DECODES and call.line <= place) for call in calls
            )
    return False


#: Calls between the loop and the tokenizer; past that many nobody follows the text.
_LONGEST = 6


def _is_in_root_loop(scope: Scope, context: int, ctx: Context) -> bool:
    contexts = ctx.program.function(scope).contexts
    while context >= 0:
        if contexts[context].kind == "loop":
            loop = ctx.program.roots.loops.get((scope, int(contexts[context].detail)))
            if loop is not None and loop.heat >= Heat.STEP:
                return True
        context = contexts[context].parent
    return False


def _last(value: object) -> str:
    if isinstance(value, str):
        return value.rpartition(".")[2]
    return str(value[2]) if isinstance(value, tuple) and len(value) > 2 and value[0] == "attr" else ""
