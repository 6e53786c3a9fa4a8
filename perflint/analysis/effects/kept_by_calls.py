"""What a call hands to a function of the project that keeps it beyond the step: in a list, a sum, an attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.effects.summary import Kept
from perflint.analysis.effects.wrappers import GROWING
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.ir.calls import argument
from perflint.syntax.walk import walk


def kept_by_call(call: ast.Call, loop: ast.stmt, ctx: FileFacts) -> Iterator[tuple[ast.Name, Kept]]:
    """The names that a call in a loop hands to what keeps them for longer than one iteration."""
    index = ctx.call_index(call)
    if index is None:
        return
    edges = [edge for edge in ctx.program.graph.outgoing.get(ctx.scope(call), ()) if edge.index == index]
    if len(edges) != 1 or edges[0].callback:
        return
    callee = edges[0].callee
    for kept in ctx.program.effects(callee).keeps:
        if kept.how in GROWING and not _is_bounded(kept, ctx) and _outlives(kept.into, call, callee, loop, ctx):
            value = _argument(call, callee, kept.param, ctx)
            for name in _whole(value) if value is not None else ():
                yield name, kept


def _argument(call: ast.Call, callee: Scope, name: str, ctx: FileFacts) -> ast.expr | None:
    facts = ctx.program.function(callee)
    names = [param.name.lstrip("=") for param in facts.params if not param.name.startswith("*")]
    if facts.in_class and "staticmethod" not in facts.decorators:
        names = names[1:]
    return argument(call, names.index(name), name) if name in names else None


def _whole(value: ast.expr) -> Iterator[ast.Name]:
    """The names of which a value holds what they hold: `{"aux": aux}`, `(loss, n)`, `loss * n`."""
    if isinstance(value, ast.Name):
        yield value
    elif isinstance(value, ast.Dict):
        for item in value.values:
            yield from _whole(item)
    elif isinstance(value, (ast.Tuple, ast.List)):
        for item in value.elts:
            yield from _whole(item)
    elif isinstance(value, ast.BinOp):
        yield from _whole(value.left)
        yield from _whole(value.right)


def _outlives(into: str, call: ast.Call, callee: Scope, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether what something is put into is there before the iteration and after it."""
    if into.startswith("<"):
        return True
    first = into.partition(".")[0]
    if first in ("self", "cls"):
        owner: ast.expr | None = call.func.value if isinstance(call.func, ast.Attribute) else None
    else:
        owner = _argument(call, callee, first, ctx)
    while isinstance(owner, (ast.Attribute, ast.Subscript)):
        owner = owner.value
    if not isinstance(owner, ast.Name):
        return False
    stored = [part for part in ctx.tree.named(owner.id, loop) if isinstance(part.ctx, ast.Store)]
    return not stored or {id(part) for part in walk(loop)}.isdisjoint(map(id, stored))


def _is_bounded(kept: Kept, ctx: FileFacts) -> bool:
    """Whether it is a `deque(maxlen=n)` that keeps the last few."""
    name = kept.into.strip("<>").rpartition(".")[2]
    classes = ctx.program.summaries[kept.path].classes.values()
    values = [value for cls in classes for value, _ in cls.attributes.get(name, ())]
    return any(
        isinstance(value, tuple) and value[0] == "call" and any(key == "maxlen" for key, _ in value[3])
        for value in values
    )
