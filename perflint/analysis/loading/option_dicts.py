"""Loaders whose options stand in a dict, and which dict that is."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.loaders import builds_data_loader
from perflint.ir.calls import keyword
from perflint.syntax.walk import walk


def is_given_one_of(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call is given its workers by one of two dicts: without workers the option raises."""
    spread = (item.value for item in call.keywords if item.arg is None)
    return any(isinstance(origin, ast.IfExp) for item in spread for origin in ctx.inference.origins(item))


def bound_options(node: ast.Dict, ctx: FileFacts) -> str | None:
    """The name a dict is bound to, directly or as one arm of a conditional expression."""
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.IfExp):
        parent = ctx.tree.parent(parent)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        return parent.targets[0].id
    return None


def loader_with(name: str, node: ast.Dict, ctx: FileFacts) -> ast.Call | None:
    """A loader of the same scope that is built with the options in `name`, or in a dict that takes them over."""
    names = {name}
    calls = [part for part in walk(ctx.tree.scope_of(node)) if isinstance(part, ast.Call)]
    for call in calls:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "update" and isinstance(func.value, ast.Name):
            if any(isinstance(item, ast.Name) and item.id == name for item in call.args):
                names.add(func.value.id)
    for call in calls:
        passed = {item.value.id for item in call.keywords if item.arg is None and isinstance(item.value, ast.Name)}
        if names.isdisjoint(passed):
            continue
        if builds_data_loader(call, ctx) and keyword(call, "persistent_workers") is None:
            return call
    return None
