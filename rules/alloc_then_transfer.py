"""TPL107: tensors that are made on the host and moved at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Claims,
    Confidence,
    Context,
    Device,
    Edit,
    Finding,
    Fix,
    Heat,
    Impact,
    Place,
    Rule,
    Span,
    Tag,
    beside_own_training,
    callee_name,
    has_unpacking,
    is_constant,
    keyword,
    pattern,
    tensors,
    walk,
)

from ._shared.constant_copies import is_constant_copy, is_number, is_of_numpy, single
from ._shared.device_queue import first_of_block, impact_at
from ._shared.generating import beside_generation
from ._shared.legacy_tensors import copied_data, drawn_by, dtype_of
from ._shared.rarely import hands_over, is_empty_case, is_export, is_fallback, is_tried_out
from ._shared.transfers import constructor
from ._shared.wording import short_text

#: Whose work is the data they are given: `device=` makes the same copy.
_COPIES = tensors.COPYING_CONSTRUCTORS
_MADE = (tensors.CONSTRUCTORS - _COPIES - {"torch.from_file", "torch.empty_strided"}) | {"torch.tensor"}
_INTEGERS = frozenset({"torch.arange", "torch.tril_indices", "torch.triu_indices"})
_WIDE = frozenset(f"torch.{name}" for name in "long int int64 int32 float float32 double float64".split())
_SIZED = frozenset({"torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"})
_MODEL = pattern(r"model|net$", re.IGNORECASE)
#: Files that draw what a model does, for people.
_PICTURES = pattern(r"(?:^|[/_])(?:visuali[sz]|plot)[^/]*\.py$", re.IGNORECASE)
_EPOCH = pattern(r"epoch", re.IGNORECASE)
_LOOKS_LIKE_TYPE = pattern(r"type|^d?t$|float|int|half|cpu|host", re.IGNORECASE)
_LOOKS_LIKE_DEVICE = pattern(r"dev|cuda|gpu|rank", re.IGNORECASE)
#: What may stand between a constructor and its move: the same bits, wherever it is done.
_SHAPES = frozenset("view reshape unsqueeze squeeze flatten repeat contiguous".split())
_TO_FLOATS = frozenset({"float", "double", "bool"})
_TO_INTEGERS = frozenset({"long", "int"})
_MOVES = frozenset({"to", "cuda", "type_as"})
_LEGACY_NAMES = frozenset(name.rpartition(".")[2] for name in tensors.DEVICE_CONSTRUCTORS)
_LITERALS = (ast.Constant, ast.List, ast.Tuple)


class AllocThenTransfer(Rule):
    """A tensor is created on the host and moved at once: the CPU fills it, and the copy blocks the host.

    What it does

    Reports `torch.zeros(n).to(device)` and similar constructor calls on the hot path, and legacy calls such as
    `torch.cuda.FloatTensor(array)`.

    Why is this slow?

    `torch.zeros(n).to(device)` fills memory on the host, copies it, and blocks until all queued GPU work has
    finished. `torch.zeros(n, device=device)` queues one kernel. For `torch.tensor(data)` only the second call is
    saved, because the data are on the host anyway. The legacy `torch.cuda.FloatTensor(array)` converts on the host,
    copies and blocks as well.

    What to do

    Pass `device=` to the constructor: `torch.zeros(n, device=device)`, `torch.arange(n, device=x.device)`. Use
    `x.new_zeros(n)` to match device and dtype of `x`. Draw random numbers on the device: `torch.randn(n,
    device=device)`. Copy other arrays from pinned memory with `non_blocking=True`.

    Fix safety

    Safe for `zeros`, `ones`, `empty`, `eye`, `full` with a literal, `arange` of integers, index grids and `tensor` of
    literals, followed only by shape operations and exact casts (`.unsqueeze(0)`, `.float()`), if the device is the
    only argument of the move and nothing requires gradients: same bits. Otherwise unsafe: random tensors come from
    the device's generator (other values, and the host's generator does not advance), `linspace` and similar may
    differ in the last digit, and a tensor with `requires_grad=True` becomes a leaf.

    Not reported

    - Code that runs once. Code that runs once per epoch has low impact; random tensors and warm-up inputs are left
      alone.
    - Code that only tries something out (a loop of ten steps, an exporter's example input), plots, or that nothing
      calls.
    - Values that replace an argument which every caller passes.
    - `torch.from_numpy`, `torch.stack`, `torch.cat` and `torch.FloatTensor(...)`, which accept no `device=`.
    - `torch.cuda.FloatTensor(2, 3)`, which takes sizes and allocates on the device.
    - Tensors that the host uses first, `nn.Parameter(torch.zeros(n)).to(device)`, `pin_memory=True` and `generator=`.
    - Code under `with torch.device(...)` or `set_default_device`, where `.to` does nothing.

    References

    - Performance tuning guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    - `torch.zeros`: https://docs.pytorch.org/docs/stable/generated/torch.zeros.html
    """

    code, name = "TPL107", "alloc-then-transfer"
    impact = Impact.MEDIUM
    listens = (Calls(),)
    at_least = Heat.EPOCH
    needs_accelerator = True
    claims = Claims("to-device", "host-allocation", waits=False)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if callee_name(node) not in _MOVES:
            yield from self._legacy(node, ctx)
            return
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
            return
        if _PICTURES.search(ctx.path) or is_export(ctx):
            return
        made = constructor(node.func.value, _MADE | tensors.LIKE_CONSTRUCTORS, ctx)
        if made is None or ctx.role(node) == "data" or not _goes_to_device(node, ctx):
            return
        function = ctx.target(made.func)
        assert function is not None
        if not _is_ours(made, function, ctx) or _has_default_device(made, ctx):
            return
        if is_tried_out(node, ctx) or is_fallback(node, ctx) or is_empty_case(node, ctx):
            return
        if not _is_worth_it(node, function, ctx) or hands_over(node, ctx) or beside_generation(node, ctx):
            return
        short = function.removeprefix("torch.")
        hot = ctx.heat(node) >= Heat.STEP
        copies = function in _COPIES
        cost = "a second call copies the result to the device" if copies else "the copy waits for the device's queue"
        device = _device_text(node, ctx)
        again = hot and copies and _is_constant(node, made, ctx)
        yield self.finding(
            node,
            ctx,
            f"`torch.{short}(...)` {ctx.heat(node).phrase} on the host, and {cost}.",
            advice="The numbers are the same each time: copy them once and keep the tensor, or fill a single one in."
            if again
            else f"Make it where it is used: `torch.{short}(..., device={device or '...'})`.",
            fix=_fill(node, made, device, ctx) if again else _fix(node, made, function, device, ctx),
            impact=min(self.impact, impact_at(node, ctx)) if hot and not copies else Impact.LOW,
            block=first_of_block(node, ctx) if hot else None,
            confidence=Confidence.HIGH if ctx.kind(node).certainty is Confidence.HIGH else Confidence.MEDIUM,
        )

    def _legacy(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`torch.cuda.FloatTensor(array)`: the constructor is the move."""
        if not _names_legacy_classes(ctx) or ctx.heat(node) < Heat.STEP or ctx.role(node) == "data":
            return
        data = copied_data(node, ctx)
        if data is None or _PICTURES.search(ctx.path) or is_export(ctx) or is_tried_out(node, ctx):
            return
        draw, dtype = drawn_by(data, ctx), dtype_of(node, ctx)
        if draw:
            advice = f"Draw it on the device: `{draw}(..., dtype={dtype}, device=...)`."
        elif ctx.kind(data).tag is Tag.ARRAY:
            advice = f"Build it on the device, or copy it from pinned memory: `torch.from_numpy(...).to({dtype})"
            advice += ".pin_memory().to(device, non_blocking=True)`."
        else:
            advice = f"Build it on the device (`torch.full`, `torch.arange` with `dtype={dtype}, device=...`), or once."
        yield self.finding(
            node,
            ctx,
            f"`{short_text(node, ctx, 60)}` {ctx.heat(node).phrase}: it builds the tensor on the host and copies it to "
            "the device, blocking the host.",
            advice=advice,
            confidence=ctx.kind(node.func).certainty,
        )


def _names_legacy_classes(ctx: Context) -> bool:
    """Whether the program speaks of device tensors' classes at all: most do not, and every call is asked."""
    return ctx.program.mentions(_LEGACY_NAMES)


def _goes_to_device(node: ast.Call, ctx: Context) -> bool:
    kind = ctx.kind(node)
    if kind.on_accelerator:
        return True
    if isinstance(node.func, ast.Attribute) and node.func.attr == "type_as":
        return kind.is_tensor and kind.place in (Place.MODULE, Place.TARGET) and ctx.heat(node) >= Heat.STEP
    # `x.device` of a tensor whose place is not known, in hot code: as a rule an accelerator.
    given = node.args[0] if node.args else keyword(node, "device")
    if isinstance(given, ast.Attribute) and given.attr == "device":
        return ctx.kind(given.value).place is not Place.HOST and ctx.heat(node) >= Heat.STEP
    if isinstance(given, ast.Name) and ctx.heat(node) >= Heat.STEP:
        like = ctx.kind(given)
        if like.place is Place.HOST or like.device is Device.CPU:
            return False
        if not like.known:
            return not node.args or not _LOOKS_LIKE_TYPE.search(given.id)
        return like.tag in (Tag.TENSOR, Tag.DEVICE, Tag.STRING)
    return False


def _is_worth_it(node: ast.Call, function: str, ctx: Context) -> bool:
    """Whether what runs once an epoch is worth a word: there only what the device makes as well as the host, in an
    epoch's own code and not as a made-up input that a model is warmed up with.
    """
    if ctx.heat(node) >= Heat.STEP:
        return True
    if function in tensors.RANDOM_CONSTRUCTORS:
        return False
    _, route, _ = ctx.heat_and_route(node)
    if not route or not _EPOCH.search(route[0].text):
        return False
    child: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.stmt):
            break
        if isinstance(outer, ast.Call) and child is not outer.func:
            if ctx.kind(outer.func).tag is Tag.MODULE or _MODEL.search(callee_name(outer)):
                return False
        child = outer
    return True


