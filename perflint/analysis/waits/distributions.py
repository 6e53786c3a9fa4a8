"""Distributions that check their parameters on the host when they are made."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.values.kind import Tag
from perflint.analysis.waits.host_work import works_on_host
from perflint.analysis.waits.reads import is_unknown_in_step, kind_on_device
from perflint.ir.calls import callee_name, has_unpacking, is_constant, keyword
from perflint.syntax.walk import walk
from perflint.torch_model import modules

#: Classes of distributions whose constructors check what they are given.
DISTRIBUTIONS = (
    "Normal Categorical Bernoulli Beta Gamma Dirichlet Laplace Exponential Poisson Uniform Multinomial Cauchy StudentT "
    "LogNormal MultivariateNormal LowRankMultivariateNormal OneHotCategorical Geometric Gumbel HalfNormal VonMises "
    "NegativeBinomial Binomial RelaxedBernoulli RelaxedOneHotCategorical ContinuousBernoulli Weibull Pareto"
).split()


def is_checked(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call makes a distribution of tensors on the device that checks what it is given."""
    if callee_name(node) not in DISTRIBUTIONS:
        return False
    target = ctx.target(node.func)
    if target is None or not target.startswith(modules.DISTRIBUTION_PACKAGE) or works_on_host(node, ctx):
        return False
    if has_unpacking(node) or keyword(node, "validate_args") is not None:
        return False
    if any(is_constant(item, False) for item in node.args):  # noqa: FBT003 - the literal that is looked for
        return False
    return not ctx.program.mentions({"set_default_validate_args"}) and _is_on_device(node, ctx)


def _is_on_device(node: ast.Call, ctx: FileFacts) -> bool:
    values = [*node.args, *(item.value for item in node.keywords)]
    return any(
        _is_tensor_on_device(value, ctx)
        or (_is_of_network(value, ctx) and is_unknown_in_step(value, ctx.kind(value), ctx))
        for value in values
    )


def _is_tensor_on_device(value: ast.expr, ctx: FileFacts) -> bool:
    """As `is_on_device`: what a model may give in a structure is a tensor where a distribution takes it."""
    kind = ctx.kind(value)
    taken = kind.but(tag=Tag.TENSOR) if kind.holds_tensors else kind
    return kind_on_device(taken, value, ctx) is not None


def _is_of_network(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether a model gives it, or what it is computed from: of settings and parameters too nothing is known."""
    names = [part for part in walk(value) if isinstance(part, ast.Name)]
    made = [item.value for name in names for item in ctx.inference.flow.definitions(name) if item.value is not None]
    return any(
        isinstance(part, ast.Call) and is_model_call(part, ctx) for item in (value, *made) for part in walk(item)
    )
