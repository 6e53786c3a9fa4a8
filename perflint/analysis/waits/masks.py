"""Which indices are masks of booleans: how many entries they select only their values tell."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.values import MASK
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.kind import Place, Tag
from perflint.analysis.waits.host_work import in_forward
from perflint.analysis.waits.reads import is_on_device, is_unknown_in_step
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.torch_model import tensors

#: What fails for an empty tensor, or is read by the host.
_SUMMARIZES = frozenset("max min amax amin argmax argmin median item tolist".split())
#: Functions and methods that give tensors of booleans.
_BOOLEAN = frozenset(
    "eq ne gt ge lt le bool isnan isinf isfinite isin logical_and logical_or logical_not logical_xor greater less "
    "greater_equal less_equal not_equal isclose signbit".split()
)
#: Methods that ask a mask how many it selects.
_COUNTING = ("any", "all", "sum")
#: What changes where a tensor is or how it is laid out, not its type; the indices of a sparse one are other numbers.
_MOVES = (tensors.VIEW_METHODS | {"cuda"}) - {"indices"}


def selecting(node: ast.Subscript) -> ast.expr:
    """What selects in one dimension, where all others are taken as they are: `mask` of `x[:, mask]`."""
    if not isinstance(node.slice, ast.Tuple):
        return node.slice
    found = [item for item in node.slice.elts if not _takes_all(item)]
    return found[0] if len(found) == 1 else node.slice


def _takes_all(item: ast.expr) -> bool:
    if isinstance(item, ast.Slice):
        return item.lower is None and item.upper is None and item.step is None
    return isinstance(item, ast.Constant) and item.value is Ellipsis


def is_boolean(node: ast.expr, ctx: FileFacts, depth: int = 4) -> bool:
    """Whether an index is certainly a tensor of booleans: by its type, or by how it is written where none is known."""
    if depth == 0:
        return False
    dtype = ctx.kind(node).dtype
    if dtype is not None:
        return dtype is Dtype.BOOL
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.BinOp):
        bitwise = isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor))
        return bitwise and (is_boolean(node.left, ctx, depth - 1) or is_boolean(node.right, ctx, depth - 1))
    if isinstance(node, ast.Call):
        if callee_name(node) in _BOOLEAN:
            return True
        if isinstance(node.func, ast.Attribute) and _keeps_type(node, ctx):
            return is_boolean(node.func.value, ctx, depth - 1)
        kinds = [*node.args, *(item.value for item in node.keywords if item.arg == "dtype")]
        return any(ctx.text(item) == "torch.bool" for item in kinds)
    if isinstance(node, ast.Subscript):
        return is_boolean(node.value, ctx, depth - 1)  # `x[mask[i]]`: a row of a mask
    if isinstance(node, (ast.Name, ast.Attribute)):
        origins = ctx.inference.origins(node)
        return origins != [node] and all(is_boolean(origin, ctx, depth - 1) for origin in origins)
    return False


def _is_used_as_mask(mask: ast.expr, ctx: FileFacts) -> bool:
    """Whether its function inverts what a name holds, counts it or asks it for any: `~seen`, `seen.sum()`,
    `torch.all(seen)`. Nobody does that with positions.
    """
    if not isinstance(mask, ast.Name) or is_index(mask, ctx) or ctx.kind(mask).tag not in (Tag.UNKNOWN, Tag.TENSOR):
        return False
    asked = ctx.once(_asked_as_masks, ctx.tree.scope_of(mask)).get(mask.id, ())
    found = set(ctx.inference.flow.definitions(mask)) if asked else set()
    return bool(found) and any(found == set(ctx.inference.flow.definitions(use)) for use in asked)


def _asked_as_masks(region: ast.AST, ctx: FileFacts) -> dict[str, list[ast.Name]]:
    """By name, where a scope does that."""
    found: dict[str, list[ast.Name]] = {}
    for part in ctx.walk(region):
        asked: ast.expr | None = None
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Invert):
            asked = part.operand
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            if part.func.attr in _COUNTING and not (part.args or part.keywords):
                asked = part.func.value
            elif part.func.attr in ("any", "all") and len(part.args) == 1:
                asked = part.args[0]
        if isinstance(asked, ast.Name):
            found.setdefault(asked.id, []).append(asked)
    return found


def mask_in(node: ast.Subscript, ctx: FileFacts) -> ast.expr:
    """What selects: where several do (`x[:, row, mask]`), the one that is certainly a mask."""
    found = selecting(node)
    if isinstance(found, ast.Tuple):
        masks = [
            item for item in found.elts if not isinstance(item, (ast.Slice, ast.Constant)) and is_boolean(item, ctx)
        ]
        return masks[0] if len(masks) == 1 else found
    return found


def is_index(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether what selects is certainly a tensor of positions, whatever it is called: it counts nothing."""
    return ctx.kind(node).dtype is Dtype.INT


