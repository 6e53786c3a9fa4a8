"""TPL210: distributions that check their arguments on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Claims,
    Confidence,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Rule,
    Tier,
    has_unpacking,
    is_constant,
    keyword,
    walk,
)

from ._shared.gradients import is_model_call
from ._shared.waits import is_on_device, is_unknown_in_step, works_on_host

_CLASSES = (
    "Normal Categorical Bernoulli Beta Gamma Dirichlet Laplace Exponential Poisson Uniform Multinomial Cauchy StudentT "
    "LogNormal MultivariateNormal LowRankMultivariateNormal OneHotCategorical Geometric Gumbel HalfNormal VonMises "
    "NegativeBinomial Binomial RelaxedBernoulli RelaxedOneHotCategorical ContinuousBernoulli Weibull Pareto"
).split()


class DistributionValidation(Rule):
    """A distribution object checks its arguments on the host each time it is made and asked.

    Why it is slow
    Validation is on unless Python runs with `-O`: each parameter, and each value given to `log_prob`, is tested on the
    device and the host waits for the answer. `Categorical()` waits once, `Normal(...).log_prob(x)` 3 times; on the CPU
    the checks make both 1.8 to 4.8 times slower (measured with torch 2.13).

    What to write instead
    `Normal(mean, std, validate_args=False)` in hot code, or once for the program
    `torch.distributions.Distribution.set_default_validate_args(False)`, after the model has been tested with checks.

    When to leave it
    Outside of hot code, on the CPU, while a model is being debugged: a NaN in the parameters is found by these checks
    first. This rule is off unless asked for.

    Fix safety
    Unsafe: wrong arguments give wrong numbers instead of an error. Same bits for right ones.
    """

    code, name = "TPL210", "distribution-validation"
    numerics = "same bits"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    listens = (Calls(*_CLASSES),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("read")

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        target = ctx.target(node.func)
        if target is None or not target.startswith("torch.distributions.") or works_on_host(node, ctx):
            return
        if has_unpacking(node) or keyword(node, "validate_args") is not None:
            return
        if any(is_constant(item, False) for item in node.args):  # noqa: FBT003 - the literal that is looked for
            return
        if ctx.program.mentions({"set_default_validate_args"}) or not _is_on_device(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase}, and checks each of its parameters on the host.",
            advice="Pass `validate_args=False` once the model is tested.",
            confidence=Confidence.MEDIUM,
            fix=Fix(
                "Leave out the checks",
                Applicability.UNSAFE,
                (ctx.edit.set_keyword(node, "validate_args", "False"),),
                reason="wrong arguments would no longer raise an error",
            ),
        )


def _is_on_device(node: ast.Call, ctx: Context) -> bool:
    values = [*node.args, *(item.value for item in node.keywords)]
    return any(
        is_on_device(value, ctx) or (_is_of_network(value, ctx) and is_unknown_in_step(value, ctx.kind(value), ctx))
        for value in values
    )


def _is_of_network(value: ast.expr, ctx: Context) -> bool:
    """Whether a model gives it, or what it is computed from: of settings and parameters too nothing is known."""
    names = [part for part in walk(value) if isinstance(part, ast.Name)]
    made = [item.value for name in names for item in ctx.inference.flow.definitions(name) if item.value is not None]
    return any(
        isinstance(part, ast.Call) and is_model_call(part, ctx) for item in (value, *made) for part in walk(item)
    )
