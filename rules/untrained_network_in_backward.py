"""TPL317: weight gradients of a network that no optimizer holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule
from perflint.api.gradients import never_trained, trained_after


class UntrainedNetworkInBackward(Rule):
    """The backward pass computes weight gradients of a network that is neither trained nor frozen.

    What it does

    Reports forward passes of networks that a loss is computed through, where every use of the network is in sight and
    none gives its parameters to an optimizer: a perceptual loss, a teacher, a feature extractor.

    Why is this slow?

    A parameter takes gradients unless `requires_grad` is False, also in `eval()`. The weight gradients cost about half
    of the network's backward pass. They are added up in memory as large as the weights, and nothing reads or zeroes
    them.

    What to do

    Call `network.requires_grad_(False)` where the network is made. The gradient still flows through it to its input.

    Fix safety

    Unsafe: the gradients that are no longer there may be wanted by code that perflint cannot see.

    Not reported

    - Networks whose `requires_grad` the file or their class sets, and classes that switch gradients themselves.
    - Networks that are handed to any function or object, whose parameters are listed, or that other files name.
    - Forward passes without gradients, and results that are only detached.
    - Modules without parameters, and single layers.

    Measured

    Forward and backward pass through four convolutions, batches of 4 x 3 x 64 x 64: 1.40 times as fast at 16 channels,
    1.51 at 32 (`perflint verify --rule TPL317 --device cpu`, torch 2.13, one thread).

    References

    - Locally disabling gradients: https://docs.pytorch.org/docs/stable/notes/autograd.html
    - `torch.nn.Module.requires_grad_`: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
    """

    code, name = "TPL317", "untrained-network-in-backward"
    impact = Impact.MEDIUM
    numerics = "same bits"
    listens = (Calls("backward", "manual_backward"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        trained = trained_after(node, ctx)
        if not trained or ctx.grad_off(node):
            return
        for forward, made in never_trained(node, trained, ctx):
            network = ctx.text(forward.func)
            yield self.finding(
                forward,
                ctx,
                f"The backward pass computes weight gradients of `{network}`, which no optimizer holds; "
                f"it {ctx.heat(node).phrase}.",
                advice=f"Call `{network}.requires_grad_(False)` where it is made.",
                fix=Fix(
                    f"Freeze `{network}`",
                    Applicability.UNSAFE,
                    (ctx.edit.insert_after(made, f"{network}.requires_grad_(False)"),),
                    reason="its gradients may be wanted by code that perflint cannot see",
                ),
                related=(ctx.hop(made, "made here"), ctx.hop(node, "the backward pass")),
            )
