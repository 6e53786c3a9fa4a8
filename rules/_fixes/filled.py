"""Fixes that fill a tensor of one number on the device, in place of a copy of it."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix, keyword
from perflint.api.invariants import is_of_numpy, single


def filled_text(node: ast.Call, ctx: Context) -> str:
    """`torch.full((), 0.5, device=device)` for `torch.tensor(0.5, device=device)`."""
    assert isinstance(node.func, ast.Attribute)
    function = "new_full" if node.func.attr == "new_tensor" else "full"
    data = node.args[0]
    shape = "()" if single(data) is data else "(1,)"
    rest = [f"{item.arg}={ctx.tree.text(item.value)}" for item in node.keywords]
    return f"{ctx.tree.text(node.func.value)}.{function}({', '.join([shape, ctx.tree.text(single(data)), *rest])})"


def filled_on_device(node: ast.Call, ctx: Context) -> Fix | None:
    if not isinstance(node.func, ast.Attribute) or ctx.edit.would_lose_comment(node, node.args[0]):
        return None
    if node.func.attr != "new_tensor" and keyword(node, "dtype") is None and is_of_numpy(node.args[0], ctx):
        return None  # a number of numpy's has a type, which the tensor takes
    return Fix(
        "Fill the tensor on the device",
        Applicability.UNSAFE,
        (ctx.edit.replace(node, filled_text(node, ctx)),),
        reason="a traced or exported graph would contain another operation here, which accepts only a number",
    )
