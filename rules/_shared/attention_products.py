"""The two products of attention as they are written: which factors they take, and in which layout."""

from __future__ import annotations

import ast

from perflint.api import Context, attention, callee_name, of_tensor

from .ranks import rank_of_factors

#: What gives a picture the shape of tokens.
_SHAPED = ("view", "reshape", "flatten")
#: Dimensions of what `bmm` gives.
_BATCHED = 3


def is_product(node: ast.AST, ctx: Context) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    if not isinstance(node, ast.Call):
        return False
    name = callee_name(node)
    return name == "einsum" or name in attention.PRODUCT_METHODS or ctx.target(node.func) in attention.PRODUCTS


def has_rank(product: ast.expr, rank: int, ctx: Context) -> bool:
    """Whether the scores have that many dimensions, so that the one of the softmax is the last."""
    if isinstance(product, ast.Call) and callee_name(product) in ("bmm", "baddbmm"):
        return rank == _BATCHED
    if isinstance(product, ast.Call) and callee_name(product) == "einsum":
        spec, _ = _einsum(product)
        return spec is not None and "." not in spec[2] and len(spec[2]) == rank
    pair = _factors(product, ctx)
    if pair is None:
        return False
    return rank_of_factors(pair, ctx) == rank


def query_and_key(product: ast.expr, ctx: Context) -> tuple[ast.expr, ast.expr, bool] | None:
    """The factors of `query @ key^T`, or of an einsum that multiplies each query with each key; and whether it is
    `query^T @ key`, of tokens in columns."""
    if isinstance(product, ast.Call) and callee_name(product) == "einsum":
        spec, factors = _einsum(product)
        if spec is None or not _is_query_by_key(*spec):
            return None
        return *factors, False
    pair = _factors(product, ctx)
    if pair is None:
        return None
    query, key = pair
    rows, columns = _transposed(key), _transposed(query)
    if rows is not None:
        return None if columns is not None else (query, rows, False)
    if columns is not None:
        return columns, key, True
    if _is_transposed_before(key, ctx):
        return query, key, False
    # `theta = theta(x).view(b, c, -1).permute(0, 2, 1)`, and `phi = phi(x).view(b, c, -1)` with tokens in columns.
    return (query, key, False) if _is_transposed_before(query, ctx) and _is_viewed(key, ctx) else None


def _factors(product: ast.expr, ctx: Context) -> tuple[ast.expr, ast.expr] | None:
    """The two factors of a product of matrices."""
    if isinstance(product, ast.BinOp):
        return (product.left, product.right) if isinstance(product.op, ast.MatMult) else None
    if not isinstance(product, ast.Call):
        return None
    if ctx.target(product.func) == attention.BATCHED_SUM:
        return product.args[1], product.args[2]
    if ctx.target(product.func) in attention.PRODUCTS:
        return (product.args[0], product.args[1]) if len(product.args) == 2 else None
    if isinstance(product.func, ast.Attribute) and product.func.attr in attention.PRODUCT_METHODS:
        return (product.func.value, product.args[0]) if len(product.args) == 1 else None
    return None


