"""TPL315: a discriminator's step that runs the backward pass of the generator, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule
from perflint.api.gradients import (
    foreign_maker,
    forwards_of_loss,
    is_differentiated,
    is_walked_again,
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
        found: dict[ast.Call, list[tuple[ast.expr, ast.Call]]] = {}
        for forward, given in forwards_of_loss(node, trained, ctx):
            maker = foreign_maker(given, trained, ctx)
            if (
                maker is not None
                and not is_differentiated(given, node, ctx)
                and not is_walked_again(forward, node, ctx)
            ):
                found.setdefault(forward, []).append((given, maker))
        for forward, inputs in found.items():
            yield self._finding(forward, inputs, node, ctx)

    def _finding(
        self, forward: ast.Call, inputs: list[tuple[ast.expr, ast.Call]], node: ast.Call, ctx: Context
    ) -> Finding:
        given, maker = inputs[0]
        names = " and ".join(f"`{ctx.text(item)}.detach()`" for item, _ in inputs)
        edits = (ctx.edit.replace(item, f"{ctx.tree.text(item)}.detach()") for item, _ in inputs)
        return self.finding(
            given,
            ctx,
            f"This loss runs its backward pass through `{ctx.text(maker.func)}`, whose gradients this step does "
            f"not use; it {ctx.heat(node).phrase}.",
            advice=f"Pass {names} to `{ctx.text(forward.func)}`.",
            fix=Fix(
                f"Detach `{ctx.text(given)}`",
                Applicability.UNSAFE,
                tuple(edits),
                reason="this step would no longer leave gradients in the generator",
            ),
            related=(ctx.hop(maker, "the graph begins here"), ctx.hop(node, "the backward pass")),
        )
