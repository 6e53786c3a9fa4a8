"""TPL207: a checkpoint written on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, Tag, argument, callee_name
from perflint.api.layers import holds_training_state
from perflint.api.loops import goes_through_list
from perflint.api.names import ONE_PROCESS
from perflint.api.waits import is_exceptional
from perflint.api.words import short_call

_SAVERS = {"torch.save": 0, "safetensors.torch.save_file": 0, "safetensors.torch.save_model": 0}
#: Calls between the loop and the save: past that many, a test on the way decides whether one is due.
_LONGEST = 2


class BlockingCheckpoint(Rule):
    """Writing a checkpoint in the step loop blocks training until the file is written.

    What it does

    Reports `torch.save` and similar calls that run on every step without a guard.

    Why is this slow?

    `torch.save` copies each tensor to the host, which synchronizes, and returns when the file is written.

    What to do

    Save every N steps, or when the validation loss improves. To save often, copy the state to pinned host memory and
    write it in a thread, or use `torch.distributed.checkpoint.async_save`.

    Fix safety

    No fix: only the author knows how much work a crash may lose.

    Not reported

    - Saves under an every-N guard or a best-so-far test, at the end of an epoch or of the run.
    - Saves in a handler of an error or a signal.
    - Files that are the program's output (features, predictions).
    - Saves several calls away from the loop: one of these calls decides whether a save is due.

    Measured

    `torch.save` of 100 MB took 154 ms, cloning the same tensors 15 ms (one machine's disk).

    References

    - `torch.save`: https://docs.pytorch.org/docs/stable/generated/torch.save.html
    - torch.distributed.checkpoint: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
    """

    code, name = "TPL207", "blocking-checkpoint"
    impact = Impact.HIGH
    listens = (Calls("save", "save_file", "save_model", "save_pretrained", "save_state", "save_checkpoint"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if ctx.role(node) != "train" or is_exceptional(node, ctx) or _is_conditional(node, ctx):
            return
        if (
            not _saves_state(node, ctx)
            or len(ctx.heat_and_route(node)[1]) > 1 + _LONGEST
            or goes_through_list(node, ctx)
        ):
            return
        yield self.finding(
            node,
            ctx,
            f"`{short_call(node, ctx)}` {ctx.heat(node).phrase} and blocks training until the file is written.",
            advice="Save every N steps, or copy the state to the host and write it in a thread.",
        )


def _saves_state(node: ast.Call, ctx: Context) -> bool:
    target = ctx.target(node.func)
    if target in _SAVERS:
        saved = argument(node, _SAVERS[target], "obj")
        return saved is not None and holds_training_state(saved, ctx)
    name = callee_name(node)
    if not isinstance(node.func, ast.Attribute) or (target is not None and not target.startswith("accelerate.")):
        return False
    if name == "save_pretrained":
        return ctx.kind(node.func.value).tag is Tag.MODULE
    return name == "save_state" and "accelerator" in ctx.text(node.func.value)


def _is_conditional(node: ast.Call, ctx: Context) -> bool:
    """Whether a test in the same function, other than of which process this is, decides about the save."""
    return any(not ONE_PROCESS.search(ctx.text(test)) for test, _ in ctx.conditions(node))