def _is_ours(made: ast.Call, function: str, ctx: Context) -> bool:
    """Whether the constructor makes its tensor on the host and could make it elsewhere."""
    if any(keyword(made, name) is not None for name in ("device", "pin_memory", "generator", "out")):
        return False
    if any(item.arg is None for item in made.keywords):
        return False
    sizes = made.args[0].elts if len(made.args) == 1 and isinstance(made.args[0], (ast.Tuple, ast.List)) else made.args
    if function in _SIZED and any(is_constant(item, 0) for item in sizes):
        return False  # nothing is copied where there is nothing
    if function in tensors.LIKE_CONSTRUCTORS:
        return bool(made.args) and ctx.kind(made.args[0]).place is Place.HOST
    if function in _COPIES:
        return bool(made.args) and _is_literal(made.args[0])
    if function == "torch.normal":
        return not any(ctx.kind(item).is_tensor for item in made.args[:2])
    return True


def _is_literal(data: ast.expr) -> bool:
    """Whether data are written out here: numbers and lists of what is written there, no array by name."""
    if isinstance(data, ast.UnaryOp):
        data = data.operand
    return isinstance(data, _LITERALS)


def _has_default_device(made: ast.Call, ctx: Context) -> bool:
    """Whether tensors are made on a device by default here: then `.to` does nothing."""
    if ctx.program.mentions({"set_default_device", "set_default_tensor_type"}):
        return True
    return any(
        isinstance(outer, ast.With)
        and any(
            ctx.is_call_of(item.context_expr, "torch.device") or "device" in ctx.text(item.context_expr)
            for item in outer.items
        )
        for outer in ctx.tree.ancestors(made)
    )


