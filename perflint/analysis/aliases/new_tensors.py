"""Operations that always give a tensor of its own memory, and whether autograd needs that as it is."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.finding import Confidence
from perflint.ir.calls import callee_name, is_constant, keyword
from perflint.torch_model import tensors

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


def crosses_devices(made: ast.expr, ctx: FileFacts) -> bool:
    """Whether a move surely takes the tensor to another device: `.cpu()` of what is on a GPU, `.cuda()` of the rest."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return False
    if made.func.attr not in ("cpu", "cuda", "to") or is_constant(keyword(made, "non_blocking"), value=True):
        return False
    before, after = ctx.kind(made.func.value), ctx.kind(made)
    if not before.is_tensor or min(before.certainty, after.certainty) is not Confidence.HIGH:
        return False
    return (before.on_cuda and after.on_host) or (before.on_host and after.on_cuda)


def is_new_tensor(made: ast.expr, ctx: FileFacts, *, changes: bool) -> bool:
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
