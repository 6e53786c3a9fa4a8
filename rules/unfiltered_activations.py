"""TPL313: forwards that keep the activations of every layer for the one that is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Impact, Nodes, Rule, callee_name, has_unpacking, is_constant, keyword
from perflint.api.gradients import ItemReads
from perflint.api.loops import runs_again

from ._fixes.filtered_cache import filtered

#: Calls that are given the switch and run no single forward.
_OTHERS = frozenset({"generate", "from_pretrained", "from_config", "update", "dict"})
_FILTERS = ("names_filter", "stop_at_layer")
#: One of these stands near such a call: what is read, or what switches gradients off.
_SWITCH = "output_hidden_states"
_MENTIONED = ("hidden_states", "no_grad", "inference_mode")
#: So many reads can be named in a filter.
_FEW = 2


class UnfilteredActivations(Rule):
    """A forward pass keeps the activations of every layer, but only one of them is read.

    What it does

    Reports `run_with_cache` without a filter and `output_hidden_states=True` where one layer of the result is read.

    Why is this slow?

    `run_with_cache` keeps every activation of the model, including attention patterns. `output_hidden_states=True`
    keeps one tensor of batch x length x width per layer. All of it stays in memory with the result, instead of a
    larger batch. Layers after the one that is read are computed for nothing.

    What to do

    Write `model.run_with_cache(tokens, names_filter="blocks.5.hook_resid_post")`, with `stop_at_layer=6` if the
    logits are not needed. For transformers models use the base model's `last_hidden_state` instead of
    `hidden_states[-1]`, or a forward hook on the layer.

    Fix safety

    Unsafe for `run_with_cache`: a cache is also read by short names of activations, and a filter takes full names only.
    There is no fix for `output_hidden_states`: `hidden_states[-1]` comes after the last norm in some models and before
    it in others.

    Not reported

    - Results of which several layers are read, or that are passed on as a whole.
    - Results with a use that perflint cannot see.

    Known limitations

    With gradients enabled, autograd keeps the hidden states of the layers for the backward pass anyway.

    References

    - torch.nn.Module:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
    - transformers, model outputs: https://huggingface.co/docs/transformers/main_classes/output
    """

    code, name = "TPL313", "unfiltered-activations"
    impact = Impact.MEDIUM
    listens = (Calls("run_with_cache"), Nodes(ast.keyword, mentioning=_MENTIONED, written=(_SWITCH,)))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Call):
            yield from self._cache(node, ctx)
        elif isinstance(node, ast.keyword) and node.arg == _SWITCH:
            call = ctx.tree.parent(node)
            if isinstance(call, ast.Call) and is_constant(node.value, value=True):
                yield from self._hidden_states(call, ctx)

    def _cache(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        if has_unpacking(node) or any(keyword(node, name) is not None for name in _FILTERS):
            return
        reads = ItemReads(node, ctx)
        keys = reads.of_cache()
        if not keys or len(keys) > _FEW:
            return
        names = " and ".join(f"`{key}`" for key in keys)
        wanted = keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` keeps every activation of the model, but only {names} "
            f"{'is' if len(keys) == 1 else 'are'} read.",
            advice=f"Keep only these: `names_filter={wanted}`.",
            fix=filtered(node, reads.items, ctx),
        )

    def _hidden_states(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        if callee_name(node) in _OTHERS:
            return
        if not ctx.grad_off(node) or not runs_again(node, ctx):
            return
        layers = ItemReads(node, ctx).of_output()
        if layers is None or len(layers) != 1:
            return
        last = layers[0] == "-1"
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` keeps the hidden states of every layer, but only `hidden_states[{layers[0]}]` "
            "is read.",
            advice="Read `last_hidden_state` of the base model, and remove the argument."
            if last
            else "Read this layer's output with a forward hook, and remove the argument.",
        )
