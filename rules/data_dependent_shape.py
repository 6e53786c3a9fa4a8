"""TPL205: results whose size depends on the values of a device tensor, and checks of linear algebra."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    EXTERNAL_INSTANCE,
    Calls,
    Claims,
    Confidence,
    Context,
    Dtype,
    Finding,
    Heat,
    Impact,
    Nodes,
    Place,
    Rule,
    Tag,
    argument,
    callee_name,
    is_constant,
    keyword,
    tensors,
    walk,
)
from perflint.api.waits import (
    certainty_on_device,
    first_of_block,
    impact_at,
    in_forward,
    is_boolean,
    is_exceptional,
    is_on_device,
    is_read_next,
    kind_on_device,
    mask_in,
    selects_on_device,
    works_on_host,
)
from perflint.api.words import short_text

from ._fixes.count_once import select_by_positions
from ._fixes.mask_advice import (
    BOUNDED,
    SUPPRESSED,
    WRITTEN,
    instead_of_selecting,
    is_bounded,
    suppression_behind,
    without_rows,
)

_SHAPES = frozenset(name for name, wait in tensors.SYNC_METHODS.items() if wait is tensors.Wait.SHAPE)
_CHECKS = frozenset(
    name.rpartition(".")[2] for name, wait in tensors.SYNC_FUNCTIONS.items() if wait is tensors.Wait.CHECK
)
_SUPPRESSIONS = frozenset({"nms", "batched_nms"})
_NAMES = (*sorted(_SHAPES | _CHECKS | _SUPPRESSIONS), "where", "one_hot", *sorted(tensors.SYNC_BACKWARD))


class DataDependentShape(Rule):
    """The size of the result depends on values of a device tensor, so the host blocks until it is known.

    What it does

    Reports operations with a data-dependent shape on the hot path: `nonzero`, one-argument `torch.where`, boolean
    mask indexing (`x[mask]`, `x[mask] = y`), `masked_select`, `unique`, `bincount`, `one_hot` without `num_classes`,
    `repeat_interleave` without `output_size`, `torchvision.ops.nms`; `masked_scatter`, whose backward selects by the
    mask; and `torch.linalg` functions such as `inv`, `solve` and `cholesky`.

    Why is this slow?

    PyTorch must know the size of the result before it can allocate it. The host blocks until the device has counted.
    The `torch.linalg` functions block to check for errors. Under `torch.compile`, the former are graph breaks.

    What to do

    If the selected entries are reduced, multiply by the mask and divide by its sum. If they are written back to their
    places, use `torch.where(mask, x, other)` or `masked_fill`. Neither drops rows: to use fewer rows, carry the mask
    along or pad to a bound. `x[mask] = 0` with a Python number does not synchronize. Pass `num_classes` and
    `output_size`. `torch.nonzero_static(size=...)` bounds the result. `torch.linalg.inv_ex` and similar skip the
    check. If a mask selects several times, compute `index = mask.nonzero(as_tuple=True)` once; `x[index]` does not
    synchronize.

    Fix safety

    Unsafe, with the same bits, where a mask selects several times: its positions are counted once. A mask of a shape
    that does not fit raises an error, positions do not. Other findings have no fix: with a mask instead of a selection,
    rounding, NaN times zero and empty selections give other results.

    Not reported

    - Positions that are found once to select several times.
    - Results that the host reads next anyway (decoded to text, converted to a list).
    - Masks on the CPU, three-argument `where`, integer indices, `multinomial`, `topk` and `sort`.
    - Code outside of forward passes and training steps.

    Known limitations

    Some algorithms need the packed result: detection, routing to experts, packing of sequences. Suppress the finding
    there.

    References

    - `torch.nonzero`: https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html
    - `torch.nonzero_static`: https://docs.pytorch.org/docs/stable/generated/torch.nonzero_static.html
    - `torch.where`: https://docs.pytorch.org/docs/stable/generated/torch.where.html
    - `torch.linalg.inv_ex`: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html
    """

    code, name = "TPL205", "data-dependent-shape"
    impact = Impact.LOW
    listens = (Calls(*_NAMES), Nodes(ast.Subscript))
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("shape", "read", "synchronize", adopts=("shape",))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.Call, ast.Subscript))
        if isinstance(node, ast.Subscript) and not isinstance(
            mask_in(node, ctx), (ast.Name, ast.Attribute, ast.Subscript, ast.UnaryOp, *_TESTS)
        ):
            return
        found = _masked(node, ctx) if isinstance(node, ast.Subscript) else _called(node, ctx)
        if found is None or is_exceptional(node, ctx) or not _is_worth_it(node, ctx) or is_read_next(node, ctx):
            return
        value, why, advice = found
        suppression = suppression_behind(node, ctx)
        certainty = certainty_on_device(value, ctx) or Confidence.LOW
        if isinstance(node, ast.Subscript) and (certainty is Confidence.LOW or not is_boolean(mask_in(node, ctx), ctx)):
            certainty = Confidence.MEDIUM
        yield self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx)}` {ctx.heat(node).phrase}: {why}.",
            advice=advice if suppression is None else SUPPRESSED,
            fix=select_by_positions(node, ctx) if isinstance(node, ast.Subscript) else None,
            confidence=min(self.confidence, certainty),
            impact=_impact(node, ctx),
            block=suppression or first_of_block(node, ctx),
        )


def _impact(node: ast.Call | ast.Subscript, ctx: Context) -> Impact:
    """Only whoever makes the batch may know how many rows repeats come to, so that sparing the wait is not certain."""
    found = impact_at(node, ctx)
    repeats = isinstance(node, ast.Call) and callee_name(node) == "repeat_interleave"
    return min(found, Impact.MEDIUM) if repeats else found


_POSITIONS = ("nonzero", "where")
_TESTS = (ast.Compare, ast.BinOp, ast.Call)
#: What to do where the size of a result depends on values, by what gives it. A mask cannot take the place of any.
_KEEP = {
    "nonzero": "Work with the mask itself, where all rows can be computed.",
    "argwhere": "Work with the mask itself, where all rows can be computed.",
    "bincount": (
        "With a known number of bins, `torch.zeros(bins, device=...).scatter_add_(0, x, ones)` does not synchronize."
    ),
}
_COUNT_EARLIER = "Do it on the host where the data is prepared, or keep the duplicates."
_COUNTS = "its size depends on the values, so the host blocks until the device has counted"


def _is_worth_it(node: ast.AST, ctx: Context) -> bool:
    if works_on_host(node, ctx):
        return False
    return ctx.role(node) in ("train", "batches") or (ctx.role(node) not in ("data", "eval") and in_forward(node, ctx))


def _called(node: ast.Call, ctx: Context) -> tuple[ast.expr, str, str] | None:
    name = callee_name(node)
    target = ctx.target(node.func)
    if target is not None and any(ref.kind == EXTERNAL_INSTANCE for ref in ctx.refs(node.func)):
        target = None if target.startswith("torch.") else target  # a method of what torch made, or is said to be of it
    if target is not None and (target.startswith("torch.") or target in tensors.SYNC_FUNCTIONS):
        value = node.args[0] if node.args else keyword(node, "input")
    elif isinstance(node.func, ast.Attribute) and target is None and name in _METHODS:
        value = node.func.value
    else:
        return None
    is_method = target is None
    if name in tensors.SYNC_BACKWARD:
        return _selected_backward(node, value, ctx)
    if value is None or _knows_size(node, name, ctx, is_method=is_method):
        return None
    # What is known of the result is known of what is repeated: torch takes nothing but tensors there.
    if not is_on_device(value, ctx) and not (name == "repeat_interleave" and is_on_device(node, ctx)):
        return None
    if name in _POSITIONS and _selects_often(node, ctx):
        return None
    if name in _CHECKS and (is_method or target in tensors.SYNC_FUNCTIONS):
        return value, "it checks for errors on the host, so the host blocks until the result is known", _unchecked(name)
    if name == "where":
        return value, _COUNTS, "Use the mask itself, or `where` with three arguments."
    if name == "one_hot":
        return value, _COUNTS, "Pass `num_classes`."
    if name == "repeat_interleave":
        return value, _COUNTS, "Pass `output_size`: sum the repeats on the host, where the batch is made."
    if name in _SUPPRESSIONS and ctx.role(node) != "train" and not in_forward(node, ctx):
        return None  # what is found in an evaluation goes to the host in any case
    if name in _SUPPRESSIONS and target in tensors.SYNC_FUNCTIONS:
        return value, _COUNTS, "Suppress for all images at once (`batched_nms`), or in evaluation only."
    if name == "masked_select":
        return value, _COUNTS, without_rows(node, ctx)
    if name in ("nonzero", "argwhere") and is_bounded(node, ctx):
        return value, _COUNTS, BOUNDED
    return (value, _COUNTS, _KEEP.get(name, _COUNT_EARLIER)) if name in _SHAPES else None


_METHOD_CHECKS = frozenset({"inverse", "cholesky", "pinverse", "logdet"})
_METHODS = _SHAPES | _METHOD_CHECKS | frozenset(tensors.SYNC_BACKWARD)


def _selected_backward(node: ast.Call, value: ast.expr | None, ctx: Context) -> tuple[ast.expr, str, str] | None:
    """`x.masked_scatter(mask, source)`, where the source is learned."""
    source = argument(node, 1 if value is not None and value not in node.args else 2, "source")
    if value is None or source is None or ctx.grad_off(node):
        return None
    given = ctx.kind(source)
    types = {ctx.kind(node).dtype, ctx.kind(value).dtype, given.dtype}
    # Integers have no gradient, and what nothing is known of may be such.
    may_be_learned = (given.holds_tensors or given.on_accelerator) and given.requires_grad is not False
    if not may_be_learned or types & {Dtype.INT, Dtype.BOOL}:
        return None
    if kind_on_device(ctx.kind(node), node, ctx) is None:
        return None
    why = "its backward selects by the mask, so the host blocks until the device has counted"
    return (
        node,
        why,
        "Gather instead: `rows = mask.cumsum(0) - 1`, then `torch.where(mask, source[rows.clamp(min=0)], x)`.",
    )


def _unchecked(name: str) -> str:
    if name in ("inv", "inverse", "cholesky", "solve"):
        return f"`torch.linalg.{'inv' if name == 'inverse' else name}_ex` skips the check."
    return "Do it less often, or on the host if the matrices are small."


#: Methods and functions that select by positions, or write there.
_BY_INDEX = frozenset("index_select gather take index_add index_add_ index_copy index_copy_ index_fill_".split())


def _selects_often(node: ast.Call, ctx: Context) -> bool:
    """Whether the positions of a mask are counted once to be used again and again, instead of the mask each time."""
    if in_forward(node, ctx) and ctx.loops(node):
        return False  # `for i, expert in enumerate(self.experts): rows = (chosen == i).nonzero()`: once for each
    statement = _outside_of_views(node, ctx)
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return False
    name = statement.targets[0].id
    uses = [
        part
        for part in walk(ctx.tree.function_of(node) or ctx.tree.module)
        if (isinstance(part, ast.Subscript) and _is_named(part.slice, name))
        or (
            isinstance(part, ast.Call)
            and callee_name(part) in _BY_INDEX
            and any(_is_named(item, name) for item in part.args)
        )
    ]
    return len(uses) > 1


def _outside_of_views(node: ast.Call, ctx: Context) -> ast.AST | None:
    """What stands around `mask.nonzero()`, `mask.nonzero()[:, 0]` or `mask.nonzero().flatten()`."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.Subscript):
        return ctx.tree.parent(outer)
    while isinstance(outer, ast.Attribute) and outer.attr in tensors.VIEW_METHODS:
        call = ctx.tree.parent(outer)
        outer = ctx.tree.parent(call) if isinstance(call, ast.Call) else None
    return outer


