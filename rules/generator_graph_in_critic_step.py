"""TPL315: a discriminator's step that runs the backward pass of the generator, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule
from perflint.api.gradients import (
    forwards_of_loss,
    is_differentiated,
    is_model_call,
    is_walked_again,
    network_of,
    runs_own_layers,
    trained_after,
)

_BACKWARD = frozenset({"backward", "manual_backward"})


class GeneratorGraphInCriticStep(Rule):
    """The loss of a discriminator reaches the generator's graph, whose gradients its optimizer does not use.

    What it does

    Reports a discriminator's forward of a generator's output that is not detached, where the optimizer that steps
    after the backward pass holds no parameter of the generator.

    Why is this slow?

    The backward pass goes through the discriminator and on through the whole generator. The gradients it leaves in the
    generator are set to zero before the generator's own step. The generator's activations stay in memory until then.

    What to do

    Pass `fake.detach()` to the discriminator in its own step, or compute `fake` under `torch.no_grad()` there.

    Fix safety

    Unsafe: gradients that this step left in the generator, and that were not set to zero, are gone.

    Not reported

    - Steps after which an optimizer of both, or one whose parameters are not plain to see, steps.
    - Inputs that are detached, or computed without gradients.
    - Inputs of `torch.autograd.grad`, and forwards that the generator's own loss uses as well.

    References

    - `torch.Tensor.detach`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    - DCGAN tutorial: https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html
    """

    code, name = "TPL315", "generator-graph-in-critic-step"
    impact = Impact.HIGH
    numerics = "same bits for the discriminator"
    listens = (Calls(*sorted(_BACKWARD)),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        trained = trained_after(node, ctx)
        if not trained:
            return
        for forward, given in forwards_of_loss(node, trained, ctx):
            maker = _maker(given, ctx)
            if maker is None or ctx.grad_off(maker) or network_of(maker, ctx) in trained:
                continue
            if is_differentiated(given, node, ctx) or is_walked_again(forward, node, ctx):
                continue
            name = ctx.text(given)
            yield self.finding(
                given,
                ctx,
                f"This loss runs its backward pass through `{ctx.text(maker.func)}`, whose gradients this step does "
                f"not use; it {ctx.heat(node).phrase}.",
                advice=f"Pass `{name}.detach()` to `{ctx.text(forward.func)}`.",
                fix=Fix(
                    f"Detach `{name}`",
                    Applicability.UNSAFE,
                    (ctx.edit.replace(given, f"{ctx.tree.text(given)}.detach()"),),
                    reason="this step would no longer leave gradients in the generator",
                ),
                related=(ctx.hop(maker, "the graph begins here"), ctx.hop(node, "the backward pass")),
            )


def _maker(given: ast.expr, ctx: Context) -> ast.Call | None:
    """The one forward whose result is given, as it came."""
    if isinstance(given, ast.Call):
        return given if _runs(given, ctx) else None
    made = ctx.inference.flow.definitions(given) if isinstance(given, ast.Name) else ()
    if len(made) != 1 or made[0].path or not isinstance(made[0].value, ast.Call):
        return None
    return made[0].value if _runs(made[0].value, ctx) else None


def _runs(call: ast.Call, ctx: Context) -> bool:
    return is_model_call(call, ctx) or runs_own_layers(call, ctx)