def _device_text(node: ast.Call, ctx: Context) -> str:
    """What to write behind `device=`; empty where that cannot be said."""
    assert isinstance(node.func, ast.Attribute)
    if node.func.attr == "type_as":
        return f"{ctx.edit.receiver(node.args[0])}.device" if node.args else ""
    given = [item for item in node.keywords if item.arg != "non_blocking"]
    if node.func.attr == "cuda":
        return "" if node.args or given else '"cuda"'
    if len(node.args) + len(given) != 1 or (given and given[0].arg != "device"):
        return ""
    target = node.args[0] if node.args else given[0].value
    kind = ctx.kind(target)
    if kind.is_tensor:
        return ""
    if kind.tag is Tag.DTYPE:
        return ""
    if kind.tag is Tag.UNKNOWN and ("dtype" in ctx.text(target) or not _LOOKS_LIKE_DEVICE.search(ctx.text(target))):
        return ""  # `.to(scores)` takes a tensor as well, `device=scores` does not
    return ctx.tree.text(target)


def _fix(node: ast.Call, made: ast.Call, function: str, device: str, ctx: Context) -> Fix | None:
    assert isinstance(node.func, ast.Attribute)
    value = node.func.value
    if not device or "\n" in device or node.func.attr == "type_as" or not _is_kept_between(value, made, function):
        return None
    start, end = ctx.tree.span(value), ctx.tree.span(node)
    rest = Span(start.end_line, start.end_column, end.end_line, end.end_column)
    if not _begins_with_dot(rest, ctx):
        return None
    reason = _why_unsafe(node, made, function, device, ctx)
    draws = function in tensors.RANDOM_CONSTRUCTORS
    return Fix(
        "Make it on the device",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (ctx.edit.set_keyword(made, "device", device), Edit(rest, "")),
        reason=reason,
        numerics="changes training" if draws else "same to rounding" if "rounding" in reason else "same bits",
    )


