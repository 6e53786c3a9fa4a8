"""TPL113: tensors built from lists of numpy arrays, element by element."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Rule,
    Tag,
    arrays,
    callee_name,
    has_unpacking,
    walk,
)
from perflint.api.words import short_text

from ._fixes.stacked_arrays import ARRAY_METHODS, why_unsafe

_CONSTRUCTORS = (
    "torch.tensor",
    "torch.as_tensor",
    "torch.asarray",
    "torch.Tensor",
    "torch.FloatTensor",
    "torch.LongTensor",
    "torch.DoubleTensor",
    "torch.IntTensor",
)
_SPARSE = frozenset("tocoo tocsr tocsc coo_matrix csr_matrix csc_matrix coo_array csr_array".split())
_SPARSE_PARTS = frozenset("row col indices indptr data".split())
#: Arrays of so few numbers do not count.
_SMALL = 256
#: Of a number they give a number.
_ELEMENTWISE = frozenset("abs exp log sqrt square power round floor ceil maximum minimum clip isnan isinf".split())


class TensorFromListOfArrays(Rule):
    """`torch.tensor` of a list of arrays visits every number in Python, hundreds of times slower than one copy.

    What it does

    Reports `torch.tensor(xs)` and similar constructors where `xs` is a list of numpy arrays.

    Why is this slow?

    PyTorch treats the list as a nested sequence and visits each element of each array as a Python object. It warns
    about this once, at run time.

    What to do

    Write `torch.tensor(np.array(xs))`, which copies once more, or `torch.from_numpy(np.stack(xs))`.

    Fix safety

    Safe if the list is a literal of arrays that perflint sees being made, with one visible dtype equal to the
    tensor's, and one dimension or literal sizes: same bits, no shared memory. Otherwise unsafe: a masked array loses
    its mask, a number out of range no longer raises, mixed dtypes promote to the widest (a list takes the first), an
    empty list gives float64 instead of float32, and arrays without rows keep dimensions that a list drops (two of
    shape (0, 3) give (2, 0)).

    Not reported

    - Lists of numbers, also numpy scalars.
    - Lists of tensors: use `torch.stack`.
    - Arrays of a few numbers, where the sizes are literal.
    - In code that runs once: a single array, or a few arrays of literals.

    Measured

    32 arrays of 3 x 224 x 224 floats: 750 ms for the list, 1.5 ms for `torch.from_numpy(np.stack(xs))` (500 times
    less); 256 arrays of 16 floats: 6 times less (CPU).

    References

    - `torch.tensor`: https://docs.pytorch.org/docs/stable/generated/torch.tensor.html
    - `torch.from_numpy`: https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html
    """

    code, name = "TPL113", "tensor-from-list-of-arrays"
    impact = Impact.HIGH
    listens = (Calls(*(name.rpartition(".")[2] for name in _CONSTRUCTORS)),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if len(node.args) != 1 or has_unpacking(node) or not ctx.is_call_of(node, *_CONSTRUCTORS):
            return
        data = node.args[0]
        sure = _holds_arrays(data, ctx)
        if sure is None or _is_little(data, node, ctx) or _are_small(data, node, ctx):
            return
        numpy, imports = ctx.edit.ensure_import("numpy", at=node)
        reason = why_unsafe(node, data, ctx)
        yield self.finding(
            node,
            ctx,
            (
                f"`{ctx.text(node.func)}` converts the arrays in `{short_text(data, ctx, 40)}` number by number in "
                "Python."
            ),
            advice=f"Combine them first: `{ctx.text(node.func)}({numpy}.array({short_text(data, ctx, 40)}))`.",
            fix=Fix(
                "Combine the arrays before creating the tensor",
                Applicability.UNSAFE if reason else Applicability.SAFE,
                (*imports, ctx.edit.wrap(data, f"{numpy}.array(", ")")),
                reason=reason,
                numerics="" if reason else "same bits",
            ),
            confidence=sure,
        )


def _holds_arrays(data: ast.expr, ctx: Context) -> Confidence | None:
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
        sure = [_holds_arrays(item, ctx) for item in origins if not isinstance(item, ast.Name)]
        return Confidence.HIGH if len(origins) == 1 and sure == [Confidence.HIGH] else None
    return Confidence.HIGH if appended and all(_is_array(item, ctx) for item in appended) else None


def _is_little(data: ast.expr, node: ast.Call, ctx: Context) -> bool:
    """Whether it is done once, for arrays that are written out or made of what is written out in the file."""
    if ctx.heat(node) > Heat.ONCE or ctx.loops(node):
        return False
    if isinstance(data, ast.Name):
        origins = [item for item in ctx.inference.origins(data) if item is not data]
        return bool(origins) and all(_is_little(item, node, ctx) for item in origins if not isinstance(item, ast.Name))
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


def _are_small(data: ast.expr, node: ast.Call, ctx: Context) -> bool:
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


def _appended(data: ast.Name, ctx: Context) -> list[ast.expr] | None:
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


def _is_array(node: ast.expr, ctx: Context, depth: int = 4) -> bool:
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
        if isinstance(node.func, ast.Attribute) and node.func.attr in ARRAY_METHODS:
            return _is_array(node.func.value, ctx, depth - 1)
        return False
    if isinstance(node, ast.Attribute) and node.attr in _SPARSE_PARTS:
        return any(_makes_sparse(item) for item in ctx.inference.origins(node.value))
    if isinstance(node, ast.Name):
        origins = [item for item in ctx.inference.origins(node) if item is not node]
        if not origins:
            given = _given_back(node, ctx)
            return bool(given) and all(_is_array(item, ctx, depth - 1) for item in given)
        return all(_is_array(item, ctx, depth - 1) for item in origins)
    return False


def _given_back(name: ast.Name, ctx: Context) -> list[ast.expr]:
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


def _is_scalar(node: ast.Call, ctx: Context) -> bool:
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
