"""Operations for which the host waits until the device has counted, or has checked for errors."""

from __future__ import annotations

import ast
import enum
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, EXTERNAL_INSTANCE, Ref
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.waits.graph_sizes import looked_up, sparing
from perflint.analysis.waits.host_work import in_forward
from perflint.analysis.waits.known_sizes import knows_size, selects_often
from perflint.analysis.waits.masks import selects_on_device
from perflint.analysis.waits.reads import is_on_device, kind_on_device
from perflint.ir.calls import argument, callee_name, keyword
from perflint.torch_model import graphs, tensors
from perflint.torch_model.frameworks import AUTOGRAD_FUNCTION

_SHAPES = frozenset(name for name, wait in tensors.SYNC_METHODS.items() if wait is tensors.Wait.SHAPE)
_CHECKS = frozenset(
    name.rpartition(".")[2] for name, wait in tensors.SYNC_FUNCTIONS.items() if wait is tensors.Wait.CHECK
)
_SUPPRESSIONS = frozenset({"nms", "batched_nms"})
_POSITIONS = ("nonzero", "where")
_METHOD_CHECKS = frozenset({"inverse", "cholesky", "pinverse", "logdet"})
_METHODS = _SHAPES | _METHOD_CHECKS | frozenset(tensors.SYNC_BACKWARD)
_PRODUCTS = frozenset({"prod", "cumprod"})
#: The names of calls that may count.
COUNTING_NAMES = (
    *sorted(_SHAPES | _CHECKS | _SUPPRESSIONS | graphs.WAITING_NAMES),
    "where",
    "one_hot",
    *sorted(tensors.SYNC_BACKWARD),
)


class Count(enum.Enum):
    """What the host waits for."""

    OF_RESULT = "size of the result"
    OF_WRITTEN = "written positions"
    IN_BACKWARD = "selection in the backward"
    OF_ERRORS = "errors"
    OF_ZEROS = "zeros among the factors, in the backward"
    OF_NORMS = "norms, by which the approximation is chosen"
    OF_INDEX = "largest index, or entries that are kept"


class Counted(NamedTuple):
    """What is counted, and the tensor of the device that it is counted of."""

    value: ast.expr
    what: Count


def counted_at(node: ast.Call | ast.Subscript, ctx: FileFacts) -> Counted | None:
    """What an operation has counted, None where the host knows the size, or nothing is on the device."""
    return _masked(node, ctx) if isinstance(node, ast.Subscript) else _called(node, ctx)


def _called(node: ast.Call, ctx: FileFacts) -> Counted | None:
    name = callee_name(node)
    target = ctx.target(node.func)
    if sparing(node, ctx) is not None:
        read = looked_up(node, ctx)
        return None if read is None else Counted(read, Count.OF_INDEX)
    if target is not None and any(ref.kind == EXTERNAL_INSTANCE for ref in ctx.refs(node.func)):
        target = None if target.startswith("torch.") else target  # a method of what torch made, or is said to be of it
    if target is not None and (target.startswith("torch.") or target in tensors.SYNC_FUNCTIONS):
        value = node.args[0] if node.args else keyword(node, "input")
    elif isinstance(node.func, ast.Attribute) and target is None and name in _METHODS:
        value = node.func.value
    else:
        return None
    if name in _PRODUCTS:
        return _multiplied_backward(node, value, ctx)
    if name in tensors.SYNC_BACKWARD:
        return _selected_backward(node, value, ctx)
    if value is None or knows_size(node, name, ctx, is_method=target is None):
        return None
    # What is known of the result is known of what is repeated: torch takes nothing but tensors there.
    if not is_on_device(value, ctx) and not (name == "repeat_interleave" and is_on_device(node, ctx)):
        return None
    if name in _POSITIONS and selects_often(node, ctx):
        return None
    what = _of_name(name, target)
    # What is found in an evaluation goes to the host in any case.
    is_wanted = name in _SUPPRESSIONS and ctx.role(node) != "train" and not in_forward(node, ctx)
    return None if what is None or is_wanted else Counted(value, what)


def _of_name(name: str, target: str | None) -> Count | None:
    """What a function or, without a target, a method of a tensor has counted."""
    if name == "matrix_exp":
        return Count.OF_NORMS
    if name in _CHECKS and (target is None or target in tensors.SYNC_FUNCTIONS):
        return Count.OF_ERRORS
    if name in _SUPPRESSIONS:
        return Count.OF_RESULT if target in tensors.SYNC_FUNCTIONS else None
    return Count.OF_RESULT if name in _SHAPES or name in ("where", "one_hot") else None


def _selected_backward(node: ast.Call, value: ast.expr | None, ctx: FileFacts) -> Counted | None:
    """`x.masked_scatter(mask, source)`, where the source is learned."""
    source = argument(node, 1 if value is not None and value not in node.args else 2, "source")
    if value is None or source is None or records_nothing(node, ctx):
        return None
    given = ctx.kind(source)
    types = {ctx.kind(node).dtype, ctx.kind(value).dtype, given.dtype}
    # Integers have no gradient, and what nothing is known of may be such.
    may_be_learned = (given.holds_tensors or given.on_accelerator) and given.requires_grad is not False
    if not may_be_learned or types & {Dtype.INT, Dtype.BOOL}:
        return None
    return None if kind_on_device(ctx.kind(node), node, ctx) is None else Counted(node, Count.IN_BACKWARD)


def records_nothing(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether no graph is recorded where `node` runs, as gradients are off: also in an autograd function's own methods,
    whose backward is written out.
    """
    if ctx.grad_off(node):
        return True
    function = ctx.tree.function_of(node)
    cls = ctx.tree.class_of(function) if function is not None else None
    if cls is None or function is None or function.name not in ("forward", "backward"):
        return False
    return AUTOGRAD_FUNCTION in ctx.inference.classes.library_bases(Ref(CLASS, ctx.path, ctx.tree.qualname(cls)))


def _multiplied_backward(node: ast.Call, value: ast.expr | None, ctx: FileFacts) -> Counted | None:
    """`torch.prod(similarities, dim=0)` of floating numbers that a gradient is wanted for, as far as can be told."""
    if value is None or records_nothing(node, ctx):
        return None
    kind = ctx.kind(value)
    # A pass that trains nothing has no backward, but of what is seen to be learned.
    is_trained = in_forward(node, ctx) or ctx.role(node) == "train"
    is_floating = is_trained and kind.dtype is not None and kind.dtype.is_floating
    if kind.requires_grad is False or not (kind.requires_grad or is_floating) or not is_on_device(value, ctx):
        return None
    return Counted(value, Count.OF_ZEROS)


def _masked(node: ast.Subscript, ctx: FileFacts) -> Counted | None:
    """`x[mask]` read, or written with a tensor. Of a Python number it becomes a `masked_fill`, which does not wait."""
    if not selects_on_device(node, ctx):
        return None
    parent = ctx.tree.parent(node)
    # `x[mask] += y` reads what the mask selects first, whatever the other operand is.
    if isinstance(node.ctx, ast.Load) or isinstance(parent, ast.AugAssign):
        return Counted(node.value, Count.OF_RESULT)
    if not isinstance(parent, ast.Assign):
        return None
    given = ctx.kind(parent.value)
    if not is_on_device(parent.value, ctx) and not (given.holds_tensors and given.on_accelerator):
        return None
    return Counted(node.value, Count.OF_WRITTEN)
