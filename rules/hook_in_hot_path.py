"""TPL401: module hooks registered per forward or per step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, is_name, last_name, walk

_REGISTRARS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
)

#: What takes hooks off again.
_REMOVERS = ("remove", "remove_hooks", "remove_handles", "clear_hooks")


class HookInHotPath(Rule):
    """A module hook that is registered on every step costs time on each call, and leaks if it is never removed.

    What it does

    Reports `register_forward_hook` and similar on a module on the hot path.

    Why is this slow?

    A hook that is registered on each step and never removed makes every later forward pass call one hook more.
    Registering and removing it around each forward pass costs time on each step, too.

    What to do

    Register the hook once, where the model is built, and let it read a flag or a list that the step sets. To change
    the output of a layer, wrap the layer instead.

    Fix safety

    No fix: the variables that the hook closes over must move, too.

    Not reported

    - Set-up code, and loops over layers before training.
    - Global hooks that are registered once.
    - `tensor.register_hook` on a tensor of this step, which must be registered on each step.

    Known limitations

    Hooks are no graph breaks under `torch.compile`. hooks-after-compile reports hooks that are added after
    compilation.

    Measured

    Without removal, calls 2,000 to 2,100 were 31 times slower than the first 100 (12 linear layers). Registering and
    removing around each forward pass costs 1.3 to 1.6 times that small forward pass (CPU, torch 2.13).

    References

    - torch.nn.Module:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
    """

    code, name = "TPL401", "hook-in-hot-path"
    impact = Impact.HIGH
    listens = (Calls(*_REGISTRARS),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not node.args and not node.keywords:
            return
        heat = ctx.heat(node).phrase
        if _handle_is_removed(node, ctx):
            yield self.finding(
                node,
                ctx,
                f"`{ctx.text(node)}` {heat}: the hook is registered and removed each time.",
                advice="Register it once where the model is built, and control it with a flag.",
                impact=Impact.LOW,
            )
        else:
            yield self.finding(
                node,
                ctx,
                f"`{ctx.text(node)}` {heat} and is never removed: every forward pass calls one hook more.",
                advice=(
                    "Register it once where the model is built. If it must be temporary, keep the handle and "
                    "call `handle.remove()`."
                ),
            )


def _handle_is_removed(call: ast.Call, ctx: Context) -> bool:
    """Whether anything in reach calls `.remove()`: the function, for a stored handle the class, or what goes through
    the handles that an object keeps.
    """
    statement = ctx.tree.statement_of(call)
    if isinstance(statement, ast.Expr) and statement.value is call:
        return False
    if isinstance(statement, ast.Return):
        return True  # the caller holds the handle
    around = ctx.tree.class_of(call) or ctx.tree.function_of(call) or ctx.tree.module
    if any(isinstance(part, ast.Attribute) and part.attr in _REMOVERS for part in walk(around)):
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kept = {target.attr for target in targets if isinstance(target, ast.Attribute)}
    return any(isinstance(part, ast.For) and _removes(part, kept) for part in walk(ctx.tree.module))


def _removes(loop: ast.For, kept: set[str]) -> bool:
    """`for handle in tracer.handles: handle.remove()`, in whatever keeps the object that has them."""
    return last_name(loop.iter) in kept and any(
        isinstance(part, ast.Attribute) and part.attr in _REMOVERS and is_name(part.value, last_name(loop.target))
        for part in walk(loop)
    )
