"""The path from the module that holds another to it, and what was compiled around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.call_graph.compiled_code import is_compile_call
from perflint.analysis.file_facts import FileFacts
from perflint.syntax.walk import walk

#: Methods that hand out the parts of a module.
_PARTS = frozenset("get_submodule modules named_modules children named_children items values _modules".split())


class CompiledAround(NamedTuple):
    """`path` is compiled by `call`; `bound` is the name of what runs compiled (the path itself where in place)."""

    call: ast.Call
    path: str
    bound: str

    @property
    def in_place(self) -> bool:
        return self.path == self.bound


def module_path(node: ast.expr, ctx: FileFacts, depth: int) -> str | None:
    """The path a module is reached by: `self.net.layers[0]`, through names that stand for parts and through loops."""
    if depth == 0:
        return None
    if isinstance(node, ast.Name):
        made = ctx.inference.flow.definitions(node)
        if len(made) == 1 and made[0].value is not None and not is_compile_call(made[0].value, ctx):
            found = module_path(made[0].value, ctx, depth - 1)
            return f"{node.id}" if found is None else found
        return node.id
    if isinstance(node, ast.Attribute):
        owner = module_path(node.value, ctx, depth - 1)
        return None if owner is None else f"{owner}.{node.attr}"
    if isinstance(node, ast.Subscript):
        owner = module_path(node.value, ctx, depth - 1)
        return None if owner is None else f"{owner}.[]"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARTS:
        owner = module_path(node.func.value, ctx, depth - 1)
        return None if owner is None else f"{owner}.[]"
    return None


def compiled_around(node: ast.AST, ctx: FileFacts) -> Iterator[CompiledAround]:
    """What the same function compiles, and what any method of the same class compiles under a path of `self`."""
    around: ast.AST = ctx.tree.function_of(node) or ctx.tree.module
    own = {id(part) for part in walk(around)}
    cls = ctx.tree.class_of(node)
    for part in walk(cls or around):
        if not isinstance(part, ast.Call):
            continue
        found = _compiling(part, ctx)
        if found is not None and (id(part) in own or found.path.startswith("self.")):
            yield found


def _compiling(call: ast.Call, ctx: FileFacts) -> CompiledAround | None:
    if is_compile_call(call, ctx):
        path, parent = ctx.text(call.args[0]), ctx.tree.parent(call)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            return CompiledAround(call, path, ctx.text(parent.targets[0]))
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" and not call.args:
        path = ctx.text(call.func.value)
        return (
            None if ctx.target(call.func) is not None and path in ("re", "regex") else CompiledAround(call, path, path)
        )
    return None
