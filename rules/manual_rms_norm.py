"""TPL614: an RMS normalization that is multiplied out by hand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeAlias

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, argument, keyword

#: The CUDA kernel of `rms_norm`; before, the function computed the same steps as the written-out form.
_SINCE = (2, 9)
_ROOTS = ("torch.rsqrt", "torch.sqrt")
_SQUARES = ("torch.square", "torch.pow")
_MEANS = ("torch.mean",)
_Look: TypeAlias = "Callable[[ast.expr, Context, int], ast.expr | None]"


class ManualRmsNorm(Rule):
    """`x * rsqrt(mean(x ** 2) + eps)` runs as five kernels where `F.rms_norm` runs as one.

    What it does

    Reports a mean of squares over the last dimension whose reciprocal root scales the same tensor, in a forward pass.

    Why is this slow?

    Each step reads and writes the whole activation: a square, a mean, an addition, a root and two products, often in
    float32. `torch.nn.functional.rms_norm` reads it once and writes it once, forward and backward, and keeps less
    for the backward pass. A transformer has two of them in every layer.

    What to do

    Write `F.rms_norm(x, (x.shape[-1],), weight, eps)`, or use `torch.nn.RMSNorm`. It computes in float32 inside,
    whatever the dtype of `x`. Pass `1 + weight` where the weight is stored as an offset.

    Fix safety

    No fix: where the product with the weight is rounded differs, and so do the last bits.

    Not reported

    - Code that `torch.compile` traces: the compiler fuses these steps.
    - Projects that support torch before 2.9, where `F.rms_norm` computes the same steps.
    - Means over another dimension than the last one, or of something else than the scaled tensor.

    Measured

    Not measured here. The pull request that added the kernel reports about 9 times the speed on CUDA.

    References

    - `torch.nn.functional.rms_norm`: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html
    - The fused kernel: https://github.com/pytorch/pytorch/pull/153666
    """

    code, name = "TPL614", "manual-rms-norm"
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("rsqrt", "rsqrt_", "sqrt"),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if (ctx.torch_version or _SINCE) < _SINCE or ctx.program.whole.compiles:
            return
        root = _operand(node, ctx, _ROOTS)
        squared = _mean_of_squares(root, ctx) if root is not None else None
        scaled = _scaled_by(node, ctx) if squared is not None else None
        if squared is None or scaled is None or not _same(scaled, squared, ctx):
            return
        name = ctx.text(_plain(squared))
        yield self.finding(
            node,
            ctx,
            f"The RMS norm of `{name}` {ctx.heat(node).phrase} as five kernels over the whole activation.",
            advice=f"`F.rms_norm({name}, ({name}.shape[-1],), weight, eps)` does it in one.",
        )


def _operand(node: ast.expr, ctx: Context, functions: tuple[str, ...]) -> ast.expr | None:
    """`v` of `torch.rsqrt(v)` and of `v.rsqrt()`."""
    if not isinstance(node, ast.Call):
        return None
    if ctx.is_call_of(node, *functions):
        return node.args[0] if node.args else keyword(node, "input")
    if isinstance(node.func, ast.Attribute) and ctx.target(node.func) not in functions:
        names = {function.rpartition(".")[2] for function in functions}
        return node.func.value if node.func.attr.rstrip("_") in names else None
    return None


def _mean_of_squares(node: ast.expr, ctx: Context, depth: int = 3) -> ast.expr | None:
    """`x` of `x.pow(2).mean(-1, keepdim=True) + eps`, under a name as well."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _mean_of_squares(node.left, ctx, depth) or _mean_of_squares(node.right, ctx, depth)
    mean = _operand(node, ctx, _MEANS)
    if mean is not None and isinstance(node, ast.Call):
        return _square(mean, ctx) if _is_over_last(node, ctx) else None
    return _behind_name(node, ctx, depth, _mean_of_squares)


def _is_over_last(mean: ast.Call, ctx: Context) -> bool:
    position = 1 if ctx.is_call_of(mean, *_MEANS) else 0
    dims = argument(mean, position, "dim")
    keeps = argument(mean, position + 1, "keepdim")
    if isinstance(dims, (ast.Tuple, ast.List)) and len(dims.elts) == 1:
        dims = dims.elts[0]
    last = isinstance(dims, ast.UnaryOp) and ast.unparse(dims) == "-1"
    return last and isinstance(keeps, ast.Constant) and keeps.value is True


def _square(node: ast.expr, ctx: Context) -> ast.expr | None:
    """`x` of `x ** 2`, `x * x`, `x.pow(2)`, `x.square()` and `torch.square(x)`."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and _is_two(node.right):
            return node.left
        is_product = isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right)
        return node.left if is_product else None
    value = _operand(node, ctx, _SQUARES)
    if value is None or not isinstance(node, ast.Call):
        return None
    exponent = argument(node, 1 if ctx.is_call_of(node, *_SQUARES) else 0, "exponent")
    return value if exponent is None or _is_two(exponent) else None


def _is_two(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 2


def _scaled_by(node: ast.Call, ctx: Context) -> ast.expr | None:
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


def _uses(node: ast.Call, ctx: Context) -> Iterator[ast.expr]:
    yield node
    statement = ctx.tree.statement_of(node)
    if not (isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1):
        return
    target, function = statement.targets[0], ctx.tree.function_of(node)
    if isinstance(target, ast.Name) and function is not None:
        yield from (part for part in ctx.tree.named(target.id, function) if isinstance(part.ctx, ast.Load))


def _same(scaled: ast.expr, squared: ast.expr, ctx: Context) -> bool:
    """Whether both are one tensor, up to its dtype: `x` and `x.float()`."""
    return ast.dump(_plain(scaled)) == ast.dump(_plain(squared)) or _source(scaled, ctx) == _source(squared, ctx)


def _source(node: ast.expr, ctx: Context) -> str:
    """The text of what a name holds, where that is one other tensor cast: `x32 = x.float()`."""
    node = _plain(node)
    if isinstance(node, ast.Name):
        made = ctx.inference.flow.definitions(node)
        values = [item.value for item in made if item.value is not None and not item.path]
        if len(made) == len(values) == 1 and _plain(values[0]) is not values[0]:
            return ctx.text(_plain(values[0]))
    return ctx.text(node)


def _plain(node: ast.expr) -> ast.expr:
    """`x` of `x.float()` and `x.to(torch.float32)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "to"):
        node = node.func.value
    return node


def _behind_name(node: ast.expr, ctx: Context, depth: int, look: _Look) -> ast.expr | None:
    if not isinstance(node, ast.Name) or depth == 0:
        return None
    made = ctx.inference.flow.definitions(node)
    if len(made) != 1 or made[0].value is None or made[0].path:
        return None
    return look(made[0].value, ctx, depth - 1)
