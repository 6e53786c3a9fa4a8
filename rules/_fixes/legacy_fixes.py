"""Fixes of legacy constructors that copy what numpy made: the same class makes the tensor itself, of its size."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.api import Applicability, Confidence, Context, Fix, Tag
from perflint.api.transfers import dtype_of

_FLOATS = frozenset({"torch.float32", "torch.float64", "torch.float16", "torch.bfloat16"})
#: Arguments of a numpy function before its size, by name, with what they are where they are not given.
_SPREAD: dict[str, tuple[tuple[str, str], ...]] = {
    "normal": (("loc", "0"), ("scale", "1")),
    "uniform": (("low", "0"), ("high", "1")),
    "standard_normal": (),
    "random": (),
    "random_sample": (),
}
#: Draw from the standard distributions; each argument is one dimension.
_BY_DIMENSION = {"randn": "normal_()", "rand": "uniform_()"}
_METHODS = {"normal": "normal_", "uniform": "uniform_", "standard_normal": "normal_"}
_FILLED = {"numpy.ones": "fill_(1)", "numpy.zeros": "zero_()"}
_DRAWN = "the numbers come from the device's generator of torch, and numpy's is not advanced"
_UNSURE = "the class is not known for certain: another one may take its argument as data"
_MAY_BE_SCALAR = "of a shape without dimensions an empty tensor is made instead of a number"


class _Instead(NamedTuple):
    """The size that numpy was given, and the method that fills a tensor of that size. `empty`: where the size may have
    no dimensions, for which a legacy class makes another tensor.
    """

    size: str
    fills: str
    draws: bool
    empty: bool


def made_there(call: ast.Call, data: ast.expr, ctx: Context) -> Fix | None:
    """`Float(rows, 4).normal_(0, 1)` for `Float(np.random.normal(0, 1, (rows, 4)))`."""
    if not isinstance(data, ast.Call) or ctx.edit.would_lose_comment(call):
        return None
    instead = _filled(data, ctx) or _drawn(data, dtype_of(call, ctx), ctx)
    if instead is None or "\n" in instead.size + instead.fills:
        return None
    reason = _why_unsafe(call, instead, ctx)
    return Fix(
        "Make it on the device",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (ctx.edit.replace(call, f"{ctx.tree.text(call.func)}({instead.size}).{instead.fills}"),),
        reason=reason,
        numerics="changes training" if instead.draws else "same bits",
    )


def _why_unsafe(call: ast.Call, instead: _Instead, ctx: Context) -> str:
    if instead.draws:
        return _DRAWN
    if ctx.kind(call.func).certainty is not Confidence.HIGH:
        return _UNSURE
    return _MAY_BE_SCALAR if instead.empty else ""


def _filled(data: ast.Call, ctx: Context) -> _Instead | None:
    fills = _FILLED.get(ctx.target(data.func) or "")
    if fills is None or len(data.args) != 1 or data.keywords:
        return None
    size = _size(data.args[0], ctx)
    return _Instead(size, fills, draws=False, empty=_may_be_empty(data.args[0], ctx)) if size else None


def _drawn(data: ast.Call, dtype: str, ctx: Context) -> _Instead | None:
    module, _, name = (ctx.target(data.func) or "").rpartition(".")
    if module != "numpy.random":
        return None
    if name == "randint":
        return _whole_numbers(data, ctx)
    if dtype not in _FLOATS:
        return None
    if name in _BY_DIMENSION:
        plain = data.args and not data.keywords and all(_is_number(item, ctx) for item in data.args)
        size = ", ".join(ctx.tree.text(item) for item in data.args)
        return _Instead(size, _BY_DIMENSION[name], draws=True, empty=False) if plain else None
    if name not in _SPREAD:
        return None
    names = _SPREAD[name]
    given = _arguments(data, (*(each for each, _ in names), "size"))
    if given is None or "size" not in given:
        return None
    size = _size(given["size"], ctx)
    spread = [given.get(each) for each, _ in names]
    if not size or not all(item is None or _may_be_number(item, ctx) for item in spread):
        return None
    texts = [default if item is None else ctx.tree.text(item) for item, (_, default) in zip(spread, names)]
    return _Instead(size, f"{_METHODS.get(name, 'uniform_')}({', '.join(texts)})", draws=True, empty=False)


def _whole_numbers(data: ast.Call, ctx: Context) -> _Instead | None:
    """`np.random.randint(10, size=n)` draws below 10, `np.random.randint(2, 10, n)` from 2 on."""
    given = _arguments(data, ("low", "high", "size"))
    if given is None or "low" not in given or "size" not in given:
        return None
    size, high = _size(given["size"], ctx), given.get("high")
    bounds = [given["low"]] if high is None else [given["low"], high]
    if not size or not all(_may_be_number(item, ctx) for item in bounds):
        return None
    texts = [ctx.tree.text(item) for item in bounds]
    return _Instead(size, f"random_({', '.join(['0', *texts][-2:])})", draws=True, empty=False)


def _arguments(call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr] | None:
    """The arguments of a call by name; None where one is of no name here, or may be hidden in an unpacking."""
    if len(call.args) > len(names) or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    found = dict(zip(names, call.args))
    for item in call.keywords:
        if item.arg not in names or item.arg in found:
            return None
        found[item.arg] = item.value
    return found


def _size(node: ast.expr, ctx: Context) -> str:
    """A size as the arguments of a legacy class: of a tuple in one argument it would take the numbers as data."""
    if isinstance(node, (ast.Tuple, ast.List)):
        alone = node.elts[0] if len(node.elts) == 1 else None
        if alone is not None and not isinstance(alone, ast.Starred) and not _is_number(alone, ctx):
            return ""
        return ", ".join(ctx.tree.text(item) for item in node.elts)
    if ctx.kind(node).tag is Tag.SHAPE or (isinstance(node, ast.Attribute) and node.attr == "shape"):
        return f"*{ctx.edit.receiver(node)}"
    return ctx.tree.text(node) if _is_number(node, ctx) else ""


def _may_be_empty(node: ast.expr, ctx: Context) -> bool:
    """Whether a size may have no dimensions, as far as it is written out or the tensor is known that has it."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(isinstance(item, ast.Starred) for item in node.elts)
    if _is_number(node, ctx):
        return False
    return not (isinstance(node, ast.Attribute) and (ctx.kind(node.value).rank or 0) > 0)


def _may_be_number(node: ast.expr, ctx: Context) -> bool:
    """Whether nothing says that a bound is an array: the methods of tensors take none, and raise where they get one."""
    return _is_number(node, ctx) or (not isinstance(node, (ast.List, ast.Tuple)) and ctx.kind(node).tag is Tag.UNKNOWN)


def _is_number(node: ast.expr, ctx: Context) -> bool:
    """Whether a size of one dimension is a number: of a list in its place a tensor of its numbers is made."""
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, ctx)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    return ctx.kind(node).tag is Tag.NUMBER