def _transposed(node: ast.expr) -> ast.expr | None:
    """`key` of `key.transpose(-2, -1)`, `key.mT` and their kin."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return _transposed(node.left)
    if isinstance(node, ast.Call) and callee_name(node) == "contiguous" and isinstance(node.func, ast.Attribute):
        return _transposed(node.func.value)
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    if isinstance(node, ast.Call) and callee_name(node) in ("transpose", "swapaxes", "swapdims", "t", "permute"):
        taken = of_tensor(node)
        if taken is not None:
            return taken[0]
        return node.args[0] if len(node.args) > 1 else None  # `from torch import transpose`
    return None


def _is_transposed_before(key: ast.expr, ctx: Context) -> bool:
    """Whether a name holds keys whose last two dimensions were swapped, not those of heads and positions."""
    if not isinstance(key, ast.Name):
        return False
    made = ctx.inference.flow.definitions(key)
    return bool(made) and all(
        item.value is not None and not item.path and _swaps_last(item.value, ctx) for item in made
    )


def _is_viewed(key: ast.expr, ctx: Context) -> bool:
    """Whether a name holds what was given its shape, and not swapped since."""
    made = ctx.inference.flow.definitions(key) if isinstance(key, ast.Name) else ()
    return bool(made) and all(
        isinstance(item.value, ast.Call) and not item.path and callee_name(item.value) in _SHAPED for item in made
    )


def _swaps_last(value: ast.expr, ctx: Context) -> bool:
    if _transposed(value) is None:
        return False
    if isinstance(value, ast.Attribute):
        return True
    assert isinstance(value, ast.Call)
    taken = of_tensor(value)
    order = [ctx.text(item) for item in (taken[1] if taken is not None else value.args)]
    if callee_name(value) == "permute":
        return bool(order) and order[-1].isdigit() and int(order[-1]) != len(order) - 1
    return sorted(order[-2:]) in (["-1", "-2"], ["2", "3"])


def _einsum(call: ast.Call) -> tuple[tuple[str, str, str] | None, tuple[ast.expr, ast.expr]]:
    """The subscripts of both factors and the result, and the factors, also where they come first (einops)."""
    texts = [item for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    factors = [item for item in call.args if item not in texts]
    if len(texts) != 1 or len(factors) != 2:
        return None, (call, call)
    assert isinstance(texts[0].value, str)
    given, arrow, result = texts[0].value.partition("->")
    parts = given.split(",")
    if not arrow or len(parts) != 2:
        return None, (call, call)
    return (_letters(parts[0]), _letters(parts[1]), _letters(result)), (factors[0], factors[1])


def is_turned(product: ast.expr, ctx: Context) -> bool:
    """Whether a product takes factors of another layout than (..., tokens, width): `bqhd,bkhd->bhqk`, or keys that were
    transposed before.
    """
    if not isinstance(product, ast.Call) or callee_name(product) != "einsum":
        pair = _factors(product, ctx)
        return pair is not None and _transposed(pair[0]) is None and _transposed(pair[1]) is None
    spec, _ = _einsum(product)
    if spec is None:
        return False
    query, key, scores = spec
    return query[-1:] != key[-1:] or query[-2:-1] != scores[-2:-1] or key[-2:-1] != scores[-1:]


def _letters(text: str) -> str:
    """One letter for each subscript: einops allows words, which blanks tell apart."""
    text = text.replace("...", " . ").strip()
    words = text.split()
    # Blanks between single letters, or no blanks at all.
    if all(len(word) == 1 for word in words):
        return "".join(words)
    return text.replace(" ", "") if len(words) == 1 else "\0"


def _is_query_by_key(first: str, second: str, result: str) -> bool:
    """Whether one subscript is summed over, and the result ends in the queries' and the keys' positions; not where each
    head asks once, "bhd,bkd->bhk".
    """
    summed = (set(first) & set(second)) - set(result)
    if len(summed) != 1 or len(result) < 2 or "\0" in first + second + result:
        return False
    if set(first) - set(second) == {"h"}:
        return False
    return _own(result[-1], second, first) and _own(result[-2], first, second)


def _own(letter: str, of: str, other: str) -> bool:
    return letter in of and letter not in other


def value_by(node: ast.expr, ctx: Context) -> ast.expr | None:
    """The values that weights are multiplied with: `weights @ value`, for tokens in columns `value @ weights^T`."""
    outer = ctx.tree.parent(node)
    turned = ctx.tree.parent(outer) if isinstance(outer, ast.Attribute) else None
    if isinstance(turned, ast.Call) and _transposed(turned) is node:
        product = ctx.tree.parent(turned)
        factors = _factors(product, ctx) if isinstance(product, ast.expr) else None
        return factors[0] if factors is not None and factors[1] is turned else None
    if isinstance(outer, ast.Attribute):
        outer = ctx.tree.parent(outer)
    if isinstance(outer, ast.Call) and callee_name(outer) == "einsum":
        spec, pair = _einsum(outer)
        return pair[1] if spec is not None and pair[0] is node and _is_weights_by_value(*spec) else None
    factors = _factors(outer, ctx) if isinstance(outer, ast.expr) else None
    return factors[1] if factors is not None and factors[0] is node else None


def _is_weights_by_value(first: str, second: str, result: str) -> bool:
    """Whether the weights' last subscript, the keys' position, is the one that is summed over."""
    summed = (set(first) & set(second)) - set(result)
    return "\0" not in first + second + result and summed == {first[-1:]}
