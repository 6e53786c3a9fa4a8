"""TPL607: a model that is told to compute its attention the slow way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
    attention,
    is_constant,
    keyword,
    modules,
    pattern,
    walk,
)
from perflint.api.loops import names_in
from perflint.api.names import LOOKS_INSIDE

from ._shared.programs import file_passes

_SWITCHES = ("attn_implementation", "_attn_implementation")
_FAST = pattern(r"""["'](?:sdpa|flash_attention_[23]|flex_attention)["']""")
#: Names of models as they stand in identifiers such as "google/gemma-2-9b": `led` is one, `loaded` is none.
_WRITTEN_OUT = pattern(
    rf"^[\w.\-/]*(?<![A-Za-z])(?:{'|'.join(sorted(attention.WRITTEN_OUT_ONLY))})(?![a-z])[\w.\-/]*$", re.IGNORECASE
)


class EagerAttention(Rule):
    """A model is loaded with `attn_implementation="eager"`, but nothing reads its attention weights.

    What it does

    Reports `attn_implementation="eager"` in `from_pretrained` and similar calls of transformers.

    Why is this slow?

    By default, transformers uses `scaled_dot_product_attention`, which computes attention in one kernel. "eager"
    writes an L x L matrix per head and layer to memory, several times, and keeps it for the backward pass. On a GPU
    it also takes memory that grows with the square of the length.

    What to do

    Remove the argument, or pass `"sdpa"` or `"flash_attention_2"`.

    Fix safety

    Unsafe: same to rounding. A model without a fused path falls back to eager by itself, but code that perflint
    cannot see may read the weights.

    Not reported

    - Code that passes `output_attentions=True` or reads the weights.
    - Models with capped scores (Gemma 2), models without another path, and models with code of their own
      (`trust_remote_code`).
    - Hooks, interpretability, replaced attention, export, second derivatives, deterministic algorithms.
    - Code that compares implementations, or has a comment beside the argument.
    - Values that are chosen at run time.

    Measured

    On one CPU thread, the manual form took 1.65 times as long for 512 tokens and 3.5 times for 2048 (torch 2.13).

    References

    - `torch.nn.functional.scaled_dot_product_attention`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    - transformers, attention backends: https://huggingface.co/docs/transformers/attention_interface
    """

    code, name = "TPL607", "eager-attention"
    impact = Impact.MEDIUM
    listens = (Calls("from_pretrained", "from_config"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        switch = next((name for name in _SWITCHES if is_constant(keyword(node, name), "eager")), None)
        if switch is None or not _is_model(node, ctx):
            return
        if _is_on_purpose(node, ctx) or _is_needed(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f'`{switch}="eager"` makes each layer write its attention weights to memory, but nothing reads them.',
            advice=f'Remove `{switch}`, or pass `"sdpa"`.',
            confidence=Confidence.MEDIUM,
            fix=Fix(
                "Let transformers select the attention",
                Applicability.UNSAFE,
                (ctx.edit.remove_keyword(node, switch),),
                reason="code that perflint cannot see may read the attention weights",
                numerics="same to rounding",
            ),
        )


def _is_model(node: ast.Call, ctx: Context) -> bool:
    target = ctx.target(node.func)
    return target is not None and target.startswith("transformers.") and modules.makes_module(target)


def _is_needed(node: ast.Call, ctx: Context) -> bool:
    """Whether the model has no other way, or its weights are wanted somewhere."""
    if keyword(node, "trust_remote_code") is not None or any(item.arg is None for item in node.keywords):
        return True
    if _has_no_other_way(node, ctx):
        return True
    if ctx.program.mentions(attention.READERS) or ctx.program.whole.passes(tuple(sorted(attention.READERS))):
        return True
    return ctx.mentions(*attention.TAKES_APART) or file_passes(ctx, attention.TAKES_APART)


def _has_no_other_way(node: ast.Call, ctx: Context) -> bool:
    """Whether the class, or any model that the file names, is one that transformers computes step by step."""
    owner = (ctx.target(node.func) or "").lower()
    if any(name.replace("_", "").replace("-", "") in owner for name in attention.WRITTEN_OUT_ONLY if len(name) > 4):
        return True
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and _WRITTEN_OUT.search(part.value[:100])
        for part in walk(ctx.tree.module)
    )


def _is_on_purpose(node: ast.Call, ctx: Context) -> bool:
    """Whether the code shows that the slow way was chosen: by a comment, a name, a test, or the other way beside it."""
    lines = ctx.source.lines[node.lineno - 1 : node.end_lineno]
    if (
        any("#" in line for line in lines)
        or _FAST.search(ctx.source.text)
        or LOOKS_INSIDE.search(ctx.path.rpartition("/")[2])
    ):
        return True
    statement = ctx.tree.statement_of(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
    names = [name for target in targets if isinstance(target, ast.expr) for name in names_in(target)]
    if any(LOOKS_INSIDE.search(name) for name in (*names, *ctx.scope(node).function.split("."))):
        return True
    return any("attn" in ctx.text(test) for test, _ in ctx.conditions(node)) or _replaces_forwards(ctx)


def _replaces_forwards(ctx: Context) -> bool:
    """Whether the file gives modules another `forward`."""
    return any(
        isinstance(target, ast.Attribute) and target.attr == "forward"
        for node in walk(ctx.tree.module)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )
