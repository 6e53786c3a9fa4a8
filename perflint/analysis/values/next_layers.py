"""The layer that runs right behind another one, in a sequence or in a forward."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.own_attributes import is_own, reads_of, values_of
from perflint.ir.calls import callee_name
from perflint.torch_model import modules


def next_in_sequence(node: ast.Call, ctx: FileFacts) -> ast.Call | None:
    """The normalisation that stands right behind a convolution in `nn.Sequential(...)` or a list of layers."""
    outer = ctx.tree.parent(node)
    items: Sequence[ast.expr] = ()
    if isinstance(outer, ast.Call) and ctx.is_call_of(outer, "torch.nn.Sequential"):
        items = outer.args
    elif isinstance(outer, (ast.List, ast.Tuple)) and not _is_module_list(outer, ctx):
        items = outer.elts
    position = next((index for index, item in enumerate(items) if item is node), -1)
    if position < 0 or position + 1 >= len(items):
        return None
    following = items[position + 1]
    return following if isinstance(following, ast.Call) and _is_norm(following, ctx) else None


def _is_module_list(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a list only holds layers, in no order of calls."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.Assign):
        # `a, b = nn.Conv2d(...), nn.BatchNorm2d(...)` says nothing of their order.
        return not all(isinstance(target, (ast.Name, ast.Attribute)) for target in outer.targets)
    return isinstance(outer, ast.Call) and callee_name(outer) == "ModuleList"


def _is_norm(node: ast.Call, ctx: FileFacts) -> bool:
    return ctx.target(node.func) in modules.MEAN_REMOVERS


def next_in_forward(node: ast.Call, ctx: FileFacts) -> ast.Call | None:
    """The normalisation that `self.norm(self.conv(x))` calls, where nothing else calls or reads the convolution."""
    statement = ctx.tree.parent(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not is_own(statement.targets[0]):
        return None
    uses = list(reads_of(statement.targets[0], ctx))
    if len(uses) != 1:
        return None
    use, there = uses[0]
    call = there.tree.parent(use)
    if not isinstance(call, ast.Call) or call.func is not use:
        return None
    norm = _wrapped_by(call, there) or _normed_next(call, there)
    return _made_once(norm, there, ctx) if norm is not None else None


def _wrapped_by(call: ast.Call, ctx: FileFacts) -> ast.Attribute | None:
    """`self.norm` of `self.norm(self.conv(x))`."""
    outer = ctx.tree.parent(call)
    return outer.func if isinstance(outer, ast.Call) and outer.args == [call] and is_own(outer.func) else None


def _normed_next(call: ast.Call, ctx: FileFacts) -> ast.Attribute | None:
    """`self.norm` of `x = self.conv(x)` whose only use is `self.norm(x)`."""
    statement = ctx.tree.parent(call)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    definition = ctx.inference.flow.definition_at(statement.targets[0])
    uses = ctx.inference.flow.uses_of(definition) if definition is not None else []
    outer = ctx.tree.parent(uses[0]) if len(uses) == 1 else None
    return outer.func if isinstance(outer, ast.Call) and outer.args == [uses[0]] and is_own(outer.func) else None


def _made_once(norm: ast.Attribute, where: FileFacts, ctx: FileFacts) -> ast.Call | None:
    """The normalisation that `self.norm` is, where it is set once, in the file of `ctx`."""
    made = values_of(norm, where)
    only, there = made[0] if len(made) == 1 else (None, where)
    return only if isinstance(only, ast.Call) and there.path == ctx.path and _is_norm(only, there) else None
