"""Distributions that check their parameters on the host when they are made."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perflint.analysis.elsewhere import class_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_model_call
from perflint.analysis.names.refs import CLASS, EXTERNAL, Ref
from perflint.analysis.values.kind import Kind, Tag
from perflint.analysis.waits.host_work import works_on_host
from perflint.analysis.waits.reads import is_unknown_in_step, kind_on_device
from perflint.ir.calls import arguments_of, callee_name, has_unpacking, is_constant, keyword
from perflint.syntax.walk import walk
from perflint.torch_model import modules
from perflint.torch_model.names import canonical, last

#: Classes of distributions whose constructors check what they are given.
DISTRIBUTIONS = modules.CHECKED_DISTRIBUTIONS
#: What turns the checks off for a whole program, of torch and of Pyro.
_SWITCHES = ("set_default_validate_args", "enable_validation", "_validate_args")
#: The method by which torch's distributions check a value.
_CHECK = "_validate_sample"


def is_checked(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call makes a distribution of tensors on the device that checks what it is given."""
    if not _is_distribution(node, ctx) or works_on_host(node, ctx):
        return False
    if has_unpacking(node) or keyword(node, "validate_args") is not None:
        return False
    if any(is_constant(item, False) for item in node.args):  # noqa: FBT003 - the literal that is looked for
        return False
    return not ctx.program.whole.turns_off(_SWITCHES) and _is_on_device(node, ctx)


def checks_own(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a distribution that the project defines checks its parameters, or a value, in a method of its own:
    `super().__init__(batch_shape, validate_args=validate_args)`, `self._validate_sample(value)`. Parameters under
    constraints that depend on others are not checked.
    """
    name, function = callee_name(node), ctx.tree.function_of(node)
    cls = ctx.tree.class_of(function) if function is not None else None
    if cls is None or function is None or not isinstance(node.func, ast.Attribute) or works_on_host(node, ctx):
        return False
    if ctx.program.whole.turns_off(_SWITCHES):
        return False
    classes = ctx.inference.classes
    owners = classes.mro(Ref(CLASS, ctx.path, ctx.tree.qualname(cls)))
    library = [canonical(one.name) for one in owners if one.kind == EXTERNAL]
    if not any(one.startswith(modules.DISTRIBUTION_PACKAGES) for one in library):
        return False
    if name == _CHECK:
        return isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
    given = keyword(node, "validate_args")
    is_left = given is None or (isinstance(given, ast.Name) and _is_left_open(given.id, function))
    is_base = isinstance(node.func.value, ast.Call) and callee_name(node.func.value) == "super"
    return function.name == "__init__" == name and is_base and is_left and _has_constraints(owners, ctx)


def _is_left_open(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a parameter is None by default, which checks as the whole program does."""
    args = function.args
    pairs = [*zip(reversed((*args.posonlyargs, *args.args)), reversed(args.defaults))]
    pairs += [(item, default) for item, default in zip(args.kwonlyargs, args.kw_defaults) if default is not None]
    return any(item.arg == name and is_constant(default, None) for item, default in pairs)


def _has_constraints(owners: Sequence[Ref], ctx: FileFacts) -> bool:
    """Whether the constraints that hold for a class, by the first of its classes that tells, can be checked alone."""
    for owner in owners:
        if owner.kind == EXTERNAL:
            if last(owner.name) in DISTRIBUTIONS:
                return True
            continue
        for cls, there in class_of(owner, ctx):
            for statement in cls.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                if any(isinstance(item, ast.Name) and item.id == "arg_constraints" for item in targets):
                    told = statement.value.values if isinstance(statement.value, ast.Dict) else []  # type: ignore[attr-defined]
                    return any("dependent" not in there.text(item) for item in told)
    return False


def _is_distribution(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether such a class is called, by its own name or by one that it is kept under: `self.dist(mean, scale)`."""
    if callee_name(node) in DISTRIBUTIONS and _is_of_library(ctx.target(node.func) or ""):
        return True
    made = ctx.kind(node.func)
    if made.tag is not Tag.CLASS:
        return False
    return _inherits_constructor(made, ctx) if made.path else _is_of_library(made.qualified)


def _is_of_library(name: str) -> bool:
    return name.startswith(modules.DISTRIBUTION_PACKAGES) and last(name) in DISTRIBUTIONS


def _inherits_constructor(made: Kind, ctx: FileFacts) -> bool:
    """Whether a class of the project is made by the constructor of such a class that it derives from."""
    for owner in ctx.inference.classes.mro(Ref(CLASS, made.path, made.qualified)):
        if owner.kind == EXTERNAL:
            if _is_of_library(canonical(owner.name)):
                return True
        elif "__init__" in ctx.program.summaries[owner.path].classes[owner.name].methods:
            return False
    return False


def _is_on_device(node: ast.Call, ctx: FileFacts) -> bool:
    values = arguments_of(node)
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
