"""TPL302: tensors cloned on their way into `Module.load_state_dict`, which copies them itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
    Tag,
    argument,
    callee_name,
    has_unpacking,
    is_constant,
    keyword,
)
from perflint.api.aliases import (
    comes_from,
    is_only_looped_over,
    is_owned,
    is_part,
    is_same,
    loads_in_its_own_way,
    takes_in_others,
)


class CloneBeforeLoad(Rule):
    """`Module.load_state_dict` copies its input, so a clone made for loading is copied and discarded.

    What it does

    Reports `.clone()` in a dict comprehension that is passed to a module's `load_state_dict`.

    Why is this slow?

    `Module.load_state_dict` writes the values into the module's own parameters. Cloning them first reads and writes
    every tensor once more, and a second copy of the weights stays in memory until the load is done.

    What to do

    Pass the tensors as they are: `model.load_state_dict({k: v for k, v in state.items()})`, or the dict itself if no
    key changes.

    Fix safety

    Safe for a module that perflint sees being built, from torch layers that no other module shares, and for a single
    torch layer whose tensors come from a file, or go back to the keys they came from. Otherwise unsafe: the module
    may share layers, or keep its input. The comprehension stays, because the raw dict may carry the `_metadata` that
    it drops.

    Not reported

    - An optimizer's `load_state_dict`, which keeps the tensors it receives.
    - `assign=True`, and dicts that are used later.
    - One module that loads its own tensors under other keys.

    Measured

    With the clone, the load takes 1.3 times as long for many small tensors and up to 5 times for large ones (CPU,
    torch 2.13).

    References

    - torch.nn.Module:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    """

    code, name = "TPL302", "clone-before-load"
    numerics = "same bits"
    impact = Impact.MEDIUM
    listens = (Calls("load_state_dict"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
            return
        given = argument(node, 0, "state_dict")
        cloned = _cloned_entries(given, node, ctx) if given is not None else None
        if cloned is None or not _copies(node, ctx):
            return
        receiver = node.func.value
        reason = _why_unsafe(cloned, receiver, ctx)
        if not reason and any(ctx.edit.would_lose_comment(clone, _kept(clone)) for clone in cloned.clones):
            reason = "a comment would be lost"
        kept = ctx.tree.text(_kept(cloned.clones[0]))
        fix = Fix(
            "Load the tensors without cloning",
            Applicability.UNSAFE if reason else Applicability.SAFE,
            (ctx.edit.replace(cloned.clones[0], kept),),
            reason=reason,
        )
        yield self.finding(
            cloned.clones[0],
            ctx,
            f"`{ctx.text(cloned.clones[0])}` copies every tensor, and `{ctx.text(node.func)}` copies the values again.",
            advice=f"Write `{' '.join(kept.split())}`: loading only reads it.",
            fix=fix,
        )


class _Cloned:
    """The entries of a dict made for loading: where they come from, and the calls that clone them."""

    def __init__(self, entries: ast.DictComp, source: ast.expr, clone: ast.Call) -> None:
        self.entries, self.source, self.clones = entries, source, (clone,)


def _copies(load: ast.Call, ctx: Context) -> bool:
    """Whether what is loaded into copies: a module, by its kind or by all that its name says."""
    assert isinstance(load.func, ast.Attribute)
    assign = keyword(load, "assign") or argument(load, 2, "assign")
    if assign is not None and not is_constant(assign, value=False):
        return False
    receiver = load.func.value
    kind = ctx.kind(receiver)
    if kind.tag is Tag.MODULE:
        return True
    name = ctx.text(receiver).lower()
    return not kind.known and not any(word in name for word in ("optim", "sched", "scaler", "ema", "super"))


def _cloned_entries(given: ast.expr, load: ast.Call, ctx: Context) -> _Cloned | None:
    """The comprehension that makes the dict, written in the call or bound right above it for the call alone."""
    if isinstance(given, ast.Name):
        given = _made_just_before(given, load, ctx) or given
    if isinstance(given, ast.Call) and len(given.args) == 1 and not given.keywords:
        if callee_name(given) in ("dict", "OrderedDict") and isinstance(given.args[0], ast.DictComp):
            given = given.args[0]
    if not isinstance(given, ast.DictComp) or len(given.generators) != 1:
        return None
    generator = given.generators[0]
    target, items = generator.target, generator.iter
    if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[1], ast.Name)):
        return None
    if not (isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute) and items.func.attr == "items"):
        return None
    clone = _clone_of(given.value, target.elts[1].id)
    return None if clone is None else _Cloned(given, items.func.value, clone)


def _made_just_before(name: ast.Name, load: ast.Call, ctx: Context) -> ast.expr | None:
    definitions = ctx.inference.flow.definitions(name)
    if len(definitions) != 1 or not isinstance(definitions[0].node, ast.Assign):
        return None
    made = definitions[0].node
    if len(ctx.inference.flow.uses_of(definitions[0])) != 1 or len(made.targets) != 1:
        return None
    around = ctx.tree.parent(made)
    body = getattr(around, "body", [])
    if made not in body or body.index(made) + 1 >= len(body):
        return None
    return made.value if body[body.index(made) + 1] is ctx.tree.statement_of(load) else None


def _clone_of(value: ast.expr, name: str) -> ast.Call | None:
    """`v.clone()`, `v.detach().clone()` or `v.clone().detach()`: the `clone` call, where nothing else is done."""
    clone: ast.Call | None = None
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
        if value.keywords or value.func.attr not in ("clone", "detach"):
            return None
        if value.func.attr == "clone":
            clone = value
        value = value.func.value
    if isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    return clone if isinstance(value, ast.Name) and value.id == name else None


def _kept(clone: ast.Call) -> ast.expr:
    assert isinstance(clone.func, ast.Attribute)
    return clone.func.value


def _why_unsafe(cloned: _Cloned, receiver: ast.expr, ctx: Context) -> str:
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


def _keeps_keys(cloned: _Cloned) -> bool:
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
