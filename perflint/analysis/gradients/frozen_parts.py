"""Steps whose model has taken the gradients away from a part of itself: what is walked back is the rest, a head say."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import INSTANCE, Ref, Scope
from perflint.ir.summary import FunctionFacts
from perflint.syntax.walk import walk
from perflint.torch_model.modules import PARAMETER_ITERATORS

_OFF = ("const", "bool", False)


def runs_frozen_part(region: ast.AST, ctx: FileFacts) -> bool:
    """Whether a module is run or handed around in a region whose class freezes one of its parts in some method."""
    return any(
        _freezes_part(part, ctx)
        for part in walk(region)
        if isinstance(part, ast.Call) and isinstance(part.func, (ast.Name, ast.Attribute))
    )


def _freezes_part(call: ast.Call, ctx: FileFacts) -> bool:
    for kind in (ctx.kind(call.func), ctx.kind_on_route(call.func)):
        if kind.path in ctx.program.summaries and kind.qualified:
            whole = Ref(INSTANCE, kind.path, kind.qualified)
            names = [name for name in ctx.program.summaries[kind.path].functions if _is_method(name, kind.qualified)]
            homes = {ctx.program.resolver.method(whole, name.rpartition(".")[2]) for name in names}
            facts = (
                ctx.program.function(Scope(home.path, home.name)) for home in homes if home is not None and home.path
            )
            if any(map(_takes_from_part, facts)):
                return True
    return False


def _is_method(name: str, owner: str) -> bool:
    return name.startswith(f"{owner}.") and "." not in name[len(owner) + 1 :]


def _takes_from_part(facts: FunctionFacts) -> bool:
    """`for weight in self.encoder.parameters(): weight.requires_grad = False`, `self.encoder.requires_grad_(False)`"""
    for loop in facts.loops:
        form = loop.iterable
        if not isinstance(form, tuple) or form[0] != "call" or not _is_part(form[1]):
            continue
        if any(_OFF in facts.binds.get(f"{weight}.requires_grad", ()) for weight in loop.targets):
            return True
        if any(
            call.func == f"{weight}.requires_grad_" and _OFF in call.args
            for call in facts.calls
            for weight in loop.targets
        ):
            return True
    return any(
        isinstance(call.func, str)
        and call.func.startswith("self.")
        and call.func.endswith(".requires_grad_")
        and call.func.count(".") > 1
        and _OFF in call.args
        for call in facts.calls
    )


def _is_part(func: object) -> bool:
    """`self.encoder.parameters`; not `self.parameters`, which are all."""
    if not isinstance(func, str) or not func.startswith("self."):
        return False
    return func.rpartition(".")[2] in PARAMETER_ITERATORS and func.count(".") > 1