def _is_named(node: ast.expr, name: str) -> bool:
    """`keep`, or `keep.data` as it was written once."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return isinstance(node, ast.Name) and node.id == name


def _has_classes(node: ast.Call) -> bool:
    given = argument(node, 1, "num_classes")
    return given is not None and not (isinstance(given, ast.UnaryOp) or is_constant(given, -1))


def _knows_size(node: ast.Call, name: str, ctx: Context, *, is_method: bool) -> bool:
    """Whether the host knows how large the result is, as far as what else is given tells."""
    if name == "where":
        return len(node.args) != 1
    if name == "one_hot":
        return _has_classes(node)
    if name != "repeat_interleave":
        return False
    repeats = argument(node, 0 if is_method else 1, "repeats")
    if keyword(node, "output_size") is not None:
        return True
    if repeats is None:
        return is_method  # `torch.repeat_interleave(repeats)` counts as well
    # The values are on the device, and so are the repeats, wherever they come from: torch wants both in one place.
    kind = ctx.kind(repeats)
    if is_on_device(repeats, ctx) or (kind.tag is Tag.TENSOR and kind.place is Place.UNKNOWN):
        return False
    return kind.known or kind.on_host or not _is_difference(repeats)


def _is_difference(node: ast.expr) -> bool:
    """`starts[1:] - starts[:-1]`: of lists there is no difference, and of arrays torch takes none."""
    return isinstance(node, ast.BinOp) and all(
        isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Slice) for side in (node.left, node.right)
    )


def _masked(node: ast.Subscript, ctx: Context) -> tuple[ast.expr, str, str] | None:
    """`x[mask]` read, or written with a tensor. Of a Python number it becomes a `masked_fill`, which does not wait."""
    if not selects_on_device(node, ctx):
        return None
    if isinstance(node.ctx, ast.Load):
        return node.value, _COUNTS, instead_of_selecting(node, ctx)
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.AugAssign):  # reads what the mask selects first, whatever the other operand is
        return node.value, _COUNTS, WRITTEN
    if not isinstance(parent, ast.Assign):
        return None
    given = ctx.kind(parent.value)
    if not is_on_device(parent.value, ctx) and not (given.holds_tensors and given.on_accelerator):
        return None
    return node.value, "the host blocks until the device has counted the written positions", WRITTEN
