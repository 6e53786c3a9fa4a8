"""TPL706: a bias that a normalisation takes away again."""

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
    Tier,
    argument,
    callee_name,
    has_unpacking,
    is_constant,
    keyword,
    modules,
)
from perflint.api.gradients import next_in_forward, next_in_sequence
from perflint.api.names import FREEZES_NORMS

#: What reads weights of another training, which then have a bias each.
_PRETRAINED = (
    "load_state_dict_from_url",
    "model_zoo",
    "load_url",
    "load_pretrained",
    "pretrained",
    "hf_hub_download",
    "from_pretrained",
    "PreTrainedModel",
    "PreTrainedConfig",
)


class ConvBiasBeforeBatchnorm(Rule):
    """A convolution adds a bias that the following batch normalization subtracts again.

    What it does

    Reports `nn.Conv*d` with a bias directly before `nn.BatchNorm*d`.

    Why is this slow?

    In training, batch normalization subtracts the mean of each channel and with it the bias. The addition over the
    output and the sum over its gradients are wasted, a small part of the step.

    What to do

    Write `nn.Conv2d(..., bias=False)` directly before `nn.BatchNorm2d`, which has its own bias.

    Fix safety

    Unsafe: the bias disappears from the state dict, so older checkpoints fail to load with `strict=True`; later
    layers get other random initial values; in evaluation the output differs until the running mean has adapted; code
    that sets `conv.bias` fails. Training outputs are the same to rounding (7e-7). Changes training.

    Not reported

    - GroupNorm and LayerNorm, where a bias has an effect.
    - Something between the two, or a convolution output that is used elsewhere.
    - Networks that start from pretrained weights, or whose normalization is frozen.

    Known limitations

    The gain is small, so this rule is off by default.

    References

    - Performance tuning guide, disable bias before batch norm:
      https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    - `torch.nn.BatchNorm2d`: https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    """

    code, name = "TPL706", "conv-bias-before-batchnorm"
    tier = Tier.EXTRA
    impact = Impact.LOW
    listens = (Calls(*(name.rpartition(".")[2] for name in sorted(modules.CONVOLUTIONS))),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if ctx.target(node.func) not in modules.CONVOLUTIONS or not _has_bias(node):
            return
        if ctx.mentions(*_PRETRAINED) or FREEZES_NORMS.search(ctx.source.text):
            return
        norm = next_in_sequence(node, ctx) or next_in_forward(node, ctx)
        if norm is None:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(norm)}` subtracts the mean of each channel, and with it the bias of `{ctx.text(node)}`.",
            advice="Pass `bias=False`.",
            related=(ctx.hop(norm, "subtracts the mean of each channel"),),
            fix=Fix(
                "Remove the bias",
                Applicability.UNSAFE,
                (ctx.edit.set_argument(node, modules.BIAS_POSITION, "bias", "False"),),
                reason="checkpoints lose an entry, the bias becomes None, and later layers get other random values",
                numerics="changes training",
            ),
        )


def _has_bias(node: ast.Call) -> bool:
    bias = argument(node, modules.BIAS_POSITION, "bias")
    if callee_name(node).startswith("ConvTranspose"):
        bias = keyword(node, "bias") if len(node.args) <= modules.BIAS_POSITION else node  # another order of arguments
    return not has_unpacking(node) and (bias is None or is_constant(bias, True))  # noqa: FBT003 - the literal
