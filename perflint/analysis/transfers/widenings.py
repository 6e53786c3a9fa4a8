"""Casts that make a value larger."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.precision import NARROW_VALUES
from perflint.analysis.naming.values import PIXELS
from perflint.finding import Confidence
from perflint.syntax.walk import walk


def widens(cast: str, value: ast.expr, node: ast.Call, ctx: FileFacts) -> Confidence | None:
    """How sure it is that a cast makes the value larger, None where it may as well make it smaller."""
    if any(isinstance(part, (ast.ListComp, ast.GeneratorExp)) for part in walk(value)):
        return None  # gathered number by number in Python: few, and the gathering is what costs
    if any(NARROW_VALUES.search(ctx.text(origin)) for origin in ctx.inference.origins(value)):
        return Confidence.HIGH
    if _is_scaled(node, ctx):
        return Confidence.HIGH
    if cast == "double":
        return Confidence.MEDIUM
    if cast == "float" and ctx.program.mentions({"ToTensor", "ToImageTensor", "img_as_float"}):
        return None  # pictures are float32 from then on
    name = ctx.text(value).rpartition(".")[2]
    return Confidence.MEDIUM if PIXELS.search(name) and not _comes_from_numpy(value, ctx) else None


def _is_scaled(node: ast.Call, ctx: FileFacts) -> bool:
    """`images.float().to(device) / 255`: eight bits a value."""
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div) and parent.left is node:
        return isinstance(parent.right, ast.Constant) and parent.right.value in (255, 256, 127.5)
    return False


def _comes_from_numpy(value: ast.expr, ctx: FileFacts) -> bool:
    """What comes from numpy may be float64, and smaller as float32."""
    return any("numpy" in ctx.text(origin) for origin in ctx.inference.origins(value))
