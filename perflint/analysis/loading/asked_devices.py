"""Who asks that a sample goes to a device: a test, a caller, or whoever makes whole batches."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.ir.calls import callee_name, keyword
from perflint.syntax.walk import walk
from perflint.torch_model import loaders


def goes_back_to_device(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a tensor goes back to where it was brought from, `device = wave.device` before `wave = wave.cpu()`: to
    the host, like everything that samples are made of.
    """
    target, function = node.args[0] if node.args else keyword(node, "device"), ctx.tree.function_of(node)
    if not isinstance(target, ast.Name) or function is None:
        return False
    origins = [item for item in ctx.inference.origins(target) if item is not target]
    owners = [item.value for item in origins if isinstance(item, ast.Attribute) and item.attr == "device"]
    return len(owners) == len(origins) > 0 and all(
        any(_brings_to_host(part, owner.id) for part in walk(function)) if isinstance(owner, ast.Name) else False
        for owner in owners
    )


def _brings_to_host(part: ast.AST, name: str) -> bool:
    """`wave.data.cpu().numpy()`"""
    if not isinstance(part, ast.Call) or callee_name(part) not in ("cpu", "numpy"):
        return False
    return any(isinstance(item, ast.Name) and item.id == name for item in walk(part))


def is_asked_for_device(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a helper moves to the device its caller names, and `None` may be what the dataset says."""
    target = node.args[0] if node.args else keyword(node, "device")
    function = ctx.tree.function_of(node)
    if not isinstance(target, ast.Name) or function is None:
        return False
    arguments = function.args
    return any(item.arg == target.id for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def makes_batches(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether whole batches are made here or by what calls it, one copy each, in the process that asks for them."""
    scope: Scope | None = ctx.scope(node)
    seen: set[Scope] = set()
    while scope is not None and scope not in seen:
        seen.add(scope)
        if scope.function.rpartition(".")[2] in loaders.BATCH_MAKERS:
            return True
        edge = ctx.program.hottest_call(scope)
        scope = None if edge is None else edge.caller
    return False
