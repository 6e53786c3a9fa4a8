"""TPL301: state dicts copied tensor by tensor where no copy is needed, or a cheaper one is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Rule,
    Tag,
    argument,
    callee_name,
    has_unpacking,
)
from perflint.api.aliases import only_rebinds_entries
from perflint.api.names import HAS_STATE

from ._fixes.shared_state import shallow_copy, why_not_shared

_SAVERS = ("torch.save", "safetensors.torch.save_file", "torch.distributed.checkpoint.save")


class DeepcopyStateDict(Rule):
    """A deep copy of a state dict copies every tensor, even if the copy is read once and discarded.

    What it does

    Reports `copy.deepcopy(model.state_dict())` and deep copies of names that hold a state dict.

    Why is this slow?

    The cost is per tensor: `deepcopy` calls Python code for each of them. On a GPU the copy also doubles the memory
    of the model's weights while it is alive.

    What to do

    If `module.load_state_dict(...)` or `torch.save(...)` consumes the copy at once, pass the dict itself: both copy
    or write their input. If only entries are replaced or removed, make a shallow copy: `copy.copy(state_dict)`. A
    snapshot that outlives the step (the best weights so far) must be a copy, because the optimizer writes to these
    tensors: copy to the host, `{k: v.cpu() for k, v in model.state_dict().items()}` for a CUDA model, or to buffers
    reused with `copy_`.

    Fix safety

    Safe if a save consumes the copy in the same expression, or `load_state_dict` of another module does that perflint
    sees being built, from torch layers that no other module shares, without `assign=True` or an override: same bits.
    For other modules it is unknown whether they share layers with the source: unsafe. A shallow copy is unsafe: it is
    correct only while nothing writes to the tensors in place.

    Not reported

    - An optimizer's state dict: its `load_state_dict` keeps the tensors it receives.
    - Deep copies of a model itself.
    - Snapshots taken once per epoch or less often.

    Known limitations

    A clone loses what a deep copy keeps: ties between weights, `_metadata`, and entries that are not tensors.
    Therefore no fix turns one into the other.

    Measured

    Per tensor: 15 to 25 us for `deepcopy`, 3 us for `clone` (torch 2.13, CPU). `deepcopy` of 100 small tensors takes
    8.4 times as long as a clone, for real model sizes 1.1 to 1.4 times. Loading the dict without a copy is 3 to 4
    times cheaper than loading a copy.

    References

    - torch.nn.Module:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    - Saving and loading models: https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    code, name = "TPL301", "deepcopy-state-dict"
    numerics = "same bits"
    impact = Impact.MEDIUM
    listens = (Calls("deepcopy"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        copied = argument(node, 0, "x")
        if copied is None or len(node.args) + len(node.keywords) != 1:
            return
        if not ctx.is_call_of(node, "copy.deepcopy"):
            return
        # What the text tells comes first: what is copied may take long to find out.
        consumer = _consumer(node, ctx)
        name = _bound_name(node, ctx) if consumer is None else None
        rebound = name is not None and only_rebinds_entries(name, node, ctx)
        often = ctx.heat(node) >= Heat.STEP
        if not (consumer is not None or rebound or often) or not _is_state_dict(copied, ctx):
            return
        if consumer is not None:
            yield self._consumed(node, copied, consumer, ctx)
        elif name is not None and rebound:
            yield self._rebound(node, copied, name, ctx)
        else:
            yield self.finding(
                node,
                ctx,
                f"`{ctx.text(node)}` {ctx.heat(node).phrase} and copies every tensor of the model, one by one.",
                advice=(
                    "For a snapshot, copy to the host or to reused buffers (`copy_`); otherwise pass the dict itself."
                ),
                impact=Impact.HIGH,
            )

    def _consumed(self, node: ast.Call, copied: ast.expr, consumer: ast.Call, ctx: Context) -> Finding:
        inner = ctx.text(copied)
        reason = why_not_shared(copied, consumer, ctx)
        fix = Fix(
            f"Pass `{inner}` itself",
            Applicability.UNSAFE if reason else Applicability.SAFE,
            (ctx.edit.replace(node, ctx.tree.text(copied)),),
            reason=reason,
        )
        verb = "copies the values again" if callee_name(consumer) == "load_state_dict" else "only writes it to a file"
        return self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` copies every tensor, and `{ctx.text(consumer.func)}` {verb}.",
            advice=f"Pass `{inner}` itself.",
            fix=fix,
        )

    def _rebound(self, node: ast.Call, copied: ast.expr, name: str, ctx: Context) -> Finding:
        fix = Fix(
            "Copy the dict, not its tensors",
            Applicability.UNSAFE,
            shallow_copy(node, ctx),
            reason=f"code that receives `{name}` must not modify its tensors in place",
        )
        return self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` copies every tensor, but only entries of `{name}` are replaced or removed.",
            advice=f"Make a shallow copy: `copy.copy({ctx.text(copied)})`.",
            fix=fix,
        )


def _is_state_dict(node: ast.expr, ctx: Context) -> bool:
    kind = ctx.kind(node)
    if kind.tag is Tag.STATE_DICT:
        return True
    if not kind.known and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return node.func.attr == "state_dict" and HAS_STATE.search(ctx.text(node.func.value)) is not None
    if kind.tag is Tag.MAPPING and kind.element is not None and kind.element.tag is Tag.TENSOR:
        return "state_dict" in ctx.text(node) or ctx.text(node) in ("sd", "state")
    return False


def _consumer(node: ast.Call, ctx: Context) -> ast.Call | None:
    """The load or save that takes the copy as its argument in the same expression."""
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.keyword):
        parent = ctx.tree.parent(parent)
    if not isinstance(parent, ast.Call) or node is parent.func:
        return None
    if callee_name(parent) == "load_state_dict" and isinstance(parent.func, ast.Attribute):
        receiver = ctx.kind(parent.func.value)
        if receiver.tag in (Tag.OPTIMIZER, Tag.SCHEDULER, Tag.SCALER) or "optim" in ctx.text(parent.func.value).lower():
            return None
        return parent if argument(parent, 2, "assign") is None and not has_unpacking(parent) else None
    return parent if ctx.is_call_of(parent, *_SAVERS) else None


def _bound_name(node: ast.Call, ctx: Context) -> str | None:
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        return parent.targets[0].id
    return None
