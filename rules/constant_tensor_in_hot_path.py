"""TPL310: tensors of constants that hot code copies to the device again, and masks that it fills again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Place,
    Rule,
    Tag,
    callee_name,
    has_unpacking,
    is_constant,
    is_test,
    keyword,
    pattern,
    tensors,
    walk,
)

from ._constants import is_fixed
from ._own_training import beside_own_training
from ._rarely import is_export
from ._wording import short_call

#: `torch.scalar_tensor` is filled by a kernel.
_COPIES = tensors.COPYING_CONSTRUCTORS - {"torch.scalar_tensor"}
_TRIANGLES = ("torch.tril", "torch.triu")
_SQUARES = ("torch.ones", "torch.full")
_NEW_SQUARES = frozenset({"new_ones", "new_full"})
#: What a test asks that depends on the data: what stands under it runs for the odd batch.
_ASKS = frozenset("numel len size any all isnan isinf isfinite item nelement".split())
_COUNTS = pattern(r"^(?:n|num|nb|count|len|total)_|_(?:count|len|num)$|^(?:n|count|total)$")
_BETWEEN = tensors.VIEW_METHODS | tensors.CAST_METHODS | {"to", "cuda"}
_COLLECTORS = frozenset("append extend insert add update setdefault register_buffer".split())
#: Parameters of a forward that knows what was generated before.
_POSITION = pattern(r"^(?:start_pos|input_pos|cache_position|past_key_values?|kv_caches?|past|cache|offset)$")
_SETS_UP = pattern(r"^_?(?:set_?up|init(?:iali[sz]e)?|reset|allocate)(?:_|$)")
#: Masks of fewer rows are not worth a word.
_SMALL = 16
_DEPTH = 4


class ConstantTensorInHotPath(Rule):
    """A tensor of constants is copied to the device in every step, or an L x L mask is filled again.

    Why it is slow
    `torch.tensor(0.5, device=device)` makes the tensor on the host, copies it from pageable memory and waits until the
    copy is done, and with it all that was queued before: the device runs dry, for a number that never changes. A
    triangular mask takes L x L elements anew: `tril(ones(1024, 1024))` 1.06 ms against 2 us for a slice of a mask
    that was kept (measured on a CPU with torch 2.13).

    What to write instead
    Where a number will do, write the number: `torch.where(mask, x, 0.5)`. `torch.full((), 0.5, device=device)` is
    filled on the device, and nothing waits. Keep lists and masks: in a module by
    `self.register_buffer("name", ..., persistent=False)`, which moves along with the module and adds no key to its
    state dict, elsewhere before the loop. For causal attention `is_causal=True` needs no mask.

    When to leave it
    Tensors that are changed, returned or collected, since a kept one would be shared: sums that start at zero, buffers
    to be filled. Values from the batch, random numbers, constructors, fallbacks for an empty batch, and code under
    `torch.compile`, which makes constants of them. perflint is silent there. `zeros`, `ones`, `arange` and `empty` with
    `device=` are one launch each: leave them.

    Fix safety
    Unsafe: the number is filled in by `torch.full` with the same bits, but a graph that is traced or exported has
    another operation in its place. Lists and masks are left to you: where to keep them, and for which devices and
    types, cannot be told from the code.
    """

    code, name = "TPL310", "constant-tensor-in-hot-path"
    impact = Impact.MEDIUM
    listens = (Calls("tensor", "as_tensor", "asarray", "new_tensor", "tril", "triu"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if has_unpacking(node) or is_test(ctx.path) or ctx.role(node) == "data" or _is_traced(node, ctx):
            return
        if callee_name(node) in ("tril", "triu"):
            yield from self._mask(node, ctx)
        else:
            yield from self._copy(node, ctx)

    def _copy(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        data = _copied(node, ctx)
        if data is None or _is_empty(data) or not is_fixed(data, ctx):
            return
        if not _goes_to_device(node, ctx) or _is_fallback(node, ctx) or not _is_only_read(node, ctx):
            return
        if beside_own_training(node, ctx):
            return
        number = _is_number(_single(data), ctx)
        filled = " ".join(_filled(node, ctx).split())
        yield self.finding(
            node,
            ctx,
            f"`{short_call(node, ctx)}` {ctx.heat(node).phrase}: a constant is copied to the device, and the "
            "host waits.",
            advice=(
                f"Write the number itself where an operation takes it, or fill it in: `{filled}`."
                if number
                else f"Copy it once and keep the tensor: {_where_to_keep(node, ctx)}."
            ),
            fix=_fill(node, ctx) if number else None,
        )

    def _mask(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        size = _square(node, ctx)
        if size is None or not _is_only_read(node, ctx, kept=True) or _is_of_prompt(node, ctx):
            return
        if _is_set_up(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{short_call(node, ctx)}` {ctx.heat(node).phrase}: the same pattern is filled into "
            f"{size} x {size} values.",
            advice=f"Fill it once for the largest size, keep it and take a slice: {_where_to_keep(node, ctx)}.",
        )


def _is_of_prompt(node: ast.AST, ctx: Context) -> bool:
    """Whether only a prompt is masked: in the forward of a generation, `if length > 1`, once before all tokens."""
    function = ctx.tree.function_of(node)
    if function is None or not any(_POSITION.match(item.arg) for item in function.args.args):
        return False
    if ctx.role(node) == "train":
        return False  # each text that is learned from is longer than one token
    return any(
        isinstance(outer, ast.If)
        and isinstance(outer.test, ast.Compare)
        and isinstance(outer.test.ops[0], ast.Gt)
        and is_constant(outer.test.comparators[0], 1)
        for outer in ctx.tree.ancestors(node)
    )


def _is_set_up(node: ast.AST, ctx: Context) -> bool:
    """Whether it is kept by what sets a generation up, `setup_caches`: once, before all its tokens."""
    function = ctx.tree.function_of(node)
    return function is not None and _SETS_UP.match(function.name) is not None


def _is_traced(node: ast.AST, ctx: Context) -> bool:
    """Whether the code is compiled, or written for an export, which makes constants of such tensors."""
    return ctx.scope(node) in ctx.program.compiled or is_export(ctx)


def _single(data: ast.expr) -> ast.expr:
    """The number in a list of one."""
    if isinstance(data, (ast.List, ast.Tuple)) and len(data.elts) == 1:
        return data.elts[0]
    return data


def _is_number(data: ast.expr, ctx: Context) -> bool:
    if isinstance(data, ast.BinOp) and isinstance(data.op, (ast.Sub, ast.Div, ast.Pow)):
        return True  # no list can be taken from or divided
    return ctx.kind(data).tag is Tag.NUMBER


def _copied(node: ast.Call, ctx: Context) -> ast.expr | None:
    """The data of a call that copies Python values, as far as can be told to an accelerator."""
    if len(node.args) != 1:
        return None
    says_device = keyword(node, "device") is not None
    if callee_name(node) == "new_tensor":
        return node.args[0] if isinstance(node.func, ast.Attribute) and not says_device else None
    return node.args[0] if says_device and ctx.target(node.func) in _COPIES else None


def _goes_to_device(node: ast.Call, ctx: Context) -> bool:
    if callee_name(node) == "new_tensor" and isinstance(node.func, ast.Attribute):
        like = ctx.kind(node.func.value)
        return like.place is not Place.HOST and like.holds_tensors
    return ctx.kind(node).on_accelerator


def _is_empty(data: ast.expr) -> bool:
    return isinstance(data, (ast.List, ast.Tuple)) and not data.elts


def _is_fallback(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` stands in for what an odd batch lacks: under a test of how much there is."""
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
        if isinstance(outer, (ast.If, ast.IfExp)) and child is not outer.test and _asks_for_data(outer.test, ctx):
            return True
        child = outer
    return False


