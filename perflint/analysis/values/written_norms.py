"""Normalizations that are written out: which tensor a mean and a root scale, and over which dimension."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeVar

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.own_attributes import values_of
from perflint.analysis.values.written_roots import Root, operand, root_of, scaled_by, uses_of
from perflint.ir.calls import argument, is_constant, keyword

T = TypeVar("T")
_Look: TypeAlias = "Callable[[ast.expr, FileFacts, int], T | None]"
_SQUARES = ("torch.square", "torch.pow")
_MEANS = ("torch.mean",)
_VARIANCES = ("torch.var",)
_SPREADS = ("torch.std",)
_BOTH = ("torch.var_mean",)
_NORMS = ("torch.norm", "torch.linalg.norm", "torch.linalg.vector_norm")
_DEEP = 3
Dims: TypeAlias = "tuple[int, ...]"
LAST: Dims = (-1,)
CHANNELS: Dims = (1,)
#: All that is not the batch, of three dimensions and of four, and height and width.
OF_SERIES: Dims = (1, 2)
OF_PICTURE: Dims = (1, 2, 3)
PLANE: Dims = (2, 3)
LAST_TWO: Dims = (-2, -1)


class Moment(NamedTuple):
    """A mean over dimensions that stay, as ones: of squares, or a variance around the mean. What is `unbiased` is
    divided by one less than the number of elements.
    """

    of: ast.expr
    dims: Dims
    centered: bool
    unbiased: bool = False


class LayerNorm(NamedTuple):
    of: ast.expr
    dims: Dims
    unbiased: bool


def rms_norm(root: Root, ctx: FileFacts) -> ast.expr | None:
    """`x` of `x * rsqrt(mean(x ** 2) + eps)`, over its last dimension. None for another root, and for a layer norm:
    that takes the mean from `x` before.
    """
    moment = _moment_under(root, ctx)
    scaled = scaled_by(root, ctx) if moment is not None and moment.dims == LAST and not moment.centered else None
    if moment is None or scaled is None or not any(_same(one, moment.of, ctx) for one in _factors(scaled)):
        return None
    is_centered = any(_centered(one, LAST, ctx) is not None for one in _factors(scaled))
    return None if is_centered else plain(moment.of)


def layer_norm(root: Root, ctx: FileFacts) -> LayerNorm | None:
    """`x` of `(x - mean(x)) / sqrt(var(x) + eps)` and the dimensions, for which torch has a norm of its own; None for
    another root, and where the mean or the root is wanted for more, to undo the normalization.
    """
    moment = _moment_under(root, ctx)
    scaled = scaled_by(root, ctx) if moment is not None else None
    if moment is None or scaled is None or not _has_norm(moment.dims, root, ctx):
        return None
    factors = _factors(scaled)
    centered = next((found for one in factors if (found := _centered(one, moment.dims, ctx)) is not None), None)
    if centered is None or _is_wanted_for_more(root, ctx):
        return None
    source = moment.of if moment.centered else _centered(moment.of, moment.dims, ctx)
    if source is None or not any(_same(source, one, ctx) for one in (centered, *factors)):
        return None
    return LayerNorm(plain(centered), moment.dims, moment.unbiased)


def _has_norm(dims: Dims, root: Root, ctx: FileFacts) -> bool:
    """Whether a norm of torch goes over these dimensions: what stands at 1 are channels only of pictures, and the
    dimensions at 1 and 2 are all of a sample only where there is no fourth.
    """
    if dims == CHANNELS:
        return _is_of_pictures(root, ctx)
    return dims in (LAST, LAST_TWO, PLANE, OF_PICTURE) or (dims == OF_SERIES and _is_of_series(root, ctx))


def _factors(scaled: ast.expr) -> list[ast.expr]:
    """The gain may come before: `gain * (x - mean) / sqrt(var + eps)`."""
    is_product = isinstance(scaled, ast.BinOp) and isinstance(scaled.op, ast.Mult)
    return [scaled.left, scaled.right] if is_product else [scaled]  # type: ignore[attr-defined]


def plain(node: ast.expr) -> ast.expr:
    """`x` of `x.float()` and `x.to(torch.float32)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "to"):
        node = node.func.value
    return node


def _moment_under(root: Root, ctx: FileFacts) -> Moment | None:
    if root.of is not None:
        return _moment(root.of, ctx)
    return _spread(root.node, ctx) or _length(root.node, ctx)


def _spread(node: ast.expr, ctx: FileFacts) -> Moment | None:
    """`x.std(-1, keepdim=True)`"""
    value = operand(node, ctx, _SPREADS)
    if value is None or not isinstance(node, ast.Call):
        return None
    dims = _dimensions(node, _SPREADS, ctx)
    return Moment(value, dims, centered=True, unbiased=not _is_biased(node)) if dims else None


def _length(node: ast.expr, ctx: FileFacts) -> Moment | None:
    """`x.norm(dim=-1, keepdim=True) * width ** -0.5`: a norm, divided by the root of the width."""
    norm = node.left if isinstance(node, ast.BinOp) else node
    if norm is node or not isinstance(node, ast.BinOp) or not isinstance(norm, ast.Call):
        return None
    value = operand(norm, ctx, _NORMS)
    if value is None or not _is_by_width(node, ctx):
        return None
    power, dims = argument(norm, int(ctx.is_call_of(norm, *_NORMS)), "p"), keyword(norm, "dim")
    keeps = keyword(norm, "keepdim")
    if not (power is None or is_constant(power, 2)) or dims is None or keeps is None:
        return None
    is_last = ast.unparse(dims) == "-1" and is_constant(keeps, value=True)
    return Moment(value, LAST, centered=False) if is_last else None


def _is_by_width(node: ast.BinOp, ctx: FileFacts) -> bool:
    """Whether a norm is brought to the width of what it measures: `* width ** -0.5`, `/ math.sqrt(width)`, also where
    the class keeps that number.
    """
    values: list[tuple[ast.expr | None, FileFacts]] = [(node.right, ctx)]
    if isinstance(node.right, (ast.Attribute, ast.Name)):
        values = [(item.value, ctx) for item in ctx.inference.flow.definitions_of(node.right)[0]]
        values = values or values_of(node.right, ctx)
    roots = [root_of(value, there) if value is not None else None for value, there in values]
    divides = isinstance(node.op, ast.Div)
    return bool(roots) and all(root is not None and root.divides == divides for root in roots)


def _moment(node: ast.expr, ctx: FileFacts, depth: int = _DEEP) -> Moment | None:
    """What `x.pow(2).mean(-1, keepdim=True) + eps` and `x.var(-1, keepdim=True, unbiased=False)` measure, under a name
    as well.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _moment(node.left, ctx, depth) or _moment(node.right, ctx, depth)
    for functions, centered in ((_MEANS, False), (_VARIANCES, True), (_BOTH, True)):
        value = operand(node, ctx, functions)
        if value is None or not isinstance(node, ast.Call):
            continue
        dims = _dimensions(node, functions, ctx)
        if not centered:
            value, dims = _mean_below(value, dims, ctx)
        of = value if centered else _square(value, ctx)
        if of is None or not dims:
            return None
        return Moment(of, dims, centered, centered and not _is_biased(node))
    return _behind_name(node, ctx, depth, _moment)


def _dimensions(mean: ast.Call, functions: tuple[str, ...], ctx: FileFacts) -> Dims:
    """The dimensions that a mean goes over and keeps, in order; none where that is not to be seen."""
    position = 1 if ctx.is_call_of(mean, *functions) else 0
    dims = argument(mean, position, "dim")
    # `var` has had `unbiased` where `mean` has `keepdim`, so that only a keyword tells.
    keeps = argument(mean, position + 1, "keepdim") if functions is _MEANS else keyword(mean, "keepdim")
    if keeps is None or not is_constant(keeps, value=True) or dims is None:
        return ()
    try:
        given = ast.literal_eval(dims)
    except ValueError:
        return ()
    found = sorted(given) if isinstance(given, (tuple, list)) else [given]
    return tuple(found) if all(isinstance(dim, int) for dim in found) else ()


def _mean_below(value: ast.expr, dims: Dims, ctx: FileFacts) -> tuple[ast.expr, Dims]:
    """A mean of a mean over another dimension is one over both: `x.mean(1, keepdim=True).mean(2, keepdim=True)`."""
    inner = operand(value, ctx, _MEANS)
    if inner is None or not dims or not isinstance(value, ast.Call):
        return value, dims
    more = _dimensions(value, _MEANS, ctx)
    return inner, tuple(sorted((*more, *dims))) if more and not set(more) & set(dims) else ()


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
    value = operand(node, ctx, _SQUARES)
    if value is None or not isinstance(node, ast.Call):
        return None
    exponent = argument(node, 1 if ctx.is_call_of(node, *_SQUARES) else 0, "exponent")
    return value if exponent is None or is_constant(exponent, 2) else None


def _centered(node: ast.expr, dims: Dims, ctx: FileFacts, depth: int = _DEEP) -> ast.expr | None:
    """`x` of `x - x.mean(dims, keepdim=True)`, where the difference or the mean has a name or none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        of = _mean_of(node.right, dims, ctx, depth)
        return node.left if of is not None and _same(node.left, of, ctx) else None
    return _behind_name(node, ctx, depth, lambda value, ctx, depth: _centered(value, dims, ctx, depth))


def _mean_of(node: ast.expr, dims: Dims, ctx: FileFacts, depth: int) -> ast.expr | None:
    value = operand(node, ctx, _MEANS)
    if value is not None and isinstance(node, ast.Call):
        value, over = _mean_below(value, _dimensions(node, _MEANS, ctx), ctx)
        return value if over == dims else None
    both = _taken_apart(node, 1, ctx)
    if both is not None:
        return operand(both, ctx, _BOTH) if _dimensions(both, _BOTH, ctx) == dims else None
    return _behind_name(node, ctx, depth, lambda value, ctx, depth: _mean_of(value, dims, ctx, depth))


def _is_of_pictures(root: Root, ctx: FileFacts) -> bool:
    """Whether what is normalized is scaled by a parameter that is spread over height and width, `weight[:, None, None]`
    or `weight.view(1, C, 1, 1)`: then the dimension at 1 holds channels, not times.
    """
    function = ctx.tree.function_of(root.node)
    return function is not None and any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Mult)
        and (_is_spread(part.left) or _is_spread(part.right))
        for part in ctx.walk(function)
    )


def _is_of_series(root: Root, ctx: FileFacts) -> bool:
    """Whether what is normalized has three dimensions, as a parameter of its class says that it is scaled by."""
    function = ctx.tree.function_of(root.node)
    if function is None:
        return False
    factors = (
        factor
        for part in ctx.walk(function)
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)
        for factor in (part.left, part.right)
        if isinstance(factor, ast.Attribute)
    )
    made = (value for one in factors for value, _ in values_of(one, ctx))
    return any(value is not None and _sizes(value) == len(OF_SERIES) + 1 for value in made)


def _sizes(made: ast.expr) -> int:
    """How many sizes the making of a parameter names: `nn.Parameter(torch.ones(1, channels, 1))`."""
    while isinstance(made, ast.Call) and len(made.args) == 1:
        made = made.args[0]
    given = made.args if isinstance(made, ast.Call) else made.elts if isinstance(made, (ast.Tuple, ast.List)) else []
    return len(given)


def _is_spread(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        return [is_constant(item, None) for item in node.slice.elts[-2:]] == [True, True]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "view":
        return False
    return [is_constant(item, 1) for item in node.args[-2:]] == [True, True]


def _is_wanted_for_more(root: Root, ctx: FileFacts) -> bool:
    """Whether the root has a name that more than one place reads, or that outlives the function."""
    statement = ctx.tree.statement_of(root.node)
    if isinstance(statement, ast.Assign) and any(not isinstance(target, ast.Name) for target in statement.targets):
        return statement.value is root.node
    uses = list(uses_of(root, ctx))  # the root itself, and where its name is read
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
    if len(made) != 1 or made[0].value is None:
        return None
    if made[0].path:
        both = _taken_apart(node, 0, ctx)
        return look(both, ctx, depth - 1) if both is not None else None
    return look(made[0].value, ctx, depth - 1)


def _taken_apart(node: ast.expr, place: int, ctx: FileFacts) -> ast.Call | None:
    """The call of `variance, mean = torch.var_mean(x)`, of which a name is one."""
    made = ctx.inference.flow.definitions(node) if isinstance(node, ast.Name) else ()
    if len(made) != 1 or made[0].path != (place,) or not isinstance(made[0].value, ast.Call):
        return None
    return made[0].value if ctx.is_call_of(made[0].value, *_BOTH) else None
