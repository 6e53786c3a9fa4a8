"""TPL604: text generated without a key-value cache."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Impact,
    Rule,
    callee_name,
    is_constant,
    keyword,
    last_name,
)
from perflint.api.names import KNOWN_TEXT, WITHOUT_CACHE
from perflint.api.phases import forward_on_grown

#: So few tokens that what came before is as well computed again.
_FEW = 4


class DecodeWithoutKvCache(Rule):
    """Each new token is computed from the whole sequence, although keys and values could be cached.

    What it does

    Reports decoding loops that pass the growing sequence to the model, and `generate(use_cache=False)`.

    Why is this slow?

    A causal model computes the same keys and values for earlier tokens in every iteration. Without a cache, all of
    them are computed again for each new token.

    What to do

    Call `model.generate(...)`, which caches by default, or pass only the new token together with the
    `past_key_values` of the previous iteration. Remove `use_cache=False` from calls of `generate`.

    Fix safety

    No fix: a cache takes memory, and the loop must be rewritten.

    Not reported

    - Contexts that are cropped to a window: a cache is wrong once its first token is gone.
    - Models without causal attention.
    - Training, configurations and single forward passes, where `use_cache=False` is right.
    - Loops that name a cache or a state.

    Measured

    4 layers of width 128 took 2.4 times as long without a cache for 64 tokens, 5.4 times for 256 (CPU). The factor
    grows with the length.

    References

    - transformers, KV cache: https://huggingface.co/docs/transformers/kv_cache
    """

    code, name = "TPL604", "decode-without-kv-cache"
    impact = Impact.HIGH
    listens = (Calls("cat", "concat", "concatenate", "generate"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if WITHOUT_CACHE.search(str(ctx.path)):
            return
        if isinstance(node.func, ast.Attribute) and node.func.attr == "generate":
            if is_constant(keyword(node, "use_cache"), value=False) and not _is_short(node):
                yield self.finding(
                    node,
                    ctx,
                    "`use_cache=False` makes `generate` compute the whole sequence again for each new token.",
                    advice="Remove `use_cache=False`: `generate` caches keys and values by default.",
                )
            return
        forward = forward_on_grown(node, ctx)
        if forward is not None:
            yield self.finding(
                forward,
                ctx,
                f"`{ctx.text(forward)}` computes all earlier tokens again for each new one.",
                advice="Cache keys and values (`past_key_values`), and pass only the new token to the model.",
                confidence=Confidence.MEDIUM,
                related=(ctx.hop(node, "the sequence grows here"),),
            )


def _is_short(node: ast.Call) -> bool:
    """Whether a few tokens are generated: a written number of them, or as many as an answer that is known has."""
    wanted = keyword(node, "max_new_tokens")
    if isinstance(wanted, ast.Call):
        return (
            callee_name(wanted) == "len"
            and len(wanted.args) == 1
            and bool(KNOWN_TEXT.search(last_name(wanted.args[0])))
        )
    return isinstance(wanted, ast.Constant) and isinstance(wanted.value, int) and wanted.value <= _FEW
