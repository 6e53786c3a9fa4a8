"""Whether the device has work queued where a function begins or an iteration does: followed through calls."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perflint.api import (
    FUNCTION,
    INSTANCE,
    CallFacts,
    Context,
    Edge,
    Effect,
    FunctionFacts,
    Heat,
    Hop,
    Ref,
    Scope,
    callee_name,
    pattern,
)

from .callees import last_of


class Last(enum.Enum):
    """What a piece of code does last to the queue: waits until it is empty, or puts work into it."""

    WAIT = "wait"
    WORK = "work"


class _Event(NamedTuple):
    """A call, or a read of a value (`call` is None)."""

    line: int
    column: int
    context: int
    call: CallFacts | None
    text: str


#: Calls that queue a good part of a step's work, and names that models go by.
_WORK = frozenset("backward manual_backward step grad forward generate compute_loss".split())
_MODELS = frozenset("model net network module generator discriminator encoder decoder criterion loss_fn".split())
#: What takes the steps that queue work, unlike schedules, environments and bars of progress.
_OPTIMIZERS = pattern(r"(?i)opt|scaler|engine")
_READERS = frozenset({"item", "tolist", "cpu", "numpy"})
_DEPTH = 4
_WAYS = 4

_Found = tuple[Last, Hop]


def emptied_by(node: ast.AST, ctx: Context) -> Hop | None:
    """The read that has emptied the queue when `node` runs, with no work to speak of queued since: before it, at the
    end of the turn before, or before the call that leads here. None where work is queued, or nothing is known.
    """
    scope, place = ctx.scope(node), (node.lineno, node.col_offset)  # type: ignore[attr-defined]
    # What is called with it runs behind it, though it begins before.
    around = (outer for outer in ctx.tree.ancestors(node) if isinstance(outer, ast.Call))
    later = frozenset((outer.lineno, outer.col_offset) for outer in around)
    found = _before(scope, place, ctx.context(node), ctx, _DEPTH, later, _on_some_turns(node, ctx))
    return found[1] if found is not None and found[0] is Last.WAIT else None


def _on_some_turns(node: ast.AST, ctx: Context) -> frozenset[tuple[int, int]]:
    """Where the function around reads a value under a test that does not decide on `node` as well."""
    around = set(map(id, ctx.tree.ancestors(node)))
    return frozenset(
        (part.lineno, part.col_offset)
        for part in ctx.walk(ctx.tree.scope_of(node))
        if isinstance(part, ast.Call) and callee_name(part) in _READERS and _is_thinned(part, around, ctx)
    )


def _is_thinned(read: ast.Call, around: set[int], ctx: Context) -> bool:
    for outer in ctx.tree.ancestors(read):
        if id(outer) in around:
            return False
        if isinstance(outer, (ast.If, ast.IfExp, ast.ExceptHandler)):
            return True
    return False


def is_read_next(node: ast.AST, ctx: Context) -> bool:
    """Whether the host reads a value behind `node` before more work is queued: then it waits there in any case."""
    scope, place = ctx.scope(node), (node.lineno, node.col_offset)  # type: ignore[attr-defined]
    around = (outer for outer in ctx.tree.ancestors(node) if isinstance(outer, ast.Call))
    later = frozenset((outer.lineno, outer.col_offset) for outer in around)
    facts = ctx.program.function(scope)
    always = set(_chain(facts, ctx.context(node)))
    loops = facts.loops_around(ctx.context(node))[:1]
    events = [item for item in _events(scope, ctx) if _runs_with(item, facts, always)]
    events = [item for item in events if set(loops) <= set(facts.loops_around(item.context))]
    around_it = [item for item in events if (item.line, item.column) in later]
    behind = [item for item in events if (item.line, item.column) > place]
    found = _last(reversed([*around_it, *behind]), scope, ctx, _DEPTH)
    return found is not None and found[0] is Last.WAIT


def does_work_between(first: ast.AST, second: ast.AST, ctx: Context) -> bool:
    """Whether something that stands between two nodes of a function puts work into the queue, or waits for it."""
    scope = ctx.scope(first)
    start = (first.end_lineno, first.end_col_offset)  # type: ignore[attr-defined]
    stop = (second.lineno, second.col_offset)  # type: ignore[attr-defined]
    between = [item for item in _events(scope, ctx) if start <= (item.line, item.column) < stop]
    return _last(between, scope, ctx, _DEPTH) is not None


class _Known(NamedTuple):
    """What one file's questions have found out, for those that follow."""

    events: dict[Scope, list[_Event]]
    last: dict[tuple[Scope, int], Last | None]


def _known(_: ast.Module, __: Context) -> _Known:
    return _Known({}, {})


def _events(scope: Scope, ctx: Context) -> list[_Event]:
    known = ctx.once(_known, ctx.tree.module).events
    if scope not in known:
        known[scope] = _events_of(ctx.program.function(scope))
    return known[scope]


def _events_of(facts: FunctionFacts) -> list[_Event]:
    found = [_Event(call.line, call.column, call.context, call, f"{last_of(call.func)}()") for call in facts.calls]
    found += [
        _Event(fact.line, fact.column, facts.context_at(fact.line, fact.column), None, f"{fact.name}.{fact.detail}()")
        for fact in facts.does
        if fact.kind == "reads"
    ]
    return sorted(found, key=lambda item: (item.line, item.column))


