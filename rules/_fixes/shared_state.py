"""State dicts that are passed on without a copy, or with a shallow one."""

from __future__ import annotations

import ast

from perflint.api import Context, Edit, Tag, callee_name
from perflint.api.aliases import (
    ClonedEntries,
    comes_from,
    is_only_looped_over,
    is_owned,
    is_part,
    is_same,
    loads_in_its_own_way,
    takes_in_others,
)


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


def why_not_uncloned(cloned: ClonedEntries, receiver: ast.expr, ctx: Context) -> str:
    """Why the tensors may be the receiver's own under other keys; empty where they cannot be."""
    if ctx.kind(receiver).tag is not Tag.MODULE:
        return f"`{ctx.text(receiver)}` is not known to be a module, whose `load_state_dict` copies"
    if loads_in_its_own_way(receiver, ctx):
        return f"the class of `{ctx.text(receiver)}` overrides `load_state_dict` and may keep the dict"
    source = cloned.source
    if takes_in_others(source, ctx):
        return f"entries of `{ctx.text(source)}` may be tensors of `{ctx.text(receiver)}` under other keys"
    own = _owner_of_state(source, ctx)
    if own is not None and is_same(own, receiver, ctx):
        if not (_keeps_keys(cloned) and is_only_looped_over(source, ctx)):
            return "the module loads its own tensors under other keys"
        if _is_of_torch(receiver, ctx) or is_owned(receiver, ctx):
            return ""
    if is_owned(receiver, ctx):
        return ""
    if not _is_of_torch(receiver, ctx):
        return f"the layers of `{ctx.text(receiver)}` are not known to be torch's own, whose loading copies"
    if _is_loaded(source, ctx) and is_only_looped_over(source, ctx):
        return ""
    if own is not None and is_part(own, receiver, ctx):
        return "one module is part of the other, and may load its own tensors under other keys"
    return f"`{ctx.text(source)}` may hold tensors of `{ctx.text(receiver)}` under other keys"


def _is_of_torch(module: ast.expr, ctx: Context) -> bool:
    """Whether a module is a single layer of torch's, by its class."""
    name = ctx.kind(module).qualified
    return (
        name.startswith("torch.nn.")
        and name not in ("torch.nn.Module", "torch.nn.Sequential")
        and ".Module" not in name
    )


def _owner_of_state(source: ast.expr, ctx: Context) -> ast.expr | None:
    """`model` for `model.state_dict()`, written there or bound to the name, where the dict can be no other."""
    owners: list[ast.expr] = []
    for origin in comes_from(source, ctx):
        if not (isinstance(origin, ast.Call) and isinstance(origin.func, ast.Attribute)):
            return None
        if origin.func.attr != "state_dict" or ctx.kind(origin.func.value).tag is not Tag.MODULE:
            return None
        owners.append(origin.func.value)
    return owners[0] if len({ctx.text(owner) for owner in owners}) == 1 else None


def _keeps_keys(cloned: ClonedEntries) -> bool:
    target = cloned.entries.generators[0].target
    assert isinstance(target, ast.Tuple)
    key, first = cloned.entries.key, target.elts[0]
    return isinstance(key, ast.Name) and isinstance(first, ast.Name) and key.id == first.id


def _is_loaded(source: ast.expr, ctx: Context) -> bool:
    """Whether the dict comes from a file."""
    origins = comes_from(source, ctx)
    return bool(origins) and all(
        ctx.is_call_of(origin, "torch.load", "safetensors.torch.load_file", "torch.hub.load_state_dict_from_url")
        for origin in origins
    )
