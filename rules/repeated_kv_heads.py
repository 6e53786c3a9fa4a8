"""TPL612: key and value heads repeated in memory for an attention that takes them grouped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Rule,
    argument,
    callee_name,
    is_constant,
    last,
)

_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
#: `enable_gqa` is there since this version.
_SINCE = (2, 5)
_REPEATS = ("torch.repeat_interleave",)
#: Functions that repeat heads, by where they are defined.
_LIBRARY_REPEATS = ("repeat_kv",)
_HEAD_DIMENSIONS = (1, -3)
_MERGES = frozenset({"reshape", "flatten"})


class RepeatedKvHeads(Rule):
    """Key and value heads are repeated in memory, although the attention call takes them grouped.

    What it does

    Reports `scaled_dot_product_attention` without a mask tensor whose keys and values were repeated over heads.

    Why is this slow?

    The repetition writes each key and value once per query head of its group, and the attention reads all of them
    again. Both are activations of every layer, and a backward pass sums the copies. The flash kernel shares a key head
    among the query heads of a group by itself.

    What to do

    Pass keys and values as they are, with `enable_gqa=True`.

    Fix safety

    No fix: the order of the repeated heads has to be the one of `repeat_interleave`.

    Not reported

    - Calls with a mask tensor: grouped heads then leave the flash kernel.
    - Projects that support torch before 2.5.

    Known limitations

    - float32 inputs run in the math kernel, which repeats the heads itself.

    References

    - `torch.nn.functional.scaled_dot_product_attention`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    """

    code, name = "TPL612", "repeated-kv-heads"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("scaled_dot_product_attention"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        key, value = argument(node, 1, "key"), argument(node, 2, "value")
        if key is None or value is None or (ctx.torch_version or _SINCE) < _SINCE:
            return
        if not ctx.is_call_of(node, _ATTENTION) or _is_masked(node):
            return
        repeated = _repetition(key, ctx)
        if repeated is None or _repetition(value, ctx) is None:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(repeated)}` copies the key heads for every group of query heads; it {ctx.heat(node).phrase}.",
            advice="Pass keys and values without repeating them, and `enable_gqa=True`.",
            related=(ctx.hop(repeated, "the heads are repeated here"),),
        )


def _is_masked(node: ast.Call) -> bool:
    mask = argument(node, 3, "attn_mask")
    return mask is not None and not is_constant(mask, None)


def _repetition(node: ast.expr, ctx: Context) -> ast.Call | None:
    """The call that repeats heads, where all that may be given here comes from one."""
    origins = [item for item in ctx.inference.origins(node) if not _is_input(item, node)]
    found = [item for item in origins if isinstance(item, ast.Call) and _repeats(item, ctx)]
    return found[0] if found and len(found) == len(origins) else None


def _is_input(item: ast.expr, node: ast.expr) -> bool:
    return item is node and isinstance(node, ast.Name)


def _repeats(call: ast.Call, ctx: Context) -> bool:
    if callee_name(call) == "repeat_interleave":
        position = 2 if ctx.is_call_of(call, *_REPEATS) else 1
        dim = argument(call, position, "dim")
        return dim is not None and any(is_constant(_number(dim), number) for number in _HEAD_DIMENSIONS)
    target = ctx.target(call.func)
    if target is not None:
        return target.startswith("transformers.") and last(target) in _LIBRARY_REPEATS
    return _expands_heads(call, ctx)


def _number(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return ast.Constant(-node.operand.value)  # type: ignore[operator]
    return node


def _expands_heads(call: ast.Call, ctx: Context) -> bool:
    """Whether a function of the project expands a new dimension and merges it with the next: `repeat_kv(x, n)`."""
    ref = ctx.project_target(call.func)
    facts = ctx.program.summaries[ref.path].functions.get(ref.name) if ref is not None else None
    if facts is None or "expand" not in facts.identifiers.split():
        return False
    return any(_method(value) in _MERGES for value in facts.returns)


def _method(value: object) -> str:
    """The method that gives a returned value, as a summary has it."""
    if not isinstance(value, tuple) or value[0] != "call":
        return ""
    func = value[1]
    return func.rpartition(".")[2] if isinstance(func, str) else func[2] if func[0] == "attr" else ""
