"""Whether arrays of a list can be stacked before a tensor is made of them, with the same numbers and type."""

from __future__ import annotations

import ast

from perflint.api import (
    Context,
    Tag,
    arrays,
    keyword,
)

#: Types that torch takes from an array as it does from a list, by their names in numpy and Python.
_TYPES = {
    "bool_": "bool",
    "bool": "bool",
    "float": "float64",
    "int": "int64",
    **{name: name for name in "float16 float32 float64 int8 int16 int32 int64 uint8 complex64 complex128".split()},
}
_TORCH_TYPES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}
#: Functions whose arrays are of numpy's own class, whatever they are given.
_PLAIN = frozenset(
    f"numpy.{name}" for name in "zeros ones empty full arange linspace eye asarray array ascontiguousarray".split()
)
_UNCHECKED = "a list raises for a value out of the dtype's range, an array converts it"
_SUBCLASS = "an array may be of a subclass, such as a masked array, whose mask would be lost"
_CHANGES = "mixed dtypes or an empty list give another dtype, and arrays without rows another shape"


def why_unsafe(node: ast.Call, data: ast.expr, ctx: Context) -> str:
    if not _is_uniform(data, ctx):
        return _CHANGES
    if not all(_is_of_numpy(item, ctx) for item in getattr(data, "elts", ())):
        return _SUBCLASS
    return "" if _keeps_type(node, data, ctx) else _UNCHECKED


def _is_uniform(data: ast.expr, ctx: Context) -> bool:
    """Whether a list is written out, with arrays whose dtype is spelled, and the same, and no number among them.

    Of arrays with no rows a list keeps the number of rows alone: they have one dimension here, or rows.
    """
    if not isinstance(data, ast.List) or not data.elts or not all(_keeps_shape(item, ctx) for item in data.elts):
        return False
    types = {_dtype(item, ctx) for item in data.elts}
    return len(types) == 1 and types <= set(_TYPES.values())


def _is_of_numpy(node: ast.expr, ctx: Context, depth: int = 4) -> bool:
    """Whether an array is of numpy's own class: made by a function that makes no other, here or by its name."""
    while (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in arrays.ARRAY_METHODS
    ):
        if ctx.target(node.func) in _PLAIN:
            break
        node = node.func.value
    if isinstance(node, ast.Name):
        made = [_element(item.value, item.path) for item in ctx.inference.flow.definitions(node)]
        return (
            depth > 0 and bool(made) and all(item is not None and _is_of_numpy(item, ctx, depth - 1) for item in made)
        )
    if not isinstance(node, ast.Call) or ctx.target(node.func) not in _PLAIN:
        return False
    return not any(item.arg in (None, "subok", "like") for item in node.keywords)


def _element(value: ast.expr | None, path: tuple[int | str, ...]) -> ast.expr | None:
    """`f(b)` for the second name of `x, y = f(a), f(b)`."""
    for step in path:
        if not (isinstance(value, ast.Tuple) and isinstance(step, int) and step < len(value.elts)):
            return None
        value = value.elts[step]
    return value


def _keeps_type(node: ast.Call, data: ast.expr, ctx: Context) -> bool:
    """Whether the tensor has the type of its arrays: another one is converted to with checks from a list alone."""
    if (ctx.target(node.func) or "").rpartition(".")[2] not in ("tensor", "as_tensor", "asarray"):
        return False
    asked = keyword(node, "dtype")
    if asked is None:
        return True
    name = (ctx.target(asked) or "").removeprefix("torch.")
    return _TORCH_TYPES.get(name, name) == _dtype(data.elts[0], ctx)  # type: ignore[attr-defined]


def _keeps_shape(node: ast.expr, ctx: Context) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        if node.func.attr == "astype":
            return _keeps_shape(node.func.value, ctx)
        if node.func.attr in ("ravel", "flatten"):
            return True
        if node.func.attr == "reshape" and len(node.args) == 1:
            return ctx.text(node.args[0]) == "-1"
    made = (ctx.target(node.func) or "").removeprefix("numpy.")
    if made in ("arange", "linspace"):
        return True
    if made not in ("zeros", "ones", "empty", "full") or not node.args:
        return False
    sizes = node.args[0].elts if isinstance(node.args[0], (ast.Tuple, ast.List)) else []
    if sizes:
        return all(isinstance(size, ast.Constant) and size.value != 0 for size in sizes)
    return ctx.kind(node.args[0]).tag is Tag.NUMBER


def _dtype(node: ast.expr, ctx: Context) -> str:
    """The type of an array where it is made, as numpy calls it; empty where it is not written, or by another name."""
    if not isinstance(node, ast.Call):
        return ""
    given = keyword(node, "dtype")
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype" and node.args:
        given = node.args[0]
    if given is None:
        return ""
    target = ctx.target(given) or ""
    written = (
        given.value if isinstance(given, ast.Constant) else target.removeprefix("numpy.").removeprefix("builtins.")
    )
    known = (
        isinstance(given, ast.Constant)
        or target.startswith(("numpy.", "builtins."))
        or target in ("float", "int", "bool")
    )
    return _TYPES.get(str(written), "") if known else ""