def _before(
    scope: Scope,
    place: tuple[int, int],
    context: int,
    ctx: Context,
    depth: int,
    later: frozenset[tuple[int, int]] = frozenset(),
    left_out: frozenset[tuple[int, int]] = frozenset(),
) -> _Found | None:
    """What was done last to the queue before a place in a function."""
    facts = ctx.program.function(scope)
    always = set(_chain(facts, context))
    events = [item for item in _events(scope, ctx) if _runs_with(item, facts, always)]
    events = [item for item in events if item.call is not None or (item.line, item.column) not in left_out]
    before = [item for item in events if (item.line, item.column) < place and (item.line, item.column) not in later]
    for loop in facts.loops_around(context):
        inside = [item for item in events if loop in facts.loops_around(item.context)]
        here = [item for item in before if item in inside]
        # Round the loop: what stands behind the place ran in the turn before, the call itself included.
        found = _last([*(item for item in inside if item not in here), *here], scope, ctx, depth)
        if found is not None:
            return found
        before = [item for item in before if item not in here]
    found = _last(before, scope, ctx, depth)
    if found is not None or depth == 0:
        return found
    ways = _ways_in(scope, ctx)
    each = [_before_call(edge, ctx, depth - 1) for edge in ways]
    is_empty = bool(each) and all(item is not None and item[0] is Last.WAIT for item in each)
    return each[0] if is_empty or len(each) == 1 else None


def _before_call(edge: Edge, ctx: Context, depth: int) -> _Found | None:
    call = ctx.program.function(edge.caller).calls[edge.index]
    return _before(edge.caller, (call.line, call.column), call.context, ctx, depth)


def _ways_in(scope: Scope, ctx: Context) -> list[Edge]:
    """The calls that train by a function; where none does, the one that makes it hot."""
    hottest = ctx.program.hottest_call(scope)
    edges = [edge for edge in ctx.program.callers(scope) if ctx.program.role(edge.caller, edge.context) == "train"]
    if not edges and hottest is not None and hottest.index >= 0:
        edges = [hottest]
    return [edge for edge in edges if ctx.program.heat_at(edge.caller, edge.context) >= Heat.STEP][:_WAYS]


def serves_training(scope: Scope, ctx: Context) -> bool:
    """Whether some way into a function, on every step, leads through a loop or a step that trains."""
    seen, waiting = {scope}, [scope]
    while waiting:
        now = waiting.pop()
        if ctx.program.role(now) == "train":
            return True
        for edge in ctx.program.callers(now):
            if ctx.program.heat_at(edge.caller, edge.context) < Heat.STEP:
                continue
            if ctx.program.role(edge.caller, edge.context) == "train":
                return True
            if edge.caller not in seen:
                seen.add(edge.caller)
                waiting.append(edge.caller)
    return False


def _chain(facts: FunctionFacts, context: int) -> Iterator[int]:
    while context >= 0:
        yield context
        context = facts.contexts[context].parent


def _runs_with(item: _Event, facts: FunctionFacts, always: set[int]) -> bool:
    """Whether no guard thins an event that does not thin the place as well."""
    return all(
        index in always or facts.contexts[index].kind not in ("guard", "switch", "asked")
        for index in _chain(facts, item.context)
    )


def _last(events: Iterable[_Event], scope: Scope, ctx: Context, depth: int) -> _Found | None:
    for item in reversed(list(events)):
        done = Last.WAIT if item.call is None else _done_by(item.call, scope, ctx, depth)
        if done is not None:
            return done, Hop(scope.path, item.line, item.text)
    return None


def _done_by(call: CallFacts, scope: Scope, ctx: Context, depth: int) -> Last | None:
    """What a call does last to the queue; None where it does nothing to speak of, or that cannot be seen."""
    name = last_of(call.func)
    if name == "synchronize":
        return Last.WAIT
    refs = ctx.program.refs(call.func, scope)
    functions = [ref for ref in refs if ref.kind == FUNCTION and ref.path]
    if functions and depth:
        inner = {_of_function(ref, ctx, depth - 1) for ref in functions}
        if len(inner) == 1 and None not in inner:
            return inner.pop()
        return Last.WORK if name in _WORK or Last.WORK in inner else None
    if any(ref.kind == INSTANCE and ctx.program.is_module(Ref("class", ref.path, ref.name)) for ref in refs):
        return Last.WORK
    if name == "step" and not _OPTIMIZERS.search(str(call.func)):
        return None
    return Last.WORK if name in _WORK or (not functions and name in _MODELS) else None


def _of_function(ref: Ref, ctx: Context, depth: int) -> Last | None:
    """What a function does last. Where it is not known what becomes of its reads, it may be asked for a module's."""
    scope = Scope(ref.path, ref.name)
    known = ctx.once(_known, ctx.tree.module).last
    if (scope, depth) not in known:
        known[scope, depth] = None
        known[scope, depth] = _last_of_function(scope, ctx, depth)
    return known[scope, depth]


def _last_of_function(scope: Scope, ctx: Context, depth: int) -> Last | None:
    facts = ctx.program.function(scope)
    if not ctx.program.effects(scope).does(Effect.READS, Effect.WAITS, Effect.FORWARD, Effect.BACKWARD, Effect.STEPS):
        return None
    found = _last([item for item in _events(scope, ctx) if _runs_with(item, facts, set())], scope, ctx, depth)
    return None if found is None else found[0]
