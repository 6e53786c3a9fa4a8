"""TPL316: weight gradients of a discriminator that the generator's step computes and nobody uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule
from perflint.api.gradients import Discarded, discarded_gradients, network_of, runs_between, trained_after


class CriticGradientsInGeneratorStep(Rule):
    """The backward pass of a generator computes weight gradients of the discriminator, which are zeroed unread.

    What it does

    Reports forward passes of a discriminator, critic or other judge whose weight gradients a backward pass computes,
    where the optimizer that steps after it holds none of its parameters and `zero_grad` discards the gradients.

    Why is this slow?

    The backward pass of a layer has two halves: the gradient of its input and the gradient of its weights. The
    generator needs only the first. The second costs about as much, and under DDP it is also reduced over all processes.

    What to do

    Call `critic.requires_grad_(False)` before the generator's forward through it, and `critic.requires_grad_(True)`
    after the backward pass. The gradient still flows through the critic to the generator.

    Fix safety

    Unsafe: the gradients of the discriminator are the same at each of its steps, but code that reads them before they
    are zeroed, a hook or a logger, no longer finds those of this step. Parameters that the discriminator shares with
    the generator would not be trained.

    Not reported

    - Modules whose `requires_grad` the file sets anywhere, by a loop, a helper or a context manager.
    - Gradients that something may read before `zero_grad`, and `zero_grad` that does not run before every step.
    - Optimizers whose parameters are not plain to see, and `backward(inputs=...)`.
    - Inputs that are detached from what the optimizer trains.

    Known limitations

    The backward pass and the step of the generator have to stand in one function, those of the discriminator in it or
    in another method of its class.

    Measured

    Forward and backward pass through a discriminator of four convolutions, batches of 8 x 3 x 64 x 64: 1.41 times as
    fast at 16 channels, 1.17 at 32, 1.44 at 64 (`perflint verify --rule TPL316 --device cpu`, torch 2.13, one thread).

    References

    - `torch.nn.Module.requires_grad_`: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
    - Locally disabling gradients: https://docs.pytorch.org/docs/stable/notes/autograd.html
    """

    code, name = "TPL316", "critic-gradients-in-generator-step"
    impact = Impact.MEDIUM
    numerics = "same bits"
    listens = (Calls("backward", "manual_backward"),)
    at_least = Heat.PERIODIC

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        trained = trained_after(node, ctx)
        if not trained or ctx.grad_off(node):
            return
        found = discarded_gradients(node, trained, ctx)
        if not found.forwards:
            return
        first = found.forwards[0]
        models = list(dict.fromkeys(network_of(forward, ctx) for forward in found.forwards))
        zeroed = " and ".join(f"`{ctx.text(call)}`" for call in found.zeroed)
        yield self.finding(
            first,
            ctx,
            f"The backward pass for {_list(sorted(trained))} also computes weight gradients of {_list(models)}, which "
            f"{zeroed} {'discards' if len(found.zeroed) == 1 else 'discard'}; it {ctx.heat(node).phrase}.",
            advice=f"Call `{models[0]}.requires_grad_(False)` before this forward, and `requires_grad_(True)` after "
            f"`{ctx.text(node)}`.",
            impact=None if ctx.heat(node) >= Heat.STEP else Impact.LOW,
            fix=_switched(node, found, models, ctx),
            related=(ctx.hop(node, "the backward pass"), *(ctx.hop(call, "zeroed here") for call in found.zeroed)),
        )


def _list(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _switched(node: ast.Call, found: Discarded, models: list[str], ctx: Context) -> Fix | None:
    """Two lines around the forwards and the backward pass, where nothing else uses the models between them."""
    first, last = ctx.tree.statement_of(found.forwards[0]), ctx.tree.statement_of(node)
    if not isinstance(last, ast.Expr) or ctx.tree.parent(first) is not ctx.tree.parent(last):
        return None
    if not ctx.control_flow(node).dominates(first, last) or runs_between(first, last, found.forwards, ctx):
        return None
    return Fix(
        f"Switch the gradients of {_list(models)} off meanwhile",
        Applicability.UNSAFE,
        (
            ctx.edit.insert_before(first, "\n".join(f"{model}.requires_grad_(False)" for model in models)),
            ctx.edit.insert_after(last, "\n".join(f"{model}.requires_grad_(True)" for model in models)),
        ),
        reason="code that reads those gradients before they are zeroed no longer finds them",
    )
