"""Whether a project has tensors of classes of its own."""

from __future__ import annotations

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, Ref

#: What makes tensors of a class that may do anything when it is added.
_SUBCLASSING = ("as_subclass", "_make_subclass", "_make_wrapper_subclass", "__torch_function__")


def has_own_tensors(ctx: FileFacts) -> bool:
    """Whether the project has tensors of classes of its own, or objects that pass for one."""
    if _has_own_backward(ctx) or ctx.program.whole.has_derived("Tensor") or ctx.program.mentions(_SUBCLASSING):
        return True
    answering = (
        Ref(CLASS, scope.path, scope.function.rpartition(".")[0])
        for name in ("__getattr__", "__getattribute__")
        for scope in ctx.program.named(name)
        if "." in scope.function and ctx.program.function(scope).in_class
    )
    return any(not ctx.program.is_module(owner) for owner in answering)


def _has_own_backward(ctx: FileFacts) -> bool:
    """Whether a class of the project, but for the functions of autograd, says itself what `backward` does."""
    owners = (
        Ref(CLASS, scope.path, scope.function.rpartition(".")[0])
        for scope in ctx.program.named("backward")
        if "." in scope.function and ctx.program.function(scope).in_class
    )
    return any(not ctx.program.is_subclass(owner, "torch.autograd.Function", "Function") for owner in owners)
