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
    has_unpacking,
    is_constant,
    keyword,
)
from perflint.api.aliases import (
    cloned_entries,
    value_cloned,
)

from ._fixes.shared_state import why_not_uncloned


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
        cloned = cloned_entries(given, node, ctx) if given is not None else None
        if cloned is None or not _copies(node, ctx):
            return
        receiver = node.func.value
        reason = why_not_uncloned(cloned, receiver, ctx)
        if not reason and any(ctx.edit.would_lose_comment(clone, value_cloned(clone)) for clone in cloned.clones):
            reason = "a comment would be lost"
        kept = ctx.tree.text(value_cloned(cloned.clones[0]))
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
