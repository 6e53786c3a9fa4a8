"""Who asks that a sample goes to a device: a test, a caller, or whoever makes whole batches."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.names.refs import Scope
from perflint.ir.calls import callee_name, keyword
from perflint.syntax.walk import walk
from perflint.torch_model import loaders

#: What has a device that is wanted, not one that it is on.
_SETTINGS = frozenset("self cls torch args cfg config conf opt opts options params hparams settings".split())
#: Ways to start workers that take nothing over of the process they are started from.
_ANEW = ("spawn", "forkserver")
_DRAWING = ("sample", "sample_batch")
_BUFFERS = ("buffer", "replay", "rollout", "memory")


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
    return target is not None and is_parameter(target, ctx)


def is_parameter(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a name is one of the parameters of the function that it stands in."""
    function = ctx.tree.function_of(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    arguments = function.args
    return any(item.arg == node.id for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


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


def is_told_by_device(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether this only runs where a tensor is on a device already: `if image.device.type == "cuda"`."""
    return any(_asks_for_device(part) for test, _ in ctx.conditions(node) for part in walk(test))


def is_run_in_workers(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a whole batch is moved for a model that runs while batches are put together, in workers that are
    started anew: such may use the device, and nothing but that one copy is made.
    """
    function, outer = ctx.tree.function_of(node), ctx.tree.parent(node)
    if function is None or "collat" not in function.name or not isinstance(outer, ast.Call) or outer.func is node:
        return False
    return ctx.program.whole.starts_anew(ctx.path, ("set_start_method", "get_context"))


def _asks_for_device(node: ast.AST) -> bool:
    """`image.device`, `self.images.is_cuda`; `self.device` is where somebody wants it."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("device", "is_cuda"):
        return False
    return node.attr == "is_cuda" or name_of_whole(node.value) not in _SETTINGS


def is_replay_buffer(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the samples come from a replay buffer, which lives beside the training loop: by its name, or since it
    draws the batches itself.
    """
    owner = ctx.tree.class_of(node)
    if owner is None:
        return False
    draws = any(isinstance(item, ast.FunctionDef) and item.name in _DRAWING for item in owner.body)
    return draws or any(word in owner.name.lower() for word in _BUFFERS)
