"""Code whose tensors are on the host, or have to go there, and what belongs to a forward."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.naming.data import TRANSFORMS_FILE
from perflint.analysis.naming.models import FORWARD
from perflint.analysis.naming.phases import (
    EXPORTING_FILE,
    FOR_PEOPLE,
    KEEPS_FILES,
    KERNEL_SOURCE,
    LOOKS_FOR_RATE,
    RENDERS,
    WORKS_ON_RESULTS,
    WRITER_CLASS,
)
from perflint.analysis.phases.rate_finders import sweeps_rate
from perflint.finding import Heat

#: What runs on parameters and batches, which training has moved to the device: a step, or an optimizer's own.
_TRAINING = ("train", "batches", "optimizer")


def works_on_host(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` belongs to code whose tensors are on the host, or have to go there: the data side, pictures."""
    function = ctx.tree.function_of(node)
    if function is not None and LOOKS_FOR_RATE.search(function.name):
        return True
    if function is not None and FOR_PEOPLE.search(function.name) and not _renders_to_learn(function, node, ctx):
        return True
    if function is not None and sweeps_rate(function):
        return True
    if _is_kernel_source(node, ctx) or _is_kept_in_file(node, ctx):
        return True
    if TRANSFORMS_FILE.search(ctx.path) and ctx.role(node) != "train":
        return True
    around = ctx.tree.class_of(node)
    file = ctx.path.rpartition("/")[2]
    if LOOKS_FOR_RATE.search(around.name if around is not None else file) or is_only_inference(node, ctx):
        return True
    return ctx.role(node) == "data" and not in_forward(node, ctx)


def _renders_to_learn(function: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.AST, ctx: FileFacts) -> bool:
    """`render_rays` in a training step: what it makes is compared with a picture, and walked back through."""
    return bool(RENDERS.search(function.name)) and ctx.role(node) == "train" and not ctx.grad_off(node)


def _is_kernel_source(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a compiler of another language reads the function around `node`."""
    return any(
        KERNEL_SOURCE.search(ctx.text(item))
        for outer in ctx.tree.ancestors(node)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
        for item in outer.decorator_list
    )


def _is_kept_in_file(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` belongs to what writes a checkpoint or makes a model ready to be exported."""
    around = ctx.tree.class_of(node)
    if EXPORTING_FILE.search(ctx.path) or (around is not None and WRITER_CLASS.search(around.name)):
        return True
    _, route, _ = ctx.heat_and_route(node)
    return any(KEEPS_FILES.search(hop.text.rpartition(".")[2]) for hop in route[1:] if " " not in hop.text)


def is_only_inference(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether nothing but its being a module's forward makes this hot, and that forward switches gradients off around
    a whole model, or works on what one gave: it makes results for people, and no loop is known that waits for them.
    Tables of positions are made without gradients as well, on every step.
    """
    if ctx.role(node) != "forward" or not ctx.grad_off(node):
        return False
    function = ctx.tree.function_of(node)
    while function is not None and function.name != "forward":
        function = ctx.tree.function_of(ctx.tree.parent(function) or function)
    if function is None or not any("no_grad" in ctx.text(item) for item in function.decorator_list):
        return False
    around = ctx.tree.class_of(function)
    if around is not None and WORKS_ON_RESULTS.search(around.name):
        return True
    return any(isinstance(part, ast.Call) and is_model_call(part, ctx) for part in ctx.walk(function))


def region_of(node: ast.AST, ctx: FileFacts) -> ast.AST:
    """The code that runs once per step around `node`: its innermost hot loop, else its function."""
    for loop in ctx.loops(node):
        if ctx.body_heat(loop) >= Heat.STEP:
            return loop
    return ctx.tree.function_of(node) or ctx.tree.module


def in_step(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` belongs to a step of training: its loop, an optimizer's `step` or the forward pass of a module."""
    return ctx.role(node) in _TRAINING or in_forward(node, ctx)


def in_forward(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` belongs to the forward pass of a module, in its own function or through a call, or to a function
    of a library that one calls.
    """
    function = ctx.tree.function_of(node)
    if ctx.role(node) in ("forward", "metric") or (function is not None and function.name == "forward"):
        return True
    if ctx.program.is_in_forward(ctx.scope(node)):
        return True
    _, route, _ = ctx.heat_and_route(node)
    return any(FORWARD.search(hop.text) for hop in route)
