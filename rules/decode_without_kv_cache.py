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
    argument,
    callee_name,
    is_constant,
    keyword,
    last_name,
    walk,
)
from perflint.api.gradients import asks_for_gradients, is_model_call
from perflint.api.loops import names_in, turns_few_times
from perflint.api.names import CACHE, KNOWN_TEXT, WITHOUT_CACHE

#: So few tokens that what came before is as well computed again.
_FEW = 4
#: What picks the next token.
_PICKS = frozenset("argmax multinomial topk sample categorical".split())
#: What the sequence can go through on its way to the model.
_MOVES = frozenset("to cuda cpu long contiguous unsqueeze".split())


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
        forward = _forward_on_grown(node, ctx)
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


def _forward_on_grown(node: ast.Call, ctx: Context) -> ast.Call | None:
    """The forward on the whole sequence, where its loop then adds the picked token to that sequence."""
    statement, parts = ctx.tree.parent(node), argument(node, 0, "tensors")
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not ctx.is_call_of(node, *_JOINS):
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(parts, (ast.List, ast.Tuple)) or len(parts.elts) != 2:
        return None
    first, new = parts.elts
    if not isinstance(first, ast.Name) or first.id != target.id:
        return None
    loops = ctx.loops(statement)
    if not loops or turns_few_times(loops[0], ctx) or _trains(loops[0]):
        return None
    loop = loops[0]
    if _names_a_cache(loop) or _is_cropped(loop, target.id, statement):
        return None
    forwards = [
        part
        for part in ctx.walk(loop)
        if isinstance(part, ast.Call) and _takes(part, target.id) and is_model_call(part, ctx)
    ]
    if len(forwards) != 1 or not _is_picked(new, forwards[0], loop):
        return None
    return forwards[0]


_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


def _trains(loop: ast.stmt) -> bool:
    """Whether the loop trains; `no_grad` in it is no sign of that."""
    return asks_for_gradients(loop) and not any(
        isinstance(part, ast.Attribute) and part.attr in ("no_grad", "inference_mode") for part in walk(loop)
    )


def _names_a_cache(loop: ast.stmt) -> bool:
    for part in walk(loop):
        name = last_name(part)
        if isinstance(part, ast.keyword):
            name = "" if part.arg == "use_cache" and is_constant(part.value, value=False) else part.arg or "past"
        if name != "empty_cache" and CACHE.search(name):
            return True
    return False


def _is_cropped(loop: ast.stmt, name: str, grown: ast.stmt) -> bool:
    """Whether the loop takes a window of the sequence, or sets it in another way."""
    for part in walk(loop):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id == name:
            if any(isinstance(item, ast.Slice) and item.lower is not None for item in walk(part.slice)):
                return True
        if isinstance(part, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and part is not grown:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            if any(name in names_in(target) for target in targets):
                return True
    return False


def _takes(call: ast.Call, name: str) -> bool:
    """Whether the whole sequence is an argument of its own."""
    for given in [*call.args, *(part.value for part in call.keywords)]:
        item = given
        while isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in _MOVES:
            item = item.func.value
        if isinstance(item, ast.Name) and item.id == name:
            return True
    return False


def _is_picked(new: ast.expr, forward: ast.Call, loop: ast.stmt) -> bool:
    """Whether what is added comes from the forward, through a choice of a token."""
    reached: list[ast.AST] = [new]
    seen: set[str] = set()
    picks = found = False
    while reached:
        region = reached.pop()
        for part in walk(region):
            found = found or part is forward
            if isinstance(part, ast.Call):
                called = part.func
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                picks = picks or name in _PICKS or "sample" in name
            if isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                reached += [item.value for item in _settings(loop, part.id)]
    return picks and found


def _settings(loop: ast.stmt, name: str) -> list[ast.Assign]:
    return [
        part
        for part in walk(loop)
        if isinstance(part, ast.Assign)
        and any(isinstance(item, ast.Name) and item.id == name for target in part.targets for item in walk(target))
    ]
