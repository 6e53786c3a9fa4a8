"""What an optimizer steps: a model of all steps, a copy of one step, or some tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: How far a loss is looked for.
_STEPS_DOWN = 2
#: `True`, as summaries have it.
_ON = ("const", "bool", True)


def steps_no_model(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether what is optimized are some tensors, `Adam([delta], lr=0.1)`, or a copy of a model that each turn makes,
    or the backward is walked back again, which compiled code does not allow.
    """
    around = ctx.tree.function_of(node) or ctx.tree.module
    made = ctx.once(optimizers_in, around)
    if made and all(part.args and _is_some_tensors(part.args[0]) for part in made):
        return True
    if any(_is_of_a_copy(part, node) for part in ctx.once(optimizers_in, node)):
        return True
    return ctx.once(_is_walked_twice, around)


def _is_walked_twice(function: ast.AST, ctx: FileFacts) -> bool:
    body = function.body  # type: ignore[attr-defined]
    return any(
        ("create_graph", _ON) in call.keywords
        for scope in _run_by(ctx.scope(body[0]), ctx)
        for call in ctx.program.function(scope).calls
    )


def optimizers_in(region: ast.AST, ctx: FileFacts) -> list[ast.Call]:
    """The calls in a region that make an optimizer of torch."""
    return [part for part in walk(region) if isinstance(part, ast.Call) and _makes_optimizer(part, ctx)]


def _run_by(function: Scope, ctx: FileFacts) -> Iterator[Scope]:
    """A function, what it calls, and what that calls: where the loss is made and walked back."""
    scopes = {function}
    for _ in range(_STEPS_DOWN):
        yield from scopes
        scopes = {edge.callee for scope in scopes for edge in ctx.program.graph.outgoing.get(scope, ())}
    yield from scopes


def _makes_optimizer(call: ast.Call, ctx: FileFacts) -> bool:
    target = ctx.target(call.func) or ""
    return target.startswith("torch.optim.") and ".lr_scheduler." not in target and callee_name(call)[:1].isupper()


def _is_of_a_copy(made: ast.Call, loop: ast.AST) -> bool:
    """Whether an optimizer is for what the turn made: not the model of all turns, with another rate for each epoch."""
    bound = {part.id for part in walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return bool(made.args) and not bound.isdisjoint(names_in(made.args[0]))


def _is_some_tensors(given: ast.expr) -> bool:
    return isinstance(given, ast.List) and all(isinstance(item, (ast.Name, ast.Attribute)) for item in given.elts)