def _is_constant(node: ast.Call, made: ast.Call, ctx: Context) -> bool:
    """Whether one copy would do for all steps, as constant-tensor-in-hot-path says of `torch.tensor(1, device=...)`."""
    assert isinstance(node.func, ast.Attribute)
    read = node if made is node.func.value else made
    is_constant = ctx.kind(node).on_accelerator and is_constant_copy(node, made.args[0], read, ctx)
    return is_constant and not beside_own_training(node, ctx)


def _fill(node: ast.Call, made: ast.Call, device: str, ctx: Context) -> Fix | None:
    """`torch.full((), 1, device=device)` for `torch.tensor(1).to(device)`."""
    assert isinstance(node.func, ast.Attribute)
    value = single(made.args[0])
    if made is not node.func.value or len(made.args) != 1 or not device or not isinstance(made.func, ast.Attribute):
        return None
    if not is_number(value, ctx) or is_of_numpy(value, ctx) or ctx.edit.would_lose_comment(node, value):
        return None
    if callee_name(made) != "tensor" or any(item.arg != "dtype" for item in made.keywords):
        return None
    shape = "()" if value is made.args[0] else "(1,)"
    rest = [f"{item.arg}={ctx.tree.text(item.value)}" for item in made.keywords]
    given = ", ".join([shape, ctx.tree.text(value), *rest, f"device={device}"])
    return Fix(
        "Fill the number in on the device",
        Applicability.UNSAFE,
        (ctx.edit.replace(node, f"{ctx.tree.text(made.func.value)}.full({given})"),),
        reason="a graph that is traced or exported has another operation here, which takes a number and nothing else",
    )


def _is_kept_between(value: ast.expr, made: ast.Call, function: str) -> bool:
    """Whether what is done between a constructor and its move gives the same on the device: shapes, and casts that
    round nowhere. What is expanded would stay a view there.
    """
    allowed = _SHAPES
    if function != "torch.empty":
        allowed |= _TO_FLOATS
    if function in ("torch.zeros", "torch.ones", "torch.eye"):
        allowed |= _TO_INTEGERS
    while value is not made:
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in allowed):
            return False
        value = value.func.value
    return True


def _begins_with_dot(rest: Span, ctx: Context) -> bool:
    """Whether the move follows at once, on this line or the next, with no parenthesis or comment between."""
    lines = ctx.source.lines[rest.line - 1 : rest.end_line]
    lines[-1] = lines[-1][: rest.end_column - 1]
    text = "\n".join(lines)[rest.column - 1 :]
    return text.lstrip().startswith(".") and "#" not in text and "\\" not in text


def _why_unsafe(node: ast.Call, made: ast.Call, function: str, device: str, ctx: Context) -> str:
    if function in tensors.RANDOM_CONSTRUCTORS:
        return "the numbers would come from the generator of the device, and the host's would not be advanced"
    if keyword(made, "requires_grad") is not None:
        return "the tensor would become a leaf, with a gradient of its own"
    if ctx.edit.would_lose_comment(node, made):
        return "a comment would be lost"
    if function not in tensors.FOLDABLE_CONSTRUCTORS or not _is_exact(made, function, ctx):
        return "the device may differ from the host in rounding"
    given = node.args[0] if node.args else keyword(node, "device")
    if given is not None and not _is_device(given, ctx):
        return f"`{device}` may be something else than a device"
    if given is not None and not _may_come_first(given, node, made, ctx):
        return f"`{device}` would be evaluated before the arguments between, which may change it"
    if _is_replaced(function, ctx):
        return f"`{function}` is replaced by something else in this file"
    return ""


