"""Fixes of tensors that are made on the host and moved at once: the constructor takes the device instead."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.api import (
    Applicability,
    Context,
    Edit,
    Fix,
    Place,
    Span,
    Tag,
    callee_name,
    keyword,
    tensors,
    walk,
)
from perflint.api.invariants import is_number, is_of_numpy, single
from perflint.api.transfers import holds_no_elements, is_written_out, type_of

_INTEGERS = frozenset({"torch.arange", "torch.tril_indices", "torch.triu_indices"})
_WIDE = frozenset(f"torch.{name}" for name in "long int int64 int32 float float32 double float64".split())
#: Constructors whose numbers every type holds as they are.
_IN_ANY_TYPE = frozenset(f"torch.{name}" for name in "zeros ones empty eye zeros_like ones_like empty_like".split())
_LOOKS_LIKE_DEVICE = ("dev", "cuda", "gpu", "rank")
#: What may stand between a constructor and its move: the same bits, wherever it is done.
_SHAPES = frozenset("view reshape unsqueeze squeeze flatten repeat contiguous".split())
_TO_FLOATS = frozenset({"float", "double", "bool"})
_TO_INTEGERS = frozenset({"long", "int"})


class Made(NamedTuple):
    """A constructor whose result is moved at once: `move` of what `call` of the torch function `function` makes."""

    move: ast.Call
    call: ast.Call
    function: str

    @property
    def value(self) -> ast.expr:
        assert isinstance(self.move.func, ast.Attribute)
        return self.move.func.value


def can_be_told(made: ast.Call, function: str, ctx: Context) -> bool:
    """Whether the constructor makes its tensor on the host and could make it elsewhere."""
    if any(keyword(made, name) is not None for name in ("device", "pin_memory", "generator", "out")):
        return False
    if not ctx.inference.names_all(made):
        return False
    if holds_no_elements(made, ctx):
        return False
    if function in tensors.LIKE_CONSTRUCTORS:
        return bool(made.args) and ctx.kind(made.args[0]).place is Place.HOST
    if function in tensors.COPYING_CONSTRUCTORS:
        return bool(made.args) and is_written_out(made.args[0], ctx)
    if function == "torch.normal":
        return not any(ctx.kind(item).is_tensor for item in made.args[:2])
    return True


def has_default_device(made: ast.Call, ctx: Context) -> bool:
    """Whether tensors are made on a device by default here: then `.to` does nothing."""
    if ctx.program.mentions({"set_default_device", "set_default_tensor_type"}):
        return True
    return any(
        isinstance(outer, ast.With)
        and any(
            ctx.is_call_of(item.context_expr, "torch.device")
            # Which of several GPUs is meant by `cuda` says nothing of what is made on the host.
            or ("device" in (text := ctx.text(item.context_expr)) and "cuda.device" not in text)
            for item in outer.items
        )
        for outer in ctx.tree.ancestors(made)
    )


def there(made: Made, ctx: Context) -> tuple[str, str]:
    """What to write behind `device=` and, where the move gives the type of another tensor, behind `dtype=`; empty where
    that cannot be said.
    """
    node = made.move
    assert isinstance(node.func, ast.Attribute)
    if node.func.attr in ("type_as", "type"):
        like = type_of(node)
        return _of_tensor(like, ctx) if like is not None else ("", "")
    given = [item for item in node.keywords if item.arg != "non_blocking"]
    if node.func.attr == "cuda":
        return ("", "") if node.args or given else ('"cuda"', "")
    if len(node.args) + len(given) != 1 or (given and given[0].arg not in ("device", "other")):
        return "", ""
    target = node.args[0] if node.args else given[0].value
    kind = ctx.kind(target)
    if kind.is_tensor:
        return _of_tensor(target, ctx)
    text = ctx.tree.text(target)
    if kind.tag is Tag.DTYPE:
        return "", ""
    if kind.tag is Tag.UNKNOWN:
        is_named = "dtype" not in text and any(word in text.lower() for word in _LOOKS_LIKE_DEVICE)
        return (text, "") if is_named else ("", "")  # `.to(scores)` takes a tensor as well, `device=scores` does not
    return text, ""


def _of_tensor(target: ast.expr, ctx: Context) -> tuple[str, str]:
    """Read twice, so that nothing may be called for it."""
    if any(isinstance(part, (ast.Call, ast.NamedExpr, ast.Await)) for part in walk(target)):
        return "", ""
    text = ctx.edit.receiver(target)
    return f"{text}.device", f"{text}.dtype"


def made_on_device(made: Made, ctx: Context) -> Fix | None:
    """`torch.zeros(n, device=device)` for `torch.zeros(n).to(device)`."""
    device, dtype = there(made, ctx)
    if not device or "\n" in device or not _is_kept_between(made.value, made.call, made.function, cast=bool(dtype)):
        return None
    start, end = ctx.tree.span(made.value), ctx.tree.span(made.move)
    rest = Span(start.end_line, start.end_column, end.end_line, end.end_column)
    if not _begins_with_dot(rest, ctx):
        return None
    reason = _why_unsafe(made, device, dtype, ctx)
    draws = made.function in tensors.RANDOM_CONSTRUCTORS
    edits = _keywords(made.call, device, dtype, ctx)
    return Fix(
        "Make it on the device",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (*edits, Edit(rest, "")),
        reason=reason,
        numerics="changes training" if draws else "same to rounding" if "rounding" in reason else "same bits",
    )


def _keywords(call: ast.Call, device: str, dtype: str, ctx: Context) -> tuple[Edit, ...]:
    """One edit for both, since two would stand at one place; a type that is given already is another argument."""
    if not dtype:
        return (ctx.edit.set_keyword(call, "device", device),)
    if keyword(call, "dtype") is not None:
        return ctx.edit.set_keyword(call, "dtype", dtype), ctx.edit.set_keyword(call, "device", device)
    return (ctx.edit.set_keyword(call, "dtype", f"{dtype}, device={device}"),)


def filled_there(made: Made, ctx: Context) -> Fix | None:
    """`torch.full((), 1, device=device)` for `torch.tensor(1).to(device)`."""
    call, (device, dtype) = made.call, there(made, ctx)
    value = single(call.args[0])
    if call is not made.value or len(call.args) != 1 or not device or dtype or not isinstance(call.func, ast.Attribute):
        return None
    if not is_number(value, ctx) or is_of_numpy(value, ctx) or ctx.edit.would_lose_comment(made.move, value):
        return None
    if callee_name(call) != "tensor" or any(item.arg != "dtype" for item in call.keywords):
        return None
    shape = "()" if value is call.args[0] else "(1,)"
    rest = [f"{item.arg}={ctx.tree.text(item.value)}" for item in call.keywords]
    given = ", ".join([shape, ctx.tree.text(value), *rest, f"device={device}"])
    return Fix(
        "Fill the number in on the device",
        Applicability.UNSAFE,
        (ctx.edit.replace(made.move, f"{ctx.tree.text(call.func.value)}.full({given})"),),
        reason="a graph that is traced or exported has another operation here, which takes a number and nothing else",
    )


def _is_kept_between(value: ast.expr, made: ast.Call, function: str, *, cast: bool) -> bool:
    """Whether what is done between a constructor and its move gives the same on the device: shapes, and casts that
    round nowhere. What is expanded would stay a view there.
    """
    allowed = _SHAPES
    # A cast before another one may round: what is made of the last type does not.
    if function != "torch.empty" and not cast:
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


def _why_unsafe(made: Made, device: str, dtype: str, ctx: Context) -> str:
    node, call, function = made.move, made.call, made.function
    if function in tensors.RANDOM_CONSTRUCTORS:
        return "the numbers would come from the generator of the device, and the host's would not be advanced"
    if any(item.arg is None for item in call.keywords):
        return "another caller may give a device, which would raise"
    if keyword(call, "requires_grad") is not None:
        return "the tensor would become a leaf, with a gradient of its own"
    if ctx.edit.would_lose_comment(node, call):
        return "a comment would be lost"
    if function not in tensors.FOLDABLE_CONSTRUCTORS or not _is_exact(call, function, ctx):
        return "the device may differ from the host in rounding"
    if dtype and function not in _IN_ANY_TYPE:
        return "the type may differ from the host's in rounding"
    given = node.args[0] if node.args else keyword(node, "device")
    if dtype and not isinstance(given, ast.Name):
        return f"`{ctx.text(given) if given is not None else device}` would be read twice"
    if not dtype and given is not None and not _is_device(given, ctx):
        return f"`{device}` may be something else than a device"
    if given is not None and not _may_come_first(given, node, call, ctx):
        return f"`{device}` would be evaluated before the arguments between, which may change it"
    if is_replaced(function, ctx):
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


def is_replaced(function: str, ctx: Context) -> bool:
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
    if function == "torch.arange" and counts_up(made, ctx):
        return True
    if function in _INTEGERS:
        numbers = [item.value for item in made.keywords if item.arg in ("start", "end", "step", "row", "col", "offset")]
        return all(_is_integer(item, ctx) for item in (*made.args, *numbers)) and _is_wide(keyword(made, "dtype"), ctx)
    return True


def counts_up(made: ast.Call, ctx: Context) -> bool:
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


def _is_integer(node: ast.expr, ctx: Context, asked: frozenset[ast.expr] = frozenset()) -> bool:
    """What is counted up from itself (`asked`) is a whole number where all else that it is made of is one."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.UnaryOp):
        return _is_integer(node.operand, ctx, asked)
    if isinstance(node, ast.BinOp):
        exact = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))
        return exact and _is_integer(node.left, ctx, asked) and _is_integer(node.right, ctx, asked)
    if isinstance(node, ast.Subscript):
        return ctx.kind(node.value).tag is Tag.SHAPE or ctx.text(node.value).endswith(".shape")
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return name in ("size", "numel", "dim") or ctx.is_call_of(node, "len", "int")
    if isinstance(node, ast.Name):
        origins = ctx.inference.origins(node)
        return bool(origins) and all(
            item is not node and (item in asked or _is_integer(item, ctx, asked | {item})) for item in origins
        )
    return False
