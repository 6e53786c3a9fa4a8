"""Normalizations that are written out: which tensor a mean and a root scale, and over which dimension."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias, TypeVar

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import argument, is_constant, keyword

T = TypeVar("T")
_Look: TypeAlias = "Callable[[ast.expr, FileFacts, int], T | None]"
_ROOTS = ("torch.rsqrt", "torch.sqrt")
_SQUARES = ("torch.square", "torch.pow")
_MEANS = ("torch.mean",)
_VARIANCES = ("torch.var",)
_DEEP = 3


class Moment(NamedTuple):
    """A mean over one dimension that stays, as one: of squares, or a variance around the mean."""

    of: ast.expr
    dim: int
    centered: bool


def rms_norm(root: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """`x` of `x * rsqrt(mean(x ** 2) + eps)`, over its last dimension. None for another root, and for a layer norm:
    that takes the mean from `x` before.
    """
    moment = _moment_under(root, ctx)
    scaled = _scaled_by(root, ctx) if moment is not None and moment.dim == -1 and not moment.centered else None
    if moment is None or scaled is None or not _same(scaled, moment.of, ctx):
        return None
    return None if _centered(scaled, -1, ctx) is not None else plain(moment.of)


def layer_norm(root: ast.Call, ctx: FileFacts) -> tuple[ast.expr, int] | None:
    """`x` of `(x - mean(x)) / sqrt(var(x) + eps)` and the dimension, the last or the one at 1; None for another root,
    and where the mean or the root is wanted for more, to undo the normalization.
    """
    moment = _moment_under(root, ctx)
    scaled = _scaled_by(root, ctx) if moment is not None else None
    if moment is None or scaled is None or not (moment.dim == -1 or (moment.dim == 1 and _is_of_pictures(root, ctx))):
        return None
    # The gain may come before: `gain * (x - mean) / sqrt(var + eps)`.
    is_product = isinstance(scaled, ast.BinOp) and isinstance(scaled.op, ast.Mult)
    factors = [scaled.left, scaled.right] if is_product else [scaled]  # type: ignore[attr-defined]
    centered = next((found for one in factors if (found := _centered(one, moment.dim, ctx)) is not None), None)
    if centered is None or _is_wanted_for_more(root, ctx):
        return None
    source = moment.of if moment.centered else _centered(moment.of, moment.dim, ctx)
    if source is None or not any(_same(source, one, ctx) for one in (centered, *factors)):
        return None
    return plain(centered), moment.dim


def plain(node: ast.expr) -> ast.expr:
    """`x` of `x.float()` and `x.to(torch.float32)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "to"):
        node = node.func.value
    return node


def _moment_under(root: ast.Call, ctx: FileFacts) -> Moment | None:
    value = _operand(root, ctx, _ROOTS)
    return None if value is None else _moment(value, ctx)


def _operand(node: ast.expr, ctx: FileFacts, functions: tuple[str, ...]) -> ast.expr | None:
    """`v` of `torch.rsqrt(v)` and of `v.rsqrt()`."""
    if not isinstance(node, ast.Call):
        return None
    if ctx.is_call_of(node, *functions):
        return node.args[0] if node.args else keyword(node, "input")
    if isinstance(node.func, ast.Attribute) and ctx.target(node.func) not in functions:
        names = {function.rpartition(".")[2] for function in functions}
        return node.func.value if node.func.attr.rstrip("_") in names else None
    return None


def _moment(node: ast.expr, ctx: FileFacts, depth: int = _DEEP) -> Moment | None:
    """What `x.pow(2).mean(-1, keepdim=True) + eps` and `x.var(-1, keepdim=True, unbiased=False)` measure, under a name
    as well.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _moment(node.left, ctx, depth) or _moment(node.right, ctx, depth)
    for functions, centered in ((_MEANS, False), (_VARIANCES, True)):
        value = _operand(node, ctx, functions)
        if value is None or not isinstance(node, ast.Call):
            continue
        dim = _dimension(node, functions, ctx)
        of = value if centered else _square(value, ctx)
        if of is None or dim is None or (centered and not _is_biased(node)):
            return None
        return Moment(of, dim, centered)
    return _behind_name(node, ctx, depth, _moment)


def _dimension(mean: ast.Call, functions: tuple[str, ...], ctx: FileFacts) -> int | None:
    """The one dimension that a mean goes over and keeps."""
    position = 1 if ctx.is_call_of(mean, *functions) else 0
    dims = argument(mean, position, "dim")
    if isinstance(dims, (ast.Tuple, ast.List)) and len(dims.elts) == 1:
        dims = dims.elts[0]
    # `var` has had `unbiased` where `mean` has `keepdim`, so that only a keyword tells.
    keeps = argument(mean, position + 1, "keepdim") if functions is _MEANS else keyword(mean, "keepdim")
    if keeps is None or not is_constant(keeps, value=True) or dims is None:
        return None
    try:
        dim = ast.literal_eval(dims)
    except ValueError:
        return None
    return dim if isinstance(dim, int) else None


def _is_biased(variance: ast.Call) -> bool:
    """Whether a variance is divided by the number of elements, as `layer_norm` does."""
    unbiased, correction = keyword(variance, "unbiased"), keyword(variance, "correction")
    return (unbiased is not None and is_constant(unbiased, value=False)) or (
        correction is not None and is_constant(correction, 0)
    )


def _square(node: ast.expr, ctx: FileFacts) -> ast.expr | None:
    """`x` of `x ** 2`, `x * x`, `x.pow(2)`, `x.square()` and `torch.square(x)`."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and is_constant(node.right, 2):
            return node.left
        is_product = isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right)
        return node.left if is_product else None
    value = _operand(node, ctx, _SQUARES)
    if value is None or not isinstance(node, ast.Call):
        return None
    exponent = argument(node, 1 if ctx.is_call_of(node, *_SQUARES) else 0, "exponent")
    return value if exponent is None or is_constant(exponent, 2) else None


def _centered(node: ast.expr, dim: int, ctx: FileFacts, depth: int = _DEEP) -> ast.expr | None:
    """`x` of `x - x.mean(dim, keepdim=True)`, where the difference or the mean has a name or none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        of = _mean_of(node.right, dim, ctx, depth)
        return node.left if of is not None and _same(node.left, of, ctx) else None
    return _behind_name(node, ctx, depth, lambda value, ctx, depth: _centered(value, dim, ctx, depth))


def _mean_of(node: ast.expr, dim: int, ctx: FileFacts, depth: int) -> ast.expr | None:
    value = _operand(node, ctx, _MEANS)
    if value is not None and isinstance(node, ast.Call):
        return value if _dimension(node, _MEANS, ctx) == dim else None
    return _behind_name(node, ctx, depth, lambda value, ctx, depth: _mean_of(value, dim, ctx, depth))


def _scaled_by(node: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """`x` of `x * rsqrt(...)` and of `x / sqrt(...)`, where the root has a name or none."""
    divides = isinstance(node.func, ast.Attribute) and node.func.attr == "sqrt"
    for use in _uses(node, ctx):
        outer = ctx.tree.parent(use)
        if isinstance(outer, ast.BinOp):
            if isinstance(outer.op, ast.Mult) and not divides:
                return outer.right if use is outer.left else outer.left
            if isinstance(outer.op, ast.Div) and divides and use is outer.right:
                return outer.left
    return None


def _uses(node: ast.Call, ctx: FileFacts) -> Iterator[ast.expr]:
    yield node
    statement = ctx.tree.statement_of(node)
    if not (isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1):
        return
    target, function = statement.targets[0], ctx.tree.function_of(node)
    if isinstance(target, ast.Name) and function is not None:
        yield from (part for part in ctx.tree.named(target.id, function) if isinstance(part.ctx, ast.Load))


def _is_of_pictures(root: ast.Call, ctx: FileFacts) -> bool:
    """Whether what is normalized is scaled by a parameter that is spread over height and width, `weight[:, None, None]`
    or `weight.view(1, C, 1, 1)`: then the dimension at 1 holds channels, not times.
    """
    function = ctx.tree.function_of(root)
    return function is not None and any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Mult)
        and (_is_spread(part.left) or _is_spread(part.right))
        for part in ctx.walk(function)
    )


def _is_spread(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        return [is_constant(item, None) for item in node.slice.elts[-2:]] == [True, True]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "view":
        return False
    return [is_constant(item, 1) for item in node.args[-2:]] == [True, True]


def _is_wanted_for_more(root: ast.Call, ctx: FileFacts) -> bool:
    """Whether the root has a name that more than one place reads, or that outlives the function."""
    statement = ctx.tree.statement_of(root)
    if isinstance(statement, ast.Assign) and any(not isinstance(target, ast.Name) for target in statement.targets):
        return statement.value is root
    uses = list(_uses(root, ctx))  # the root itself, and where its name is read
    return len(uses) > 2


def _same(left: ast.expr, right: ast.expr, ctx: FileFacts) -> bool:
    """Whether both are one tensor, up to its dtype: `x` and `x.float()`."""
    return ast.dump(plain(left)) == ast.dump(plain(right)) or _source(left, ctx) == _source(right, ctx)


def _source(node: ast.expr, ctx: FileFacts) -> str:
    """The text of what a name holds, where that is one other tensor cast: `x32 = x.float()`."""
    node = plain(node)
    if isinstance(node, ast.Name):
        made = ctx.inference.flow.definitions(node)
        values = [item.value for item in made if item.value is not None and not item.path]
        if len(made) == len(values) == 1 and plain(values[0]) is not values[0]:
            return ctx.text(plain(values[0]))
    return ctx.text(node)


def _behind_name(node: ast.expr, ctx: FileFacts, depth: int, look: _Look[T]) -> T | None:
    if not isinstance(node, ast.Name) or depth == 0:
        return None
    made = ctx.inference.flow.definitions(node)
    if len(made) != 1 or made[0].value is None or made[0].path:
        return None
    return look(made[0].value, ctx, depth - 1)