def _is_device(given: ast.expr, ctx: Context) -> bool:
    """Whether an expression is a device for certain: a tensor in its place gives its type as well."""
    kind = ctx.kind(given)
    return (
        kind.tag in (Tag.DEVICE, Tag.NUMBER)
        or isinstance(given, (ast.Constant, ast.JoinedStr))
        or kind.tag is Tag.STRING
    )


def _may_come_first(given: ast.expr, node: ast.Call, made: ast.Call, ctx: Context) -> bool:
    """Whether nothing shows if a device is evaluated before the arguments of the methods between, and after those of
    the constructor alone: it is a name that they do not bind, or none of them calls anything.
    """
    if isinstance(given, (ast.Constant, ast.JoinedStr)) or ctx.is_call_of(given, "torch.device"):
        return True
    between = [part for part in ast.walk(node) if isinstance(part, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield))]
    inside = {id(part) for part in ast.walk(given)}
    others = [part for part in between if id(part) not in inside and not _is_harmless(part, made, ctx)]
    if isinstance(given, ast.Name):
        return not any(isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield)) for part in others)
    return isinstance(given, (ast.Attribute, ast.Subscript)) and not others


def _is_harmless(part: ast.AST, made: ast.Call, ctx: Context) -> bool:
    """The constructor, a method of its chain, or the size of something."""
    if not isinstance(part, ast.Call):
        return False
    begin: ast.expr = part
    while isinstance(begin, ast.Call) and begin is not made and isinstance(begin.func, ast.Attribute):
        begin = begin.func.value
    if begin is made:
        return True
    name = callee_name(part)
    return ctx.is_call_of(part, "len", "int", "max", "min") or (
        isinstance(part.func, ast.Attribute)
        and name in ("size", "dim", "numel")
        and ctx.kind(part.func.value).is_tensor
    )


def _is_replaced(function: str, ctx: Context) -> bool:
    """Whether the file binds a function of torch's to something of its own: `torch.zeros = counted`."""
    return any(
        isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and f"{ctx.target(part.value)}.{part.attr}" == function
        for part in walk(ctx.tree.module)
    )


def _is_exact(made: ast.Call, function: str, ctx: Context) -> bool:
    if function == "torch.full":
        fill = made.args[1] if len(made.args) > 1 else keyword(made, "fill_value")
        return isinstance(fill, (ast.Constant, ast.UnaryOp))
    if function == "torch.arange" and _counts_up(made, ctx):
        return True
    if function in _INTEGERS:
        numbers = [item.value for item in made.keywords if item.arg in ("start", "end", "step", "row", "col", "offset")]
        return all(_is_integer(item, ctx) for item in (*made.args, *numbers)) and _is_wide(keyword(made, "dtype"), ctx)
    return True


def _counts_up(made: ast.Call, ctx: Context) -> bool:
    """`torch.arange(n)`, `torch.arange(0, n, 2)`: whole numbers in steps that are written out, whatever `n` is."""
    steps = [*made.args[:1], *made.args[2:]] if len(made.args) > 1 else []
    steps += [item.value for item in made.keywords if item.arg in ("start", "step")]
    if ctx.program.mentions({"set_default_dtype"}) or any(isinstance(item, ast.Starred) for item in made.args):
        return False
    whole = all(isinstance(item, ast.Constant) and type(item.value) is int for item in steps)
    return whole and _is_wide(keyword(made, "dtype"), ctx)


def _is_wide(dtype: ast.expr | None, ctx: Context) -> bool:
    """Whether a type holds whole numbers as they are: the host rounds some of a range in half precision twice."""
    return dtype is None or ctx.target(dtype) in _WIDE


def _is_integer(node: ast.expr, ctx: Context) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.UnaryOp):
        return _is_integer(node.operand, ctx)
    if isinstance(node, ast.BinOp):
        exact = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))
        return exact and _is_integer(node.left, ctx) and _is_integer(node.right, ctx)
    if isinstance(node, ast.Subscript):
        return ctx.kind(node.value).tag is Tag.SHAPE or ctx.text(node.value).endswith(".shape")
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return name in ("size", "numel", "dim") or ctx.is_call_of(node, "len", "int")
    if isinstance(node, ast.Name):
        origins = ctx.inference.origins(node)
        return bool(origins) and all(item is not node and _is_integer(item, ctx) for item in origins)
    return False
