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
from perflint.torch_model.names import last

#: Classes of distributions whose constructors check what they are given.
DISTRIBUTIONS = modules.CHECKED_DISTRIBUTIONS
#: What turns the checks off for a whole program, of torch and of Pyro.
_SWITCHES = frozenset({"set_default_validate_args", "enable_validation"})


def is_checked(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call makes a distribution of tensors on the device that checks what it is given."""
    if not _is_distribution(node, ctx) or works_on_host(node, ctx):
        return False
    if has_unpacking(node) or keyword(node, "validate_args") is not None:
        return False
    if any(is_constant(item, False) for item in node.args):  # noqa: FBT003 - the literal that is looked for
        return False
    return not ctx.program.mentions(_SWITCHES) and _is_on_device(node, ctx)


def _is_distribution(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether such a class is called, by its own name or by one that it is kept under: `self.dist(mean, scale)`."""
    if callee_name(node) in DISTRIBUTIONS:
        return (ctx.target(node.func) or "").startswith(modules.DISTRIBUTION_PACKAGES)
    made = ctx.kind(node.func)
    return (
        made.tag is Tag.CLASS
        and made.qualified.startswith(modules.DISTRIBUTION_PACKAGES)
        and last(made.qualified) in DISTRIBUTIONS
    )


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
