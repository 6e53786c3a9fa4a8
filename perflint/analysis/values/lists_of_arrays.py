"""Lists that hold numpy arrays, and how many numbers those have."""

from __future__ import annotations

import ast
import math

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.finding import Confidence, Heat
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk
from perflint.torch_model import arrays

_SPARSE = frozenset("tocoo tocsr tocsc coo_matrix csr_matrix csc_matrix coo_array csr_array".split())
_SPARSE_PARTS = frozenset("row col indices indptr data".split())
#: Arrays of so few numbers do not count.
_SMALL = 256
#: Of a number they give a number.
_ELEMENTWISE = frozenset("abs exp log sqrt square power round floor ceil maximum minimum clip isnan isinf".split())


def holds_arrays(data: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure it is that `data` is a list of arrays of at least one dimension, None when nothing says so."""
    if isinstance(data, (ast.List, ast.Tuple)):
        return Confidence.HIGH if data.elts and all(_is_array(item, ctx) for item in data.elts) else None
    if isinstance(data, (ast.ListComp, ast.GeneratorExp)):
        return Confidence.HIGH if _is_array(data.elt, ctx) else None
    if not isinstance(data, ast.Name):
        return None
    appended = _appended(data, ctx)
    if appended is None:
        origins = [item for item in ctx.inference.origins(data) if item is not data]
        sure = [holds_arrays(item, ctx) for item in origins if not isinstance(item, ast.Name)]
        return Confidence.HIGH if len(origins) == 1 and sure == [Confidence.HIGH] else None
    return Confidence.HIGH if appended and all(_is_array(item, ctx) for item in appended) else None


def is_little(data: ast.expr, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether it is done once, for arrays that are written out or made of what is written out in the file."""
    if ctx.heat(node) > Heat.ONCE or ctx.loops(node):
        return False
    if isinstance(data, ast.Name):
        origins = [item for item in ctx.inference.origins(data) if item is not data]
        return bool(origins) and all(is_little(item, node, ctx) for item in origins if not isinstance(item, ast.Name))
    if isinstance(data, (ast.List, ast.Tuple)) and len(data.elts) == 1:
        return True  # one array that gets a dimension
    if isinstance(data, (ast.ListComp, ast.GeneratorExp)):
        source = data.generators[0].iter
        made = ctx.inference.origins(source) if isinstance(source, ast.Name) else [source]
        return all(isinstance(item, (ast.List, ast.Tuple)) and bool(item.elts) for item in made)
    return (
        isinstance(data, (ast.List, ast.Tuple))
        and bool(data.elts)
        and all(
            isinstance(item, ast.Call) and item.args and isinstance(item.args[0], (ast.List, ast.ListComp))
            for item in data.elts
        )
    )


def are_small(data: ast.expr, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether all arrays of a list are made of sizes that are written, and small: walked in microseconds. How many a
    loop makes is not written, so in a step that counts for none.
    """
    items: list[ast.expr] = list(getattr(data, "elts", []))
    if not items and ctx.heat(node) >= Heat.STEP:
        return False
    if isinstance(data, (ast.ListComp, ast.GeneratorExp)):
        items = [data.elt]
    elif isinstance(data, ast.Name):
        items = _appended(data, ctx) or []
    return bool(items) and all(0 < _written_size(item) <= _SMALL for item in items)


def _written_size(made: ast.expr) -> int:
    """How many numbers `np.ones([4, 4])` has; 0 where that is not written."""
    if not isinstance(made, ast.Call) or callee_name(made) not in ("zeros", "ones", "empty", "full") or not made.args:
        return 0
    sizes = made.args[0].elts if isinstance(made.args[0], (ast.Tuple, ast.List)) else [made.args[0]]
    numbers = [size.value for size in sizes if isinstance(size, ast.Constant) and isinstance(size.value, int)]
    return math.prod(numbers) if len(numbers) == len(sizes) else 0


def _appended(data: ast.Name, ctx: FileFacts) -> list[ast.expr] | None:
    """What is appended to a list that begins empty in this scope, None when `data` is no such list."""
    origins = ctx.inference.origins(data)
    if not origins or not all(isinstance(origin, ast.List) and not origin.elts for origin in origins):
        return None
    found: list[ast.expr] = []
    for part in walk(ctx.tree.scope_of(data)):
        if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)):
            continue
        receiver = part.func.value
        if isinstance(receiver, ast.Name) and receiver.id == data.id:
            if part.func.attr != "append" or len(part.args) != 1:
                return []
            found.append(part.args[0])
    return found


def _is_array(node: ast.expr, ctx: FileFacts, depth: int = 4) -> bool:
    """Whether an expression is an array that is no single number: made as one, not picked out of one by an index."""
    if depth == 0:
        return False
    if isinstance(node, ast.Call):
        if (ctx.target(node.func) or "") in arrays.ARRAY_FUNCTIONS:
            return ctx.kind(node).tag is Tag.ARRAY and not _is_scalar(node, ctx)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
            kind = ctx.kind(node.func.value)
            return kind.is_tensor and not kind.scalar and not _is_reduced(node.func.value)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "astype"
            and _is_name(_flattened(node.func.value))
        ):
            return ctx.kind(_flattened(node.func.value)).tag in (Tag.UNKNOWN, Tag.ARRAY)
        if isinstance(node.func, ast.Attribute) and node.func.attr in arrays.ARRAY_METHODS:
            return _is_array(node.func.value, ctx, depth - 1)
        return False
    if isinstance(node, ast.Attribute) and node.attr in _SPARSE_PARTS:
        return any(_makes_sparse(item) for item in ctx.inference.origins(node.value))
    if isinstance(node, ast.Name):
        origins = [item for item in ctx.inference.origins(node) if item is not node]
        if not origins:
            given = _given_back(node, ctx)
            return bool(given) and all(_is_array(item, ctx, depth - 1) for item in given)
        sure = [_is_array(item, ctx, depth - 1) for item in origins]
        return any(sure) and all(is_sure or _may_be_array(item, ctx) for item, is_sure in zip(origins, sure))
    return False


def _may_be_array(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether something is, for all that is known, of the same kind as the array that stands for it in another branch:
    `wave = np.pad(wave, ...)` of a short one, and `wave = wave[:n]` of a long one. What is stacked is alike.
    """
    return ctx.kind(node).tag in (Tag.UNKNOWN, Tag.ARRAY)


def _given_back(name: ast.Name, ctx: FileFacts) -> list[ast.expr]:
    """What `_, name = function(...)` may take from a function of this file; nothing where that is not plain."""
    found: list[ast.expr] = []
    for definition in ctx.inference.flow.definitions(name):
        made = definition.node
        if not (isinstance(made, ast.Assign) and len(made.targets) == 1 and isinstance(made.value, ast.Call)):
            return []
        target, ref = made.targets[0], ctx.project_target(made.value.func)
        names = [item.id if isinstance(item, ast.Name) else "" for item in getattr(target, "elts", [])]
        if ref is None or ref.path != ctx.path or names.count(name.id) != 1:
            return []
        for part in walk(ctx.tree.module):
            if isinstance(part, ast.FunctionDef) and ctx.tree.qualname(part) == ref.name:
                returned = [item.value for item in walk(part) if isinstance(item, ast.Return)]
                if not all(isinstance(item, ast.Tuple) and len(item.elts) == len(names) for item in returned):
                    return []
                found += [item.elts[names.index(name.id)] for item in returned if isinstance(item, ast.Tuple)]
    return found


def _is_name(node: ast.expr) -> bool:
    """A name stands for a whole array; what an index picks out of one may be a number."""
    return isinstance(node, ast.Name)


def _flattened(node: ast.expr) -> ast.expr:
    """`x` of `x.ravel()`"""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("ravel", "flatten"):
        return node.func.value
    return node


def _makes_sparse(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _SPARSE


def _is_scalar(node: ast.Call, ctx: FileFacts) -> bool:
    """`np.array(1.0)`, `np.asarray(x)` of a number: an array without a dimension; so may be a dot product."""
    if (ctx.target(node.func) or "").rpartition(".")[2] in ("dot", "matmul", "where", "norm", "einsum"):
        return True
    if not node.args:
        return False
    if (ctx.target(node.func) or "").removeprefix("numpy.") in _ELEMENTWISE:
        return ctx.kind(node.args[0]).tag is not Tag.ARRAY or (
            isinstance(node.args[0], ast.Call) and _is_scalar(node.args[0], ctx)
        )
    return ctx.kind(node.args[0]).tag is Tag.NUMBER and (ctx.target(node.func) or "").endswith(("array", "asarray"))


def _is_reduced(node: ast.expr) -> bool:
    """Whether a tensor may be a single number: an element, or a sum."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.slice, (ast.Slice, ast.Tuple))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("cpu", "detach", "float", "clone", "contiguous"):
            return _is_reduced(node.func.value)
        return node.func.attr in ("mean", "sum", "max", "min", "norm", "item")
    return False
