"""Fixes that fill a tensor of one number on the device, in place of a copy of it."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Edit, Fix, callee_name, keyword
from perflint.api.invariants import is_of_numpy, single


def filled_text(node: ast.Call, ctx: Context) -> str:
    """`torch.full((), 0.5, device=device)` for `torch.tensor(0.5, device=device)`."""
    return _filled(node, ctx)[0]


def _filled(node: ast.Call, ctx: Context) -> tuple[str, tuple[Edit, ...]]:
    """The call, and the import that it needs where only `tensor` was imported."""
    edits: tuple[Edit, ...] = ()
    if isinstance(node.func, ast.Attribute):
        owner = ctx.tree.text(node.func.value)
    else:
        owner, edits = ctx.edit.ensure_import("torch", at=node)
    function = "new_full" if isinstance(node.func, ast.Attribute) and node.func.attr == "new_tensor" else "full"
    data = node.args[0]
    shape = "()" if single(data) is data else "(1,)"
    rest = [f"{item.arg}={ctx.tree.text(item.value)}" for item in node.keywords]
    if callee_name(node) == "Tensor":  # converts numbers
        rest.append("dtype=torch.get_default_dtype()")
    return f"{owner}.{function}({', '.join([shape, ctx.tree.text(single(data)), *rest])})", edits


def filled_on_device(node: ast.Call, ctx: Context) -> Fix | None:
    if ctx.edit.would_lose_comment(node, node.args[0]):
        return None
    is_new = isinstance(node.func, ast.Attribute) and node.func.attr == "new_tensor"
    if not is_new and keyword(node, "dtype") is None and is_of_numpy(node.args[0], ctx):
        return None  # a number of numpy's has a type, which the tensor takes
    text, edits = _filled(node, ctx)
    return Fix(
        "Fill the tensor on the device",
        Applicability.UNSAFE,
        (ctx.edit.replace(node, text), *edits),
        reason="a traced or exported graph would contain another operation here, which accepts only a number",
    )
