"""Loops that run a model, and whether most of it is products of float32 matrices."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.models import CONVOLVES
from perflint.analysis.phases.training_loops import is_training_loop
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name, is_constant, keyword
from perflint.syntax.walk import walk
from perflint.torch_model import precision

_LAST_LAYERS = frozenset({"Linear", "LazyLinear"})


def multiplies(names: set[str]) -> bool:
    """Whether products are more than the last layer of a net of convolutions."""
    if names & precision.PRODUCTS:
        return True
    return bool(names & precision.HEADS) and not any(CONVOLVES.search(name) for name in names)


def own_factories(names: set[str], ctx: FileFacts) -> set[str]:
    """The makers of models that the program defines itself, in a program that multiplies nothing but last layers."""
    own = {name for name in precision.PRODUCTS.intersection(names) if ctx.program.named(name)}
    products = (precision.PRODUCTS | precision.HEADS) - own - _LAST_LAYERS
    return set() if ctx.program.mentions(products) else own


def is_loop_of_model(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a loop trains, or runs a module on every batch."""
    if not isinstance(node, (ast.For, ast.AsyncFor, ast.While)) or not ctx.is_root_loop(node):
        return False
    if is_training_loop(node, ctx):
        return True
    if ctx.role(node.body[0]) not in ("eval", "batches"):
        return False
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, (ast.Name, ast.Attribute))
        and ctx.kind(part.func).tag is Tag.MODULE
        for statement in node.body
        for part in walk(statement)
    )


def first_loop_of_model(ctx: FileFacts) -> ast.AST | None:
    """The first loop of the file that runs a model: what is said holds for all of them."""
    loops = [part for part in walk(ctx.tree.module) if isinstance(part, (ast.For, ast.AsyncFor, ast.While))]
    loops.sort(key=lambda loop: loop.lineno)
    return next((loop for loop in loops if is_loop_of_model(loop, ctx)), None)


def is_narrow(ctx: FileFacts) -> bool:
    """Whether the file enters autocast by its name, or makes its models narrower."""
    for part in walk(ctx.tree.module):
        if isinstance(part, (ast.With, ast.AsyncWith)):
            if any(isinstance(item.context_expr, ast.Call) and _is_autocast(item.context_expr) for item in part.items):
                return True
        elif isinstance(part, ast.keyword) and part.arg in ("dtype", "torch_dtype"):
            if ctx.text(part.value) in ("torch.bfloat16", "torch.float16"):
                return True
    return False


def _is_autocast(call: ast.Call) -> bool:
    return callee_name(call) == "autocast" and not is_constant(keyword(call, "enabled"), False)  # noqa: FBT003
