"""State dicts that are passed on without a copy, or with a shallow one."""

from __future__ import annotations

import ast

from perflint.api import Context, Edit, Tag, callee_name
from perflint.api.aliases import is_owned, is_part, is_same, loads_in_its_own_way


def why_not_shared(copied: ast.expr, consumer: ast.Call, ctx: Context) -> str:
    """Why passing the dict itself may change something; empty where it cannot."""
    if callee_name(consumer) != "load_state_dict":
        if any(map(ctx.program.named, ("__deepcopy__", "get_extra_state"))):
            return "a class of the project defines how its state is built or copied"
        return ""
    assert isinstance(consumer.func, ast.Attribute)
    receiver = consumer.func.value
    if ctx.kind(receiver).tag is not Tag.MODULE:
        return f"`{ctx.text(receiver)}` is not known to be a module, whose `load_state_dict` copies"
    if loads_in_its_own_way(receiver, ctx):
        return f"the class of `{ctx.text(receiver)}` overrides `load_state_dict` and may keep the dict"
    if isinstance(copied, ast.Call) and isinstance(copied.func, ast.Attribute) and copied.func.attr == "state_dict":
        if is_same(copied.func.value, receiver, ctx):
            return "source and target are the same module"
        if is_part(copied.func.value, receiver, ctx):
            return "one module is part of the other, and may load its own tensors under other keys"
        if not is_owned(receiver, ctx):
            return f"`{ctx.text(receiver)}` is not known to consist of torch's own layers that no other module shares"
        return ""
    return "the dict may hold the target's own tensors under other keys"


def shallow_copy(node: ast.Call, ctx: Context) -> tuple[Edit, ...]:
    """`copy.copy`, which keeps the type of the dict and its `_metadata`, in the file's own spelling."""
    written = ctx.tree.text(node.func)
    if written.endswith(".deepcopy"):
        return (ctx.edit.replace(node.func, f"{written.removesuffix('deepcopy')}copy"),)
    spelling, imports = ctx.edit.ensure_import("copy", at=node)
    return (*imports, ctx.edit.replace(node.func, f"{spelling}.copy"))