def _asks_for_data(test: ast.expr, ctx: Context) -> bool:
    for part in walk(test):
        if isinstance(part, ast.Name) and any(_is_size(origin) for origin in ctx.inference.origins(part)):
            return True
        if isinstance(part, ast.Call) and callee_name(part) in _ASKS:
            return True
        if isinstance(part, ast.Attribute) and part.attr == "shape":
            return True
        if isinstance(part, ast.Name) and _COUNTS.search(part.id):
            return True
    return False


def _is_size(node: ast.expr) -> bool:
    """`x.shape[0]`, `x.size(0)` and `len(x)`."""
    if isinstance(node, ast.Subscript):
        return _is_size(node.value)
    if isinstance(node, ast.Call):
        return callee_name(node) in ("len", "size", "numel")
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _is_only_read(node: ast.expr, ctx: Context, *, kept: bool = False, depth: int = _DEPTH) -> bool:
    """Whether the tensor is an operand and nothing else: not changed, handed out or collected.

    With `kept`, what is handed to functions and returned counts as read: masks are made to be handed on.
    """
    parent = ctx.tree.parent(node)
    match parent:
        case ast.BinOp() | ast.Compare() | ast.UnaryOp() | ast.AugAssign():
            return True
        case ast.Attribute():
            return _is_read_by_method(parent, ctx, kept=kept, depth=depth)
        case ast.Subscript():
            return node is parent.slice or _is_only_read(parent, ctx, kept=kept, depth=depth)
        case ast.IfExp() | ast.List() | ast.Tuple() | ast.keyword() | ast.Starred():
            outer = parent if isinstance(parent, ast.expr) else ctx.tree.parent(parent)
            if isinstance(outer, ast.Call):
                return _is_operation(outer, ctx) or kept
            return isinstance(outer, ast.expr) and _is_only_read(outer, ctx, kept=kept, depth=depth)
        case ast.Call():
            return _is_operation(parent, ctx) or (kept and callee_name(parent) not in _COLLECTORS)
        case ast.Assign():
            return len(parent.targets) == 1 and _is_target_read(parent, ctx, kept=kept, depth=depth)
        case ast.Return():
            return kept
        case _:
            return False


