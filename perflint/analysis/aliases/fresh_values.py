"""Tensors that an operation has just made, and that nobody else holds."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.torch_model import tensors

#: What may evaluate the same expression many times.
_REPEATED = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def just_made(value: ast.expr, ctx: FileFacts) -> ast.expr | None:
    """The operation a cloned value comes from: written here, or bound to a name that is read for the clone alone."""
    if isinstance(value, (ast.Call, ast.BinOp)):
        return value
    if not isinstance(value, ast.Name):
        return None
    flow = ctx.inference.flow
    definitions = flow.definitions(value)
    if len(definitions) != 1 or not isinstance(definitions[0].node, ast.Assign) or definitions[0].path:
        return None
    made = definitions[0]
    if len(flow.uses_of(made)) != 1 or len(definitions[0].node.targets) != 1:
        return None
    if ctx.tree.scope_of(made.node) is not ctx.tree.scope_of(value) or ctx.loops(made.node) != ctx.loops(value):
        return None
    if ctx.tree.parent(made.node) not in list(ctx.tree.ancestors(value)):
        return None  # a branch: the name may still hold the value of an earlier turn
    if any(isinstance(outer, _REPEATED) for outer in ctx.tree.ancestors(value)):
        return None  # each item is to be a tensor of its own
    if isinstance(ctx.tree.scope_of(value), (ast.Module, ast.ClassDef)):
        return None  # others may import it
    return made.value if isinstance(made.value, (ast.Call, ast.BinOp)) else None


def may_change(clone: ast.Call, ctx: FileFacts) -> bool:
    """Whether the clone may be changed in place: it is by a method, by its name, or by whoever it is handed to."""
    parent = ctx.tree.parent(clone)
    if isinstance(parent, ast.Attribute):
        return parent.attr.endswith("_") or parent.attr in tensors.VIEW_METHODS
    return not isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp))
