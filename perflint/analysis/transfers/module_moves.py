"""Moves of modules: where to, whether they come back, and whether the module is the same on each step."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Device, Tag
from perflint.ir.calls import callee_name, is_constant
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk


def goes_to_device(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the call names an accelerator, or a device chosen at run time."""
    if callee_name(node) == "cuda":
        return True
    given = [*node.args[:1], *(item.value for item in node.keywords if item.arg == "device")]
    if len(given) != 1 or is_constant(given[0], "cpu"):
        return False
    kind = ctx.kind(given[0])
    if kind.device is not None:
        return kind.device is not Device.CPU
    name = ctx.text(given[0])
    return kind.tag is Tag.DEVICE or ("device" in name.lower() and "dtype" not in name)


def is_another_module(module: ast.expr, node: ast.Call, statement: ast.stmt, ctx: FileFacts) -> bool:
    """Whether the module is not the same one on each step: made there, a loop variable, taken from a list by index."""
    function = ctx.tree.function_of(node)
    if function is not None and function.name in ("__init__", "__post_init__", "setup", "on_fit_start"):
        return True
    loops = ctx.loops(node)
    if isinstance(module, ast.Attribute):
        written = ctx.inference.flow.names_written(loops[-1] if loops else function or ctx.tree.module)
        return ctx.text(module) in written and not _assigns(statement, node)
    assert isinstance(module, ast.Name)
    made = [item for item in ctx.inference.flow.definitions(module) if item.node is not statement]
    if loops:
        first, last = loops[-1].lineno, loops[-1].end_lineno or loops[-1].lineno
        return any(first <= getattr(item.node, "lineno", 0) <= last for item in made)
    # Without a loop here the module must come from outside: a parameter that each caller fills.
    return not made or any(item.value is not None for item in made)


def _assigns(statement: ast.stmt, node: ast.Call) -> bool:
    return isinstance(statement, ast.Assign) and statement.value is node


def comes_and_goes(module: ast.expr, ctx: FileFacts) -> bool:
    """Whether the file also moves it back to the host, under this name."""
    text = ctx.text(module)
    last = text.rpartition(".")[2]
    for part in walk(ctx.tree.module):
        if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)):
            continue
        is_it = _ends_in(part.func.value, last) or (
            # What is moved and not taken is a module: of a tensor the copy is wanted.
            _is_part(part.func.value, text) and isinstance(ctx.tree.parent(part), ast.Expr)
        )
        if part.func.attr not in ("cpu", "to") or not is_it:
            continue
        if part.func.attr == "cpu" or any(_is_host(item, ctx) for item in part.args):
            return True
    return False


def _is_part(node: ast.expr, whole: str) -> bool:
    """`self.unets`, where `self` is moved."""
    held = node.value if isinstance(node, ast.Attribute) else None
    return whole == "self" and isinstance(held, ast.Name) and held.id == whole


def is_moved_around(module: ast.expr, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the function moves it to several places: `vae.to(device)`, and `vae.to(before)` when it is done."""
    function = ctx.tree.function_of(node)
    last = ctx.text(module).rpartition(".")[2]
    places = {
        ctx.text(part.args[0]) if part.args else ""
        for part in walk(function or ctx.tree.module)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("to", "cuda")
        and _ends_in(part.func.value, last)
        and goes_to_device(part, ctx)
    }
    return len(places) > 1


def is_any_argument(module: ast.expr, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a helper moves whatever it is handed, `if isinstance(item, nn.Module): return item.to(device)`: on each
    step that is a batch.
    """
    function = ctx.tree.function_of(node)
    if function is None or not isinstance(module, ast.Name):
        return False
    if module.id not in {item.arg for item in (*function.args.posonlyargs, *function.args.args)}:
        return False
    asked = [part for test, _ in ctx.conditions(node) for part in walk(test) if isinstance(part, ast.Call)]
    return any(
        callee_name(part) == "isinstance" and last_name(part.args[0]) == module.id for part in asked if part.args
    )


def _ends_in(node: ast.expr, name: str) -> bool:
    return last_name(node) == name


def _is_host(node: ast.expr, ctx: FileFacts) -> bool:
    return (
        is_constant(node, "cpu")
        or ctx.text(node) in ('torch.device("cpu")', "torch.device('cpu')")
        or ("cpu" in ctx.text(node).lower() or "offload" in ctx.text(node).lower())
    )
