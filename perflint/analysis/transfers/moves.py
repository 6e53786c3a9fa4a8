"""What the rules about transfers share: what stands at the beginning of a chain that ends in a move."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, Ref
from perflint.analysis.naming.data import BATCH_METHOD
from perflint.analysis.naming.values import HAS_DEVICE
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.transfers import looks_like_device
from perflint.ir.calls import callee_name, keyword
from perflint.ir.summary import FunctionFacts
from perflint.torch_model import tensors

#: Methods between a constructor and the move that leave the advice what it is.
_BETWEEN = (
    tensors.VIEW_METHODS
    | tensors.CAST_METHODS
    | frozenset("repeat expand normal_ uniform_ fill_ zero_ random_ bernoulli_ exponential_ tile clone".split())
)


def constructor(value: ast.expr, functions: frozenset[str], ctx: FileFacts) -> ast.Call | None:
    """The call of one of `functions` that a chain begins with: `torch.zeros(n)` of `torch.zeros(n).long().view(-1)`,
    also where plain numbers change each of its elements: `torch.arange(n) * width`.
    """
    while isinstance(value, (ast.Call, ast.BinOp, ast.UnaryOp)):
        if isinstance(value, ast.UnaryOp):
            value = value.operand
            continue
        if isinstance(value, ast.BinOp):
            if _is_plain(value.right, ctx):
                value = value.left
            elif _is_plain(value.left, ctx):
                value = value.right
            else:
                return None
            continue
        if ctx.target(value.func) in functions:
            return value
        if not isinstance(value.func, ast.Attribute) or value.func.attr not in _BETWEEN:
            return None
        value = value.func.value
    return None


def _is_plain(operand: ast.expr, ctx: FileFacts) -> bool:
    return not isinstance(operand, ast.Call) and ctx.kind(operand).tag is Tag.NUMBER


def aligns(call: ast.Call, ctx: FileFacts) -> bool:
    """`x.to(y.device)`: mostly a safeguard that moves nothing."""
    target = keyword(call, "device") or (call.args[0] if call.args else None)
    if isinstance(target, ast.Attribute) and target.attr == "device":
        owner = ctx.kind(target.value)
        if owner.known:
            return owner.holds_tensors
        name = ctx.text(target.value).rpartition(".")[2].strip("_").lower()
        return HAS_DEVICE.search(name) is None
    return isinstance(target, (ast.Name, ast.Attribute)) and ctx.kind(target).tag is Tag.TENSOR


#: Arguments of `to` that say no device.
_NO_DEVICE = frozenset({"dtype", "copy", "non_blocking", "memory_format"})


def only_converts(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether `x.to(...)` names a type and no device, told by its arguments: what `x` is may take long to find out."""
    if callee_name(call) != "to" or not all(item.arg in _NO_DEVICE for item in call.keywords):
        return False
    if any(isinstance(item, ast.Attribute) and item.attr == "device" for item in call.args):
        return False
    return all(ctx.kind(item).tag is Tag.DTYPE for item in call.args)


def names_no_device(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the argument of `x.to(dt)` is not known to be, or to have, a device: then nothing is known to be moved,
    whatever `x` is.
    """
    if callee_name(call) != "to" or not call.args or not all(item.arg in _NO_DEVICE for item in call.keywords):
        return False
    first = call.args[0]
    if looks_like_device(ctx.text(first)):
        return False
    return ctx.kind(first).tag not in (Tag.DEVICE, Tag.STRING, Tag.NUMBER, Tag.TENSOR)


def moves_in_its_own_way(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the project has batches of a class of its own, whose `to` cannot be told not to block, or never does."""
    scopes = ctx.program.named(callee_name(call))
    methods = [ctx.program.function(scope) for scope in scopes if BATCH_METHOD.search(scope.function)]
    return any(method.in_class and not _can_be_told(method) for method in methods)


def has_unblocking_move(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a class of the project that is no module moves itself by this name, and cannot be told not to block.

    One whose move gives nothing back, as trainers have it, is not what is moved where the result is used.
    """
    is_used = not isinstance(ctx.tree.parent(call), ast.Expr)
    for scope in ctx.program.named(callee_name(call)):
        method = ctx.program.function(scope)
        if method.in_class and not _can_be_told(method) and (method.returns or not is_used):
            cls = Ref(CLASS, scope.path, scope.function.rpartition(".")[0])
            if not ctx.program.is_module(cls):
                return True
    return False


def _can_be_told(method: FunctionFacts) -> bool:
    for param in method.params:
        if param.name.lstrip("=") == "non_blocking":
            return bool(param.default != ("const", "bool", True))
    return any(param.name.startswith("**") for param in method.params)
