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
    Tag,
    callee_name,
    modules,
)
from perflint.api.waits import DISTRIBUTIONS, checks_own, impact_at, is_checked, works_on_host

#: Methods of a distribution that test the value they are given.
_CHECKED = ("log_prob", "cdf", "icdf")


class DistributionValidation(Rule):
    """A distribution object validates its arguments on the host each time it is created or evaluated.

    What it does

    Reports `torch.distributions` objects and their `log_prob` on the hot path, with parameters on the device and
    validation on, and where the project's own distributions check theirs.

    Why is this slow?

    Validation is on unless Python runs with `-O`. Each parameter, and each value passed to `log_prob`, is checked on
    the device, and the host blocks for the answer.

    What to do

    Pass `validate_args=False` in hot code: `Normal(mean, std, validate_args=False)`. Or call
    `torch.distributions.Distribution.set_default_validate_args(False)` once, after the model is tested with checks.

    Fix safety

    Unsafe: wrong arguments give wrong numbers instead of an error. Same bits for valid ones.

    Not reported

    - Calls that pass `validate_args`, and programs that turn validation off with `set_default_validate_args`.
    - Parameters that are not known to be on the device.
    - Code that is not on the hot path.

    Known limitations

    While a model is being debugged, these checks are what finds NaN in the parameters first.

    Measured

    `Categorical()` synchronizes once, `Normal(...).log_prob(x)` 3 times. On the CPU the checks make both 1.8 to 4.8
    times slower (torch 2.13).

    References

    - torch.distributions: https://docs.pytorch.org/docs/stable/distributions.html
    """

    code, name = "TPL210", "distribution-validation"
    numerics = "same bits"
    impact = Impact.MEDIUM
    listens = (Calls(*DISTRIBUTIONS, *_CHECKED, "__init__", "_validate_sample", doing=("distribution",)),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("read")

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if callee_name(node) in _CHECKED:
            yield from self._value(node, ctx)
            return
        is_own = checks_own(node, ctx)
        if not (is_own or ctx.once(is_checked, node)) or ctx.program.whole.runs_on_host(ctx.path):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase}: validating its parameters synchronizes.",
            advice="Pass `validate_args=False` once the model is tested.",
            confidence=Confidence.MEDIUM,
            impact=min(self.impact, impact_at(node, ctx)),
            block=node,
            fix=None if is_own else _unchecked([node], ctx),
        )

    def _value(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`chosen.log_prob(action)` of a distribution that is made with checks."""
        if not isinstance(node.func, ast.Attribute) or len(node.args) != 1 or works_on_host(node, ctx):
            return
        made = ctx.kind(node.func.value)
        if made.tag is not Tag.INSTANCE or not made.qualified.startswith(modules.DISTRIBUTION_PACKAGES):
            return
        origins = ctx.inference.origins(node.func.value)
        calls = [item for item in origins if isinstance(item, ast.Call) and ctx.once(is_checked, item)]
        if not calls or len(calls) != len(origins):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase}: validating its argument synchronizes.",
            advice=f"Pass `validate_args=False` to `{callee_name(calls[0])}` once the model is tested.",
            confidence=Confidence.MEDIUM,
            impact=min(self.impact, impact_at(node, ctx)),
            # One argument of the constructor turns off all of its checks.
            block=calls[0],
            fix=_unchecked(calls, ctx),
            related=(ctx.hop(calls[0], "created with validation here"),),
        )


def _unchecked(made: list[ast.Call], ctx: Context) -> Fix:
    return Fix(
        "Turn the validation off",
        Applicability.UNSAFE,
        tuple(ctx.edit.set_keyword(call, "validate_args", "False") for call in made),
        reason="wrong arguments would no longer raise an error",
    )
