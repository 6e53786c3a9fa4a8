"""TPL312: copies of tensors that nothing else refers to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Edit,
    Finding,
    Fix,
    Impact,
    Rule,
    Span,
    callee_name,
    is_constant,
    keyword,
    tensors,
)
from perflint.api.aliases import just_made, may_change

from ._shared.plain_forms import is_plain_form

#: Give a new tensor always, and do not save it for their backward.
_NEW = frozenset(
    "add sub subtract mul multiply div divide true_divide matmul mm bmm addmm baddbmm neg negative cat concat "
    "concatenate stack hstack vstack dstack where gather index_select take take_along_dim masked_fill masked_select "
    "repeat repeat_interleave tile roll flip fliplr flipud rot90 cumsum sum mean nansum nanmean tril triu eq ne lt "
    "le gt ge isnan isinf isfinite logical_and logical_or logical_not logical_xor bitwise_and bitwise_or "
    "bitwise_not argmax argmin nonzero argwhere scatter scatter_add index_add index_copy index_fill clamp clip abs "
    "sign sin cos log log2 log10 log1p floor ceil round trunc frac remainder fmod bernoulli multinomial lerp kron "
    "cross diff one_hot bincount count_nonzero nan_to_num mse_loss l1_loss cross_entropy embedding linear conv1d "
    "conv2d gelu silu".split()
)
#: Give a new tensor always, and save it: it must not change in place before the backward.
_SAVED = frozenset(
    "exp exp2 expm1 sigmoid tanh softmax log_softmax sqrt rsqrt reciprocal relu pow std var norm prod cumprod "
    "logsumexp amax amin erf erfinv cholesky inverse matrix_exp normalize layer_norm".split()
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult)
_MADE = tensors.CONSTRUCTORS - {"torch.as_tensor", "torch.asarray", "torch.from_file"}
_TORCH = ("torch.", "torch.nn.functional.", "torch.Tensor.")


class RedundantClone(Rule):
    """A tensor that was just created is cloned, although nothing else refers to it.

    What it does

    Reports `.clone()` directly on the result of an operation that returns a new tensor.

    Why is this slow?

    `(a + b).clone()` reads and writes the sum once more, and both exist for a moment. `+`, `torch.cat`, `.sum()` and
    moves between host and GPU return a new tensor already.

    What to do

    Remove the `.clone()`.

    Fix safety

    Unsafe: no value changes, but a tensor that autograd has saved must not be modified in place, and perflint cannot
    see every later modification.

    Not reported

    - Views, which share memory (`view`, `expand`, `detach`, slices), and slices that release a large tensor.
    - `.to`, `.float` and `.contiguous`, which may return the same tensor.
    - Clones that request a memory format.
    - Results that autograd has saved (`exp`, `sigmoid`, `softmax`) and that are modified in place.
    - Reference implementations that are written to be read.
    - `.cpu().clone()`, unless the tensor is certainly on a GPU.

    References

    - `torch.clone`: https://docs.pytorch.org/docs/stable/generated/torch.clone.html
    - Tensor views: https://docs.pytorch.org/docs/stable/tensor_view.html
    """

    code, name = "TPL312", "redundant-clone"
    numerics = "same bits"
    impact = Impact.LOW
    listens = (Calls("clone"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
            return
        value = node.func.value
        made = just_made(value, ctx)
        if made is None or is_plain_form(node, ctx):
            return
        moved = _crosses(made, ctx)
        if not moved and not _is_new(made, ctx, changes=may_change(node, ctx)):
            return
        text = ctx.text(value)
        what = text if len(text) <= 60 else f"{text[:57]}..."
        yield self.finding(
            node,
            ctx,
            f"`{what}` {'is already a copy on the other device' if moved else 'is already a new tensor'}, and "
            "`.clone()` copies it again.",
            advice="Remove the `.clone()`.",
            fix=Fix(
                "Remove the copy",
                Applicability.UNSAFE,
                _without(node, value, ctx),
                reason="the tensor must not be modified in place while autograd needs it",
            ),
            confidence=None if ctx.kind(made).is_tensor else Confidence.MEDIUM,
        )


def _without(node: ast.Call, value: ast.expr, ctx: Context) -> tuple[Edit, ...]:
    """`x = x.clone()` says nothing without the clone."""
    statement = ctx.tree.parent(node)
    if isinstance(statement, ast.Assign) and [ctx.text(target) for target in statement.targets] == [ctx.text(value)]:
        if not ctx.edit.would_lose_comment(statement):
            return ctx.edit.delete_statement(statement)
    whole, call = ctx.tree.span(node), ".clone()"
    if whole.line != whole.end_line and ctx.source.lines[whole.end_line - 1][: whole.end_column - 1].endswith(call):
        return (Edit(Span(whole.end_line, whole.end_column - len(call), whole.end_line, whole.end_column), ""),)
    return (ctx.edit.replace(node, ctx.tree.text(value)),)


def _crosses(made: ast.expr, ctx: Context) -> bool:
    """Whether a move surely takes the tensor to another device: `.cpu()` of what is on a GPU, `.cuda()` of the rest."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return False
    if made.func.attr not in ("cpu", "cuda", "to") or is_constant(keyword(made, "non_blocking"), value=True):
        return False
    before, after = ctx.kind(made.func.value), ctx.kind(made)
    if not before.is_tensor or min(before.certainty, after.certainty) is not Confidence.HIGH:
        return False
    return (before.on_cuda and after.on_host) or (before.on_host and after.on_cuda)


def _is_new(made: ast.expr, ctx: Context, *, changes: bool) -> bool:
    """Whether an operation gives a tensor of its own that may be changed, if it `changes`, before a backward."""
    if isinstance(made, ast.BinOp):
        return isinstance(made.op, _ARITHMETIC) and not _is_text(made)
    if not isinstance(made, ast.Call) or is_constant(keyword(made, "inplace"), value=True) or keyword(made, "out"):
        return False
    target = ctx.target(made.func)
    if target in _MADE:
        return True
    short = callee_name(made)
    if target is not None:
        if not target.startswith(_TORCH) or target not in (f"{module}{short}" for module in _TORCH):
            return False
    elif not isinstance(made.func, ast.Attribute) or not ctx.kind(made.func.value).is_tensor:
        return False
    return short in _NEW or (short in _SAVED and (not changes or ctx.grad_off(made)))


def _is_text(made: ast.BinOp) -> bool:
    return any(isinstance(part, (ast.Constant, ast.JoinedStr)) and _is_string(part) for part in (made.left, made.right))


def _is_string(node: ast.Constant | ast.JoinedStr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node.value, str)
