"""What the rules about constants that are copied share: whether a tensor of numbers is the same on every step."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.invariants.step_constants import is_step_constant
from perflint.analysis.naming.values import COUNT
from perflint.analysis.phases.seldom import is_export
from perflint.analysis.values.kind import Place, Tag
from perflint.ir.calls import callee_name, is_constant, keyword
from perflint.syntax.named import one_target
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

#: What a test asks that depends on the data: what stands under it runs for the odd batch.
_ASKS = frozenset("numel len size any all isnan isinf isfinite item nelement".split())
_COLLECTORS = frozenset("append extend insert add update setdefault register_buffer".split())
_DEPTH = 4
#: `torch.scalar_tensor` is filled by a kernel.
_COPIES = tensors.COPYING_CONSTRUCTORS - {"torch.scalar_tensor"}


def is_constant_copy(call: ast.Call, data: ast.expr, read: ast.expr, ctx: FileFacts) -> bool:
    """Whether a call, which hot code makes to have `data` on the device, copies the same numbers each time for what
    only reads them; `read` is the expression that is read.
    """
    if ctx.kind(data).is_tensor:
        return False  # it may be there already
    if _is_empty(data) or not is_step_constant(data, ctx) or is_fallback_copy(call, ctx) or is_traced(call, ctx):
        return False
    return is_only_read(read, ctx)


def constant_copied(call: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """The constants that `torch.tensor(0.5, device=device)` or `x.new_tensor(0.5)` copies, as far as can be told to an
    accelerator, each time for what only reads them.
    """
    if len(call.args) != 1:
        return None
    data = call.args[0]
    if callee_name(call) == "new_tensor":
        if keyword(call, "device") is not None or not isinstance(call.func, ast.Attribute):
            return None
        like = ctx.kind(call.func.value)
        goes = like.place is not Place.HOST and like.holds_tensors
    elif keyword(call, "device") is not None and ctx.target(call.func) in _COPIES:
        goes = ctx.kind(call).on_accelerator
    else:
        return None
    return data if goes and is_constant_copy(call, data, call, ctx) else None


def is_traced(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the code is compiled, or written for an export, which makes constants of such tensors."""
    return ctx.program.is_always_compiled(ctx.scope(node)) or is_export(ctx)


def single(data: ast.expr) -> ast.expr:
    """The number in a list of one."""
    if isinstance(data, (ast.List, ast.Tuple)) and len(data.elts) == 1:
        return data.elts[0]
    return data


def is_number(data: ast.expr, ctx: FileFacts) -> bool:
    return ctx.kind(data).tag is Tag.NUMBER


def _is_empty(data: ast.expr) -> bool:
    return isinstance(data, (ast.List, ast.Tuple)) and not data.elts