def _keeps_type(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a method moves or turns a tensor and leaves its numbers what they are: `mask.to(device)`."""
    if callee_name(call) != "to":
        return callee_name(call) in _MOVES
    return len(call.args) == 1 and not call.keywords and ctx.kind(call.args[0]).tag is Tag.DEVICE


def selects_on_device(node: ast.Subscript, ctx: FileFacts) -> bool:
    """Whether `x[mask]` takes what a mask on the device selects."""
    mask = mask_in(node, ctx)
    may_be = _is_called_mask(mask) or _combines_tests(mask, ctx)
    if not is_boolean(mask, ctx) and not (may_be and not is_index(mask, ctx) and in_forward(node, ctx)):
        if not _is_used_as_mask(mask, ctx):
            return False
    return _is_selected_by(mask, node.value, ctx) or _is_known_here(mask, node.value, ctx)


def _is_known_here(mask: ast.expr, value: ast.expr, ctx: FileFacts) -> bool:
    if not is_on_device(value, ctx):
        # A forward that tests and selects what nothing is known of was given tensors.
        is_unknown = is_unknown_in_step(value, ctx.kind(value), ctx, (Tag.TENSOR,))
        return is_unknown and in_forward(value, ctx) and _is_test(mask, ctx)
    return is_on_device(mask, ctx) or _is_somewhere(mask, ctx) or _is_test(mask, ctx)


def _is_somewhere(mask: ast.expr, ctx: FileFacts) -> bool:
    """Whether a mask is a tensor that some paths make on the device and others on the host: what it selects there is
    counted on either, and from the host the positions are copied besides.
    """
    kind = ctx.kind(mask)
    return kind.tag is Tag.TENSOR and kind.dtype is Dtype.BOOL and kind.place is Place.UNKNOWN


def _is_selected_by(mask: ast.expr, value: ast.expr, ctx: FileFacts) -> bool:
    """Whether a mask of the device selects from what only may be a tensor: then it is one, and on the device, since
    nothing else takes such a mask.
    """
    kind = ctx.kind(value)
    if kind.place is Place.HOST or (kind.known and kind.tag not in (Tag.OUTPUT, Tag.TENSOR)):
        return False
    return is_boolean(mask, ctx) and is_on_device(mask, ctx)


def _is_test(mask: ast.expr, ctx: FileFacts) -> bool:
    """`mask = edge_type == index`, of something unknown: it selects from a tensor, so it is a tensor or an array. From
    the host, its positions are copied besides.
    """
    origins = ctx.inference.origins(mask) if isinstance(mask, ast.Name) else []
    return bool(origins) and all(
        isinstance(origin, ast.Compare)
        and len(origin.ops) == 1
        and not isinstance(origin.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        and not ctx.kind(origin.left).known
        and ctx.kind(origin.left).place is Place.UNKNOWN
        for origin in origins
    )


def _combines_tests(node: ast.expr, ctx: FileFacts) -> bool:
    """`seen & inside` where it selects: positions are not combined bit by bit, but with a number, as hashes are."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return False
    return not any(ctx.kind(item).tag is Tag.NUMBER or is_index(item, ctx) for item in (node.left, node.right))


def _is_called_mask(node: ast.expr) -> bool:
    return bool(MASK.search(last_name(node)))


def only_writes_masked(node: ast.If, leaf: ast.expr, ctx: FileFacts) -> bool:
    """Whether a block that runs where any entry of a mask is set does nothing but write to these entries."""
    if node.test is not leaf or node.orelse or not (isinstance(leaf, ast.Call) and callee_name(leaf) == "any"):
        return False
    mask = leaf.args[0] if leaf.args else leaf.func.value if isinstance(leaf.func, ast.Attribute) else None
    return mask is not None and all(_writes_masked(item, ctx.text(mask), ctx) for item in node.body)


def _writes_masked(statement: ast.stmt, mask: str, ctx: FileFacts) -> bool:
    """`x[mask] = y`, `x = torch.where(mask, y, x)`, `x = x.masked_fill(mask, y)`"""
    value = getattr(statement, "value", None)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(target, ast.Subscript) and not (isinstance(statement, ast.Assign) and len(statement.targets) > 1):
            return ctx.text(target.slice) == mask and _is_of_entries(value, ctx)
        if not (isinstance(statement, ast.Assign) and isinstance(target, (ast.Name, ast.Attribute))):
            return False
        if not isinstance(value, ast.Call) or not value.args or ctx.text(value.args[0]) != mask:
            return False
        kept = (
            value.args[2]
            if callee_name(value) == "where" and len(value.args) == 3
            else getattr(value.func, "value", None)
        )
        return (
            callee_name(value) in ("where", "masked_fill") and kept is not None and ctx.text(kept) == ctx.text(target)
        )
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call) and value.args:
        return callee_name(value) in ("masked_fill_", "masked_scatter_") and ctx.text(value.args[0]) == mask
    return False


def _is_of_entries(value: ast.expr | None, ctx: FileFacts) -> bool:
    """Whether a value can be computed of no entries at all: by operators and functions of torch, by no module."""
    calls = [part for part in ast.walk(value) if isinstance(part, ast.Call)] if value is not None else []
    return value is not None and all(callee_name(call) not in _SUMMARIZES and _is_of_torch(call, ctx) for call in calls)


def _is_of_torch(call: ast.Call, ctx: FileFacts) -> bool:
    target = ctx.target(call.func) or ""
    if isinstance(call.func, ast.Attribute) and ctx.kind(call.func.value).is_tensor:
        return True
    return (
        target.startswith("torch.") and not target.startswith("torch.nn.") and target not in tensors.RANDOM_CONSTRUCTORS
    )
