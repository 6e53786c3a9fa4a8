"""Indices on the host that select from a device tensor: each use copies them there, while the host waits."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, Ref
from perflint.analysis.transfers.data_copies import DataCopy
from perflint.analysis.transfers.host_copies import MOVES
from perflint.analysis.values.implicit_copies import indices_of
from perflint.analysis.values.kind import Kind, Place, Tag
from perflint.analysis.waits.host_work import in_forward
from perflint.analysis.waits.reads import kind_on_device
from perflint.finding import Confidence
from perflint.ir.calls import callee_name
from perflint.ir.iterating import taken_from
from perflint.syntax.bindings import Binding
from perflint.syntax.walk import walk

#: What may be an index of many places; numbers and slices are not.
_INDICES = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.ListComp, ast.Tuple)


def index_copied_at(node: ast.Subscript, ctx: FileFacts) -> DataCopy | None:
    """`x[order]`, `boxes[:, [0, 2]]` of a device tensor, where the index is on the host."""
    return ctx.once(_index_copied, node)


def _index_copied(node: ast.Subscript, ctx: FileFacts) -> DataCopy | None:
    candidates = [part for part in indices_of(node) if isinstance(part, _INDICES)]
    # The index is asked first: most are numbers, which is told sooner than where the data is.
    index = next((part for part in candidates if _is_host_index(part, ctx)), None)
    if index is None:
        return None
    data = _placed(node.value, ctx)
    # Of what a loader or a model gives, only a tensor is indexed with a tensor or with a list.
    if data.tag not in (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT):
        return None
    if not data.on_accelerator and not (data.is_tensor and in_forward(node, ctx) and not _is_of_no_module(node, ctx)):
        return None
    placed = kind_on_device(data.but(tag=Tag.TENSOR), node.value, ctx)
    if placed is None:
        return None
    if data.tag is not Tag.TENSOR and not (ctx.kind(index).tag is Tag.TENSOR or _is_surely_list(index, ctx)):
        return None
    return DataCopy(node, index, min(placed, _placed(index, ctx).certainty))


def _placed(value: ast.expr, ctx: FileFacts) -> Kind:
    """What a value is: where callers give tensors of several places, what the call gives that makes this hot."""
    kind = ctx.kind(value)
    there = ctx.kind_on_route(value) if kind.holds_tensors and kind.place is Place.UNKNOWN else kind
    if there is kind:
        return kind
    return there.at_most(Confidence.MEDIUM) if there.holds_tensors and there.place is not Place.UNKNOWN else kind


def _is_of_no_module(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a class that is no module has a `forward`, as transforms of samples do, which work on the host."""
    around = ctx.tree.class_of(node)
    return around is not None and not ctx.program.is_module(Ref(CLASS, ctx.path, ctx.tree.qualname(around)))


def _is_host_index(index: ast.expr, ctx: FileFacts) -> bool:
    if isinstance(index, (ast.List, ast.ListComp, ast.Tuple)):
        return _holds_numbers(index, ctx)
    kind = _placed(index, ctx)
    if kind.tag is Tag.SEQUENCE and kind.element is not None and kind.element.tag is Tag.ARRAY:
        return not _is_list(index)  # `np.tril_indices(n)`: an array for each dimension
    if kind.tag is Tag.SEQUENCE:
        return _is_list_of_numbers(index, kind, ctx)
    is_tensor = kind.tag is Tag.TENSOR and kind.place is Place.HOST and not kind.scalar
    if not is_tensor and kind.tag is not Tag.ARRAY:
        return False
    is_element = any(_is_element(origin, ctx) for origin in ctx.inference.origins(index))
    return not (is_element or _is_one_of(index, kind, ctx) or _may_have_moved(index, ctx))


def _may_have_moved(index: ast.expr, ctx: FileFacts) -> bool:
    """Whether an attribute is one of a class that sets its attributes by computed names, as a `to` of its own does that
    moves all arrays: `setattr(self, name, torch.tensor(value).to(device))`.
    """
    around = ctx.tree.class_of(index) if isinstance(index, ast.Attribute) else None
    return around is not None and ctx.once(_moves_by_name, around)


def _moves_by_name(around: ast.ClassDef, _: FileFacts) -> bool:
    return any(
        isinstance(part, ast.Call)
        and callee_name(part) == "setattr"
        and len(part.args) == 3
        and isinstance(part.args[1], ast.Name)
        and any(isinstance(inner, ast.Call) and callee_name(inner) in MOVES for inner in walk(part.args[2]))
        for part in walk(around)
    )


def _is_list_of_numbers(index: ast.expr, kind: Kind, ctx: FileFacts) -> bool:
    """A name of a list of numbers. A tuple that stands alone is one number for each dimension, and so may be what
    nobody knows to be a list.
    """
    held = kind.element if not kind.items else None
    if held is None or not (held.tag is Tag.NUMBER or (held.tag is Tag.SEQUENCE and _is_row(held))):
        return False
    stands_alone = not isinstance(ctx.tree.parent(index), ast.Tuple)
    return not stands_alone or all(_is_list(origin) for origin in ctx.inference.origins(index))


def _is_surely_list(index: ast.expr, ctx: FileFacts) -> bool:
    """A list is no key of a mapping and no position in a tuple; a tuple may be a key."""
    if isinstance(index, (ast.List, ast.ListComp)):
        return True
    return all(_is_list(origin) for origin in ctx.inference.origins(index))


def _is_row(kind: Kind) -> bool:
    return kind.element is not None and kind.element.tag is Tag.NUMBER


def _is_list(made: ast.expr) -> bool:
    if isinstance(made, ast.Call):
        return callee_name(made) in ("list", "sorted", "tolist")
    return isinstance(made, (ast.List, ast.ListComp))


def _holds_numbers(index: ast.List | ast.ListComp | ast.Tuple, ctx: FileFacts) -> bool:
    """`[0, 2]`, `[places[name] for name in names]`: a list of numbers, which becomes a tensor of the host first."""
    items = [index.elt] if isinstance(index, ast.ListComp) else index.elts
    # `True` among them makes a mask of it.
    return bool(items) and all(ctx.kind(item).tag is Tag.NUMBER and not _is_bool(item) for item in items)


def _is_bool(node: ast.expr) -> bool:
    return isinstance(node, (ast.Compare, ast.BoolOp)) or (isinstance(node, ast.Constant) and type(node.value) is bool)


def _is_element(index: ast.expr, ctx: FileFacts) -> bool:
    """`order[step]`: a tensor without a dimension, which is read as a number; rows of a matrix are not."""
    if not isinstance(index, ast.Subscript) or isinstance(index.slice, (ast.Slice, ast.Tuple)):
        return False
    if ctx.kind(index.slice).tag is not Tag.NUMBER or ctx.kind(index.value).tag is Tag.SEQUENCE:
        return False
    return not any(
        isinstance(origin, ast.Call) and callee_name(origin) in ("triu_indices", "tril_indices")
        for origin in ctx.inference.origins(index.value)
    )


def _is_one_of(index: ast.expr, kind: Kind, ctx: FileFacts) -> bool:
    """`for place in places.cpu()`: of a vector these are numbers, and nothing says that it is more than a vector."""
    definitions = ctx.inference.flow.definitions(index) if isinstance(index, ast.Name) and kind.rank is None else ()
    rows = (
        taken_from(item.value, item.path)
        for item in definitions
        if item.binding in (Binding.FOR, Binding.COMPREHENSION) and item.value is not None
    )
    return any(of is not None and ctx.kind(of).tag in (Tag.TENSOR, Tag.ARRAY) for of in rows)