def is_fallback_copy(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` stands in for what an odd batch lacks: under a test of how much there is."""
    return any(
        (_asks_for_data(test, ctx) and not _says_there_is_some(test, holds=holds)) or _asks_a_tensor(test, ctx)
        for test, holds in ctx.conditions(node, exits=False)
    )


def _says_there_is_some(test: ast.expr, *, holds: bool) -> bool:
    """Whether `x.size(-1) > 1`, or that `len(x) == 0` is false, leads here: what holds of most batches."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not _is_none_or_one(test.comparators[0]):
        return False
    return isinstance(test.ops[0], (ast.Gt, ast.NotEq) if holds else (ast.Eq, ast.LtE))


def _is_none_or_one(node: ast.expr) -> bool:
    return is_constant(node, 0) or is_constant(node, 1)


def _asks_for_data(test: ast.expr, ctx: FileFacts) -> bool:
    for part in walk(test):
        if isinstance(part, ast.Name) and any(_is_size(origin) for origin in ctx.inference.origins(part)):
            return True
        if isinstance(part, ast.Call) and callee_name(part) in _ASKS:
            return True
        if isinstance(part, ast.Attribute) and part.attr == "shape":
            return True
        if isinstance(part, ast.Name) and COUNT.search(part.id):
            return True
    return False


def _asks_a_tensor(test: ast.expr, ctx: FileFacts) -> bool:
    """`total == 0` of a tensor: what holds for some batches."""
    if isinstance(test, ast.Compare):
        if isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return False
        return any(ctx.kind(item).is_tensor for item in (test.left, *test.comparators))
    if isinstance(test, ast.BoolOp):
        return any(_asks_a_tensor(item, ctx) for item in test.values)
    return ctx.kind(test).is_tensor


def _is_size(node: ast.expr) -> bool:
    """`x.shape[0]`, `x.size(0)` and `len(x)`."""
    if isinstance(node, ast.Subscript):
        return _is_size(node.value)
    if isinstance(node, ast.Call):
        return callee_name(node) in ("len", "size", "numel")
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def is_only_read(node: ast.expr, ctx: FileFacts, *, kept: bool = False, depth: int = _DEPTH) -> bool:
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
            if node is parent.slice or _is_looked_up(parent, ctx):
                return True
            return is_only_read(parent, ctx, kept=kept, depth=depth)
        case ast.IfExp() | ast.List() | ast.Tuple() | ast.keyword() | ast.Starred():
            outer = parent if isinstance(parent, ast.expr) else ctx.tree.parent(parent)
            if isinstance(outer, ast.Call):
                return _is_operation(outer, ctx) or kept
            return isinstance(outer, ast.expr) and is_only_read(outer, ctx, kept=kept, depth=depth)
        case ast.Call():
            return _is_operation(parent, ctx) or (kept and callee_name(parent) not in _COLLECTORS)
        case ast.Assign() | ast.AnnAssign():
            target = one_target(parent)
            return target is not None and _is_target_read(target, parent, ctx, kept=kept, depth=depth)
        case ast.Return():
            return kept
        case _:
            return False


def _is_looked_up(node: ast.Subscript, ctx: FileFacts) -> bool:
    """`table[steps]`: what a tensor selects is a new one."""
    return isinstance(node.ctx, ast.Load) and ctx.kind(node.slice).is_tensor


def _is_read_by_method(node: ast.Attribute, ctx: FileFacts, *, kept: bool, depth: int) -> bool:
    call = ctx.tree.parent(node)
    if not isinstance(call, ast.Call) or call.func is not node:
        if node.attr in ("shape", "dtype", "device", "ndim"):
            return True
        return node.attr in ("T", "mT", "data") and is_only_read(node, ctx, kept=kept, depth=depth)
    if node.attr.endswith("_"):
        return False
    if node.attr in tensors.VIEW_METHODS or node.attr in tensors.CAST_METHODS or node.attr in ("to", "tril", "triu"):
        return is_only_read(call, ctx, kept=kept, depth=depth)
    return True


def _is_operation(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call computes with its arguments: of torch, of a tensor, or of a module."""
    target = ctx.target(call.func) or ""
    if target.startswith("torch."):
        return not target.startswith(("torch.distributed.", "torch.autograd.")) and not target.endswith("_")
    if isinstance(call.func, ast.Attribute) and ctx.kind(call.func.value).is_tensor:
        return call.func.attr not in ("copy_", "set_")
    return False


def _is_target_read(target: ast.expr, node: ast.stmt, ctx: FileFacts, *, kept: bool, depth: int) -> bool:
    if isinstance(target, ast.Subscript):
        return ctx.kind(target.value).is_tensor
    if not isinstance(target, ast.Name) or depth == 0:
        return False
    flow, around = ctx.inference.flow, ctx.tree.scope_of(node)
    made = flow.definition_at(target)
    uses = flow.uses_of(made) if made is not None else []
    # The same name may have been written to before it was bound to this tensor.
    if flow.is_mutated(target.id, around) and any(_is_written(use, ctx) for use in uses):
        return False
    return bool(uses) and all(
        not _adds_up(use, target.id, ctx) and is_only_read(use, ctx, kept=kept, depth=depth - 1) for use in uses
    )


def _is_written(use: ast.Name, ctx: FileFacts) -> bool:
    """`mask[0] = 1`, `mask += 1`, and what a method or a function may do with it."""
    parent = ctx.tree.parent(use)
    if isinstance(parent, ast.Subscript):
        return not isinstance(parent.ctx, ast.Load) or isinstance(ctx.tree.parent(parent), ast.Attribute)
    return not isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.IfExp))


def _adds_up(use: ast.Name, name: str, ctx: FileFacts) -> bool:
    """`total = total + x`: the constant is where a sum starts."""
    statement = ctx.tree.statement_of(use)
    if not isinstance(statement, ast.Assign) or not isinstance(ctx.tree.parent(use), ast.BinOp):
        return False
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def is_of_numpy(data: ast.expr, ctx: FileFacts) -> bool:
    return any(isinstance(part, ast.Call) and (ctx.target(part.func) or "").startswith("numpy.") for part in walk(data))