def _is_read_by_method(node: ast.Attribute, ctx: Context, *, kept: bool, depth: int) -> bool:
    call = ctx.tree.parent(node)
    if not isinstance(call, ast.Call) or call.func is not node:
        return node.attr in ("T", "mT", "data") and _is_only_read(node, ctx, kept=kept, depth=depth)
    if node.attr.endswith("_"):
        return False
    if node.attr in tensors.VIEW_METHODS or node.attr in tensors.CAST_METHODS or node.attr in ("to", "tril", "triu"):
        return _is_only_read(call, ctx, kept=kept, depth=depth)
    return True


def _is_operation(call: ast.Call, ctx: Context) -> bool:
    """Whether a call computes with its arguments: of torch, of a tensor, or of a module."""
    target = ctx.target(call.func) or ""
    if target.startswith("torch."):
        return not target.startswith(("torch.distributed.", "torch.autograd.")) and not target.endswith("_")
    if isinstance(call.func, ast.Attribute) and ctx.kind(call.func.value).is_tensor:
        return call.func.attr not in ("copy_", "set_")
    return False


def _is_target_read(node: ast.Assign, ctx: Context, *, kept: bool, depth: int) -> bool:
    target = node.targets[0]
    if isinstance(target, ast.Subscript):
        return ctx.kind(target.value).is_tensor
    if not isinstance(target, ast.Name) or depth == 0:
        return False
    flow, around = ctx.inference.flow, ctx.tree.scope_of(node)
    if flow.is_mutated(target.id, around):
        return False
    made = flow.definition_at(target)
    uses = flow.uses_of(made) if made is not None else []
    return bool(uses) and all(
        not _adds_up(use, target.id, ctx) and _is_only_read(use, ctx, kept=kept, depth=depth - 1) for use in uses
    )


