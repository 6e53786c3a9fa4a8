"""What the rules about transfers share: what stands at the beginning of a chain that ends in a move."""

from __future__ import annotations

import ast
import re

from perflint.api import CLASS, Context, FunctionFacts, Ref, Tag, callee_name, keyword, pattern, tensors

#: Methods between a constructor and the move that leave the advice what it is.
_BETWEEN = (
    tensors.VIEW_METHODS
    | tensors.CAST_METHODS
    | frozenset("repeat expand normal_ uniform_ fill_ zero_ random_ bernoulli_ exponential_ tile clone".split())
)


def constructor(value: ast.expr, functions: frozenset[str], ctx: Context) -> ast.Call | None:
    """The call of one of `functions` that a chain begins with: `torch.zeros(n)` of `torch.zeros(n).long().view(-1)`."""
    while isinstance(value, ast.Call):
        if ctx.target(value.func) in functions:
            return value
        if not isinstance(value.func, ast.Attribute) or value.func.attr not in _BETWEEN:
            return None
        value = value.func.value
    return None


#: What holds a device without being a tensor: `args.device`, `self.accelerator.device`, `model.device`.
_HOLDERS = (
    "self",
    "arg",
    "cfg",
    "conf",
    "opt",
    "param",
    "accelerator",
    "fabric",
    "trainer",
    "model",
    "net",
    "state",
    "runner",
    "engine",
)


def aligns(call: ast.Call, ctx: Context) -> bool:
    """`x.to(y.device)`: mostly a safeguard that moves nothing."""
    target = keyword(call, "device") or (call.args[0] if call.args else None)
    if isinstance(target, ast.Attribute) and target.attr == "device":
        owner = ctx.kind(target.value)
        if owner.known:
            return owner.holds_tensors
        name = ctx.text(target.value).rpartition(".")[2].strip("_").lower()
        return not any(re.search(rf"(?:^|[^a-z]){word}", name) for word in _HOLDERS)
    return isinstance(target, (ast.Name, ast.Attribute)) and ctx.kind(target).tag is Tag.TENSOR


_DOWN = frozenset({"cpu", "numpy", "tolist", "item"})
#: Functions and methods that keep a value what it is, on its way from the host back to the device.
_COPIES = frozenset(
    "torch.tensor torch.as_tensor torch.asarray torch.from_numpy torch.stack torch.cat torch.Tensor torch.FloatTensor "
    "torch.LongTensor numpy.array numpy.asarray numpy.ascontiguousarray numpy.stack numpy.concatenate builtins.float "
    "builtins.int builtins.list".split()
)
_DEPTH = 8


def brought_down(node: ast.Call, ctx: Context) -> ast.Call | None:
    """For a call that puts a value on the device: the call that fetched this very value from the device, with nothing
    but tensor operations between. None when there is none, or when it cannot be seen.
    """
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in ("to", "cuda"):
        value = func.value
    elif ctx.target(func) in ("torch.tensor", "torch.as_tensor") and keyword(node, "device") is not None and node.args:
        value = node.args[0]
    else:
        return None
    # What a value comes from is plain to see, where it goes seldom is.
    found = _source(value, ctx, _DEPTH)
    return found if found is not None and not only_converts(node, ctx) and ctx.kind(node).on_accelerator else None


def goes_back(node: ast.Call, ctx: Context) -> bool:
    """Whether what a call fetches from the device is sent back to it in the same function: round-trip-transfer."""
    return any(
        isinstance(part, ast.Call)
        and callee_name(part) in ("to", "cuda", "tensor", "as_tensor")
        and brought_down(part, ctx) is node
        for part in ctx.walk(ctx.tree.function_of(node) or ctx.tree.module)
    )


def _source(node: ast.expr, ctx: Context, depth: int) -> ast.Call | None:
    if depth == 0:
        return None
    if isinstance(node, ast.Call):
        return _source_of_call(node, ctx, depth - 1)
    if isinstance(node, ast.Name):
        origins = ctx.inference.origins(node)
        if len(origins) != 1 or origins[0] is node or ctx.loops(origins[0]) != ctx.loops(node):
            return None
        return _source(origins[0], ctx, depth - 1)
    if isinstance(node, ast.Subscript):
        return _source(node.value, ctx, depth - 1)
    if isinstance(node, (ast.List, ast.Tuple)):
        found = [_source(item, ctx, depth - 1) for item in node.elts]
        return found[0] if found and all(item is not None for item in found) else None
    if isinstance(node, ast.BinOp):
        return _source(node.left, ctx, depth - 1) or _source(node.right, ctx, depth - 1)
    return None


def _depends_on_values(func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and tensors.SYNC_METHODS.get(func.attr) is tensors.Wait.SHAPE


def _source_of_call(node: ast.Call, ctx: Context, depth: int) -> ast.Call | None:
    func = node.func
    if ctx.target(func) in _COPIES:
        return _source(node.args[0], ctx, depth) if node.args else None
    if ctx.target(func) in tensors.SYNC_FUNCTIONS or _depends_on_values(func):
        return None  # on the device the host would wait for the size: fetching the values once is a fair trade
    if ctx.target(func) in tensors.FUNCTIONS | tensors.TUPLE_FUNCTIONS:
        found = (_source(item, ctx, depth) for item in node.args)
        return next((item for item in found if item is not None), None)
    if not isinstance(func, ast.Attribute):
        return None
    if func.attr in _DOWN or (func.attr == "to" and not only_converts(node, ctx) and ctx.kind(node).on_host):
        if ctx.kind(func.value).on_accelerator and ctx.kind(func.value).holds_tensors:
            return node
        return _source(func.value, ctx, depth)
    if func.attr in tensors.VIEW_METHODS | tensors.CAST_METHODS | tensors.FRESH_METHODS:
        return _source(func.value, ctx, depth)
    return None


#: Arguments of `to` that say no device.
_NO_DEVICE = frozenset({"dtype", "copy", "non_blocking", "memory_format"})


def only_converts(call: ast.Call, ctx: Context) -> bool:
    """Whether `x.to(...)` names a type and no device, told by its arguments: what `x` is may take long to find out."""
    if callee_name(call) != "to" or not all(item.arg in _NO_DEVICE for item in call.keywords):
        return False
    if any(isinstance(item, ast.Attribute) and item.attr == "device" for item in call.args):
        return False
    return all(ctx.kind(item).tag is Tag.DTYPE for item in call.args)


#: Methods of classes whose instances are batches, by the names of these.
_METHODS_OF_BATCHES = pattern(r"Batch\w*\.")


def moves_in_its_own_way(call: ast.Call, ctx: Context) -> bool:
    """Whether the project has batches of a class of its own, whose `to` cannot be told not to block, or never does."""
    scopes = ctx.program.named(callee_name(call))
    methods = [ctx.program.function(scope) for scope in scopes if _METHODS_OF_BATCHES.search(scope.function)]
    return any(method.in_class and not _can_be_told(method) for method in methods)


def has_unblocking_move(call: ast.Call, ctx: Context) -> bool:
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
