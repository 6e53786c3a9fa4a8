"""TPL706: a bias that a normalisation takes away again."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Edit,
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
    walk,
)
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
        norm = _next_in_sequence(node, ctx) or _next_in_forward(node, ctx)
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
                (_without_bias(node, ctx),),
                reason="checkpoints lose an entry, the bias becomes None, and later layers get other random values",
                numerics="changes training",
            ),
        )


def _has_bias(node: ast.Call) -> bool:
    bias = argument(node, modules.BIAS_POSITION, "bias")
    if callee_name(node).startswith("ConvTranspose"):
        bias = keyword(node, "bias") if len(node.args) <= modules.BIAS_POSITION else node  # another order of arguments
    return not has_unpacking(node) and (bias is None or is_constant(bias, True))  # noqa: FBT003 - the literal


def _without_bias(node: ast.Call, ctx: Context) -> Edit:
    if len(node.args) > modules.BIAS_POSITION:
        return ctx.edit.replace(node.args[modules.BIAS_POSITION], "False")
    return ctx.edit.set_keyword(node, "bias", "False")


def _next_in_sequence(node: ast.Call, ctx: Context) -> ast.Call | None:
    """The normalisation that stands right behind a convolution in `nn.Sequential(...)` or a list of layers."""
    outer = ctx.tree.parent(node)
    items: Sequence[ast.expr] = ()
    if isinstance(outer, ast.Call) and ctx.is_call_of(outer, "torch.nn.Sequential"):
        items = outer.args
    elif isinstance(outer, (ast.List, ast.Tuple)) and not _is_module_list(outer, ctx):
        items = outer.elts
    position = next((index for index, item in enumerate(items) if item is node), -1)
    if position < 0 or position + 1 >= len(items):
        return None
    following = items[position + 1]
    return following if isinstance(following, ast.Call) and _is_norm(following, ctx) else None


def _is_module_list(node: ast.expr, ctx: Context) -> bool:
    """Whether a list only holds layers, in no order of calls."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.Assign):
        # `a, b = nn.Conv2d(...), nn.BatchNorm2d(...)` says nothing of their order.
        return not all(isinstance(target, (ast.Name, ast.Attribute)) for target in outer.targets)
    return isinstance(outer, ast.Call) and callee_name(outer) == "ModuleList"


def _is_norm(node: ast.Call, ctx: Context) -> bool:
    return ctx.target(node.func) in modules.MEAN_REMOVERS


def _next_in_forward(node: ast.Call, ctx: Context) -> ast.Call | None:
    """The normalisation that `self.norm(self.conv(x))` calls, where nothing else calls or reads the convolution."""
    statement = ctx.tree.parent(node)
    owner = next((outer for outer in ctx.tree.ancestors(node) if isinstance(outer, ast.ClassDef)), None)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or owner is None:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute) or ctx.text(target.value) != "self":
        return None
    uses = [part for part in walk(owner) if _is_own(part, target.attr) and part is not target]
    call = ctx.tree.parent(uses[0]) if len(uses) == 1 else None
    if not isinstance(call, ast.Call) or call.func is not uses[0]:
        return None
    norm = _wrapped_by(call, ctx) or _normed_next(call, ctx)
    return _made_once(norm, owner, ctx) if norm is not None else None


def _is_own(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _wrapped_by(call: ast.Call, ctx: Context) -> str | None:
    """`norm` of `self.norm(self.conv(x))`."""
    outer = ctx.tree.parent(call)
    if isinstance(outer, ast.Call) and outer.args == [call] and isinstance(outer.func, ast.Attribute):
        return outer.func.attr if _is_own(outer.func, outer.func.attr) else None
    return None


def _normed_next(call: ast.Call, ctx: Context) -> str | None:
    """`norm` of `x = self.conv(x)` whose only use is `self.norm(x)`."""
    statement = ctx.tree.parent(call)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    definition = ctx.inference.flow.definition_at(statement.targets[0])
    uses = ctx.inference.flow.uses_of(definition) if definition is not None else []
    outer = ctx.tree.parent(uses[0]) if len(uses) == 1 else None
    if isinstance(outer, ast.Call) and outer.args == [uses[0]] and isinstance(outer.func, ast.Attribute):
        return outer.func.attr if _is_own(outer.func, outer.func.attr) else None
    return None


def _made_once(name: str, owner: ast.ClassDef, ctx: Context) -> ast.Call | None:
    """The normalisation that `self.name` is, where the class sets it once."""
    made = [
        part.value
        for part in walk(owner)
        if isinstance(part, ast.Assign) and any(_is_own(target, name) for target in part.targets)
    ]
    only = made[0] if len(made) == 1 else None
    return only if isinstance(only, ast.Call) and _is_norm(only, ctx) else None