def _adds_up(use: ast.Name, name: str, ctx: Context) -> bool:
    """`total = total + x`: the constant is where a sum starts."""
    statement = ctx.tree.statement_of(use)
    if not isinstance(statement, ast.Assign) or not isinstance(ctx.tree.parent(use), ast.BinOp):
        return False
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def _square(node: ast.Call, ctx: Context) -> str | None:
    """The size of the square that `torch.tril(torch.ones(n, n))` or `torch.ones(n, n).tril()` cuts a triangle from."""
    if ctx.target(node.func) in _TRIANGLES:
        filled = node.args[0] if node.args else None
    else:
        filled = node.func.value if isinstance(node.func, ast.Attribute) else None
    for origin in [] if filled is None else ctx.inference.origins(filled):
        made = _filled_by(origin, ctx)
        if made is None:
            return None
        sizes = _sizes(made)
        if len(sizes) < 2 or ctx.text(sizes[-1]) != ctx.text(sizes[-2]) or not _are_numbers(sizes, ctx):
            return None
        if any(isinstance(size, ast.Constant) for size in sizes[-2:]) and _is_small(sizes[-1]):
            return None
        return ctx.text(sizes[-1])
    return None


def _filled_by(node: ast.expr, ctx: Context) -> ast.Call | None:
    """The constructor of a chain such as `torch.ones(n, n).bool()`."""
    while isinstance(node, ast.Call):
        if ctx.target(node.func) in _SQUARES or callee_name(node) in _NEW_SQUARES:
            return node
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _BETWEEN:
            return None
        node = node.func.value
    return None


def _sizes(made: ast.Call) -> list[ast.expr]:
    given = made.args or [item.value for item in made.keywords if item.arg == "size"]
    if given and isinstance(given[0], (ast.Tuple, ast.List)):
        return given[0].elts
    return list(given)


def _are_numbers(sizes: list[ast.expr], ctx: Context) -> bool:
    return not any(ctx.kind(size).holds_tensors or isinstance(size, ast.Starred) for size in sizes)


def _is_small(size: ast.expr) -> bool:
    return isinstance(size, ast.Constant) and isinstance(size.value, int) and size.value < _SMALL


def _filled(node: ast.Call, ctx: Context) -> str:
    """`torch.full((), 0.5, device=device)` for `torch.tensor(0.5, device=device)`."""
    assert isinstance(node.func, ast.Attribute)
    function = "new_full" if node.func.attr == "new_tensor" else "full"
    data = node.args[0]
    shape = "()" if _single(data) is data else "(1,)"
    rest = [f"{item.arg}={ctx.tree.text(item.value)}" for item in node.keywords]
    return f"{ctx.tree.text(node.func.value)}.{function}({', '.join([shape, ctx.tree.text(_single(data)), *rest])})"


def _is_of_numpy(data: ast.expr, ctx: Context) -> bool:
    return any(isinstance(part, ast.Call) and (ctx.target(part.func) or "").startswith("numpy.") for part in walk(data))


def _fill(node: ast.Call, ctx: Context) -> Fix | None:
    if not isinstance(node.func, ast.Attribute) or ctx.edit.would_lose_comment(node, node.args[0]):
        return None
    if node.func.attr != "new_tensor" and keyword(node, "dtype") is None and _is_of_numpy(node.args[0], ctx):
        return None  # a number of numpy's has a type, which the tensor takes
    return Fix(
        "Fill the number in on the device",
        Applicability.UNSAFE,
        (ctx.edit.replace(node, _filled(node, ctx)),),
        reason="a graph that is traced or exported has another operation here, which takes a number and nothing else",
    )


def _where_to_keep(node: ast.AST, ctx: Context) -> str:
    function = ctx.tree.function_of(node)
    around = ctx.tree.class_of(node)
    if around is not None and function is not None and function.name != "__init__":
        if any(getattr(base, "attr", getattr(base, "id", "")).endswith("Module") for base in around.bases):
            return 'in the constructor, by `self.register_buffer("...", ..., persistent=False)`'
        return "on the object, for each device"
    return "before the loop" if ctx.loops(node) else "at the caller, before the loop"
