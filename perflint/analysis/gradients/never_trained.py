"""Networks that take part in a backward pass although nothing ever trains them, and that nobody has frozen."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perflint.analysis.elsewhere import class_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.frozen import is_switched
from perflint.analysis.gradients.graph_of_loss import goes_through, graph_behind
from perflint.analysis.gradients.module_sizes import NETWORKS, holds_weights
from perflint.analysis.names.refs import CLASS, Ref
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import keyword
from perflint.syntax.walk import walk

#: What may be done with a network without training it or handing it on.
_HARMLESS = frozenset(
    "eval train to cuda cpu half float double load_state_dict state_dict training forward apply children".split()
)
#: What a class names that sees to gradients itself.
_SEES_TO_GRADIENTS = frozenset("requires_grad requires_grad_ no_grad inference_mode detach set_grad_enabled".split())


class Untrained(NamedTuple):
    """A forward of a network that nothing trains, and the statement that makes it."""

    forward: ast.Call
    made: ast.stmt


def never_trained(backward: ast.Call, trained: set[str], ctx: FileFacts) -> list[Untrained]:
    """The networks that one backward pass computes weight gradients of, after which the modules `trained` are stepped.

    Every use of such a network is in sight, so that no optimizer can hold its parameters.
    """
    loss = (
        backward.args[0] if backward.args else backward.func.value if isinstance(backward.func, ast.Attribute) else None
    )
    if loss is None or keyword(backward, "inputs") is not None or not goes_through(loss, trained, ctx):
        return []
    found: dict[str, Untrained] = {}
    for part in graph_behind(loss, ctx):
        if (
            not isinstance(part, ast.Call)
            or ctx.text(part.func) in trained
            or ctx.kind(part.func).tag is not Tag.MODULE
        ):
            continue
        if _has_open_weights(part, ctx) and not is_switched(part, ctx):
            made = _made(part.func, ctx)
            if made is not None:
                first = found.get(ctx.text(part.func))
                if first is None or part.lineno < first.forward.lineno:
                    found[ctx.text(part.func)] = Untrained(part, made)
    return sorted(found.values(), key=lambda item: item.forward.lineno)


def _has_open_weights(forward: ast.Call, ctx: FileFacts) -> bool:
    """Whether the class is a plain module of the project that has weights and does not switch their gradients, or a
    known network.
    """
    kind = ctx.kind(forward.func)
    if not kind.path:
        return kind.qualified.startswith(NETWORKS)
    summary = ctx.program.summaries.get(kind.path)
    facts = summary.classes.get(kind.qualified) if summary is not None else None
    if facts is None or [last_of(base) for base in facts.bases] != ["Module"]:
        return False
    if not holds_weights(kind.path, kind.qualified, ctx):
        return False
    nodes = class_of(Ref(CLASS, kind.path, kind.qualified), ctx)
    return bool(nodes) and not any(_SEES_TO_GRADIENTS & set(names_in(node)) for node, _ in nodes)


def _made(func: ast.expr, ctx: FileFacts) -> ast.stmt | None:
    """The statement that makes a network of which every use is known to leave its parameters alone."""
    if isinstance(func, ast.Name):
        made = ctx.inference.flow.definitions(func)
        if not made or not all(isinstance(item.node, ast.Assign) and not item.path for item in made):
            return None
        scope = ctx.tree.scope_of(made[0].node)
        uses: Sequence[ast.expr] = ctx.inference.flow.uses(scope, func.id)
        stores = [part for part in ctx.walk(scope) if isinstance(part, ast.Assign) and _binds(part, func.id, ctx)]
    elif isinstance(func, ast.Attribute) and (around := _class_around(func, ctx)) is not None and not around.bases:
        if ctx.text(func) != f"self.{func.attr}" or _is_known_outside(func.attr, around, ctx):
            return None
        parts = [part for part in walk(around) if isinstance(part, ast.Attribute) and part.attr == func.attr]
        uses = [part for part in parts if isinstance(part.ctx, ast.Load)]
        stores = [part for part in walk(around) if isinstance(part, ast.Assign) and _binds(part, ctx.text(func), ctx)]
    else:
        return None
    makers = [store for store in stores if ctx.text(func) not in set(_texts(store.value, ctx))]
    harmless = all(_is_harmless(use, ctx) for use in uses)
    return makers[0] if harmless and len(makers) == 1 else None


def _class_around(func: ast.expr, ctx: FileFacts) -> ast.ClassDef | None:
    function = ctx.tree.function_of(func)
    return ctx.tree.class_of(function) if function is not None else None


def _binds(statement: ast.Assign, text: str, ctx: FileFacts) -> bool:
    return [ctx.text(target) for target in statement.targets] == [text]


def _texts(value: ast.expr, ctx: FileFacts) -> Iterator[str]:
    return (ctx.text(part) for part in walk(value) if isinstance(part, (ast.Name, ast.Attribute)))


def _is_known_outside(attribute: str, around: ast.ClassDef, ctx: FileFacts) -> bool:
    """Whether other classes or files name the attribute."""
    inside = {id(part) for part in walk(around)}
    if any(
        isinstance(part, ast.Attribute) and part.attr == attribute and id(part) not in inside
        for part in walk(ctx.tree.module)
    ):
        return True
    return ctx.program.mentions({attribute}, [path for path in ctx.program.summaries if path != ctx.path])


def _is_harmless(use: ast.expr, ctx: FileFacts) -> bool:
    parent = ctx.tree.parent(use)
    return (isinstance(parent, ast.Call) and parent.func is use) or (
        isinstance(parent, ast.Attribute) and parent.attr in _HARMLESS
    )
