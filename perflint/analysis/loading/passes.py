"""Whether a loader is run through again and again: which loops over batches are over it, and what is around them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.epochs import LoopHeat
from perflint.analysis.frequency.sources import names_in
from perflint.analysis.frequency.trip_count import turns_told
from perflint.analysis.loading.listed_loaders import listed_as
from perflint.analysis.loading.loaders import purpose
from perflint.analysis.names.refs import FUNCTION, INSTANCE, Scope
from perflint.finding import Heat
from perflint.ir.summary import CallFacts, FunctionFacts

_LoopPlace = tuple[Scope, int]
#: Calls that a loader is followed through: to who trains, and to who runs an epoch for that.
_HOPS = 2


class Run(NamedTuple):
    """A loop over a loader, and whether something around it starts it again and again."""

    scope: Scope
    loop: int
    again: bool


def is_repeated(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the loader that `call` builds is run through once per epoch.

    Where the loops over it are in sight (by its name, handed to a function or back from one) they decide; otherwise
    whether the program does so with loaders of that purpose, or a framework would.
    """
    places = _places(ctx)
    name, scope = _name_of(call, ctx), ctx.scope(call)
    if name:
        seen = [run.again for run in _seen(name, scope, ctx, places, depth=2)]
        if not seen and not _leaves(name, ctx.facts(call)):
            seen = [_comes_again(place, ctx) for place in places if place[0] == scope] or [False]
        if seen:
            return any(seen)
    elif any(isinstance(outer, (ast.For, ast.comprehension)) for outer in ctx.tree.ancestors(call)):
        return False  # `for batch in DataLoader(...)`
    role = purpose(call, ctx)
    near = _paths_around(ctx) if not role else frozenset()
    for place in places:
        if role and (ctx.program.roots.loops[place].role == "train") != (role == "train"):
            continue
        if near and place[0].path not in near:
            continue  # another program's loop says nothing of a loader without a purpose
        if _comes_again(place, ctx):
            return True
    return any(root.role == "train" for root in ctx.program.roots.functions.values())


def _paths_around(ctx: FileFacts) -> frozenset[str]:
    """The file itself, those that it calls and those that call it."""
    edges = [
        edge
        for name in ctx.summary.functions
        for scope in (Scope(ctx.path, name),)
        for edge in (*ctx.program.graph.outgoing.get(scope, ()), *ctx.program.callers(scope))
    ]
    return frozenset((ctx.path, *(path for edge in edges for path in (edge.callee.path, edge.caller.path))))


def runs(call: ast.Call, ctx: FileFacts) -> list[Run]:
    """The loops over the loader that `call` builds, as far as they are in sight: none says nothing."""
    name, places = _name_of(call, ctx), _places(ctx)
    if name:
        return list(_seen(name, ctx.scope(call), ctx, places, depth=2))
    outer = next((item for item in ctx.tree.ancestors(call) if isinstance(item, (ast.For, ast.comprehension))), None)
    if outer is None:
        return []
    # A part of a comprehension has no line of its own.
    line = getattr(ctx.tree.parent(outer) if isinstance(outer, ast.comprehension) else outer, "lineno", 0)
    here = ((place, ctx.program.function(place[0]).loops[place[1]]) for place in places if place[0] == ctx.scope(call))
    return [Run(*place, _comes_again(place, ctx)) for place, loop in here if loop.line == line]


def use(run: Run, ctx: FileFacts) -> str:
    """What a loop does with the batches: "train", "hand on" in a generator, "look" otherwise."""
    facts, loops = ctx.program.function(run.scope), ctx.program.roots.loops
    if facts.is_generator:
        return "hand on"
    for index, inner in enumerate(facts.loops):
        if index == run.loop or (inner.context >= 0 and _is_within(facts, inner.context, run.loop)):
            known = loops.get((run.scope, index))
            if known is not None and known.role == "train":
                return "train"
    return "look"


def most_passes(run: Run, ctx: FileFacts) -> int | None:
    """How often a loop over a loader is started by default: as often as the loops around it turn, in its function and
    in those that call it. None where nobody says.
    """
    counts = [_passes(run.scope, ctx.program.function(run.scope).loops[run.loop].context, ctx, depth=3)]
    return max((count for count in counts if count is not None), default=None)


def _passes(scope: Scope, context: int, ctx: FileFacts, depth: int) -> int | None:
    facts, found = ctx.program.function(scope), 1
    for index in facts.loops_around(context):
        turns = turns_told(facts.loops[index], scope.path, ctx)
        if turns is None:
            return None
        found *= turns
    callers = [edge for edge in ctx.program.callers(scope) if edge.index >= 0]
    if not depth or not callers:
        return found if found > 1 else None
    outside = [_passes(edge.caller, edge.context, ctx, depth - 1) for edge in callers]
    known = [count for count in outside if count is not None]
    return found * max(known) if len(known) == len(outside) else found if found > 1 and not known else None


def calls_in(run: Run, ctx: FileFacts) -> list[CallFacts]:
    """The calls in the body of a loop."""
    facts = ctx.program.function(run.scope)
    return [call for call in facts.calls if call.context >= 0 and _is_within(facts, call.context, run.loop)]


def batch_names(run: Run, ctx: FileFacts) -> frozenset[str]:
    """The names that a loop gives to a batch or to parts of it first: `x` of `x, y = batch`, too."""
    facts = ctx.program.function(run.scope)
    found = set(facts.loops[run.loop].targets)
    for call in calls_in(run, ctx):
        if call.func == "next" or _taken_from(call.func):
            made = ("call", call.func, call.args, call.keywords)
            found.update(name for name, values in facts.binds.items() if _is_part(values[0], made))
    while True:
        more = {
            name
            for name, values in facts.binds.items()
            if name not in found and any(_is_part(values[0], part) for part in found)
        }
        if not more:
            return frozenset(found)
        found |= more


def _is_part(value: object, whole: object) -> bool:
    while isinstance(value, tuple) and value[0] == "item" and value != whole:
        value = value[1]
    return value == whole


def called_in(run: Run, ctx: FileFacts) -> set[Scope]:
    """The project's functions that the body of a loop calls."""
    facts, edges = ctx.program.function(run.scope), ctx.program.graph.outgoing.get(run.scope, ())
    return {edge.callee for edge in edges if edge.context >= 0 and _is_within(facts, edge.context, run.loop)}


def is_hook(call: ast.Call, ctx: FileFacts, *names: str) -> bool:
    """Whether a framework asks for the loader, by one of these methods, and runs it every epoch."""
    function = ctx.tree.function_of(call)
    return function is not None and function.name in names


def _places(ctx: FileFacts) -> list[_LoopPlace]:
    return [place for place, loop in ctx.program.roots.loops.items() if _is_over_batches(loop)]


def _is_over_batches(loop: LoopHeat) -> bool:
    return loop.heat >= Heat.STEP and loop.role in ("train", "batches")


def _name_of(call: ast.Call, ctx: FileFacts) -> str:
    """The name the loader is bound to, or that of the table it is one of; "return" for one that is handed back."""
    parent = ctx.tree.parent(call)
    if isinstance(parent, ast.DictComp) and parent.value is call:
        parent = ctx.tree.parent(parent)
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], (ast.Name, ast.Attribute)):
        return ctx.text(parent.targets[0])
    return "return" if isinstance(parent, ast.Return) else ""


def _leaves(name: str, facts: FunctionFacts) -> bool:
    """Whether a loader goes where it is not followed, to its users: to an attribute, a caller, a container. What it is
    passed to without a loop over it coming to light is taken to run through it once.
    """
    if "." in name or name == "return" or facts.is_generator:
        return True
    held = (value for values in facts.binds.values() for value in values if not _is_made(value))
    return any(_holds(value, name) for value in (*facts.returns, *held))


def _is_made(value: object) -> TypeGuard[tuple[str, object, tuple[object, ...], object]]:
    return isinstance(value, tuple) and value[:1] == ("call",)


def _holds(value: object, name: str) -> bool:
    if isinstance(value, tuple) and value and value[0] in ("seq", "map"):
        return name in value[1] or any(isinstance(item, tuple) and item[1:] == (name,) for item in value[1])
    if isinstance(value, tuple) and value and value[0] == "call":
        return name in value[2] or any(item == name for _, item in value[3])
    return value == name


def _seen(name: str, scope: Scope, ctx: FileFacts, places: list[_LoopPlace], depth: int) -> Iterator[Run]:
    """The loops over the loader called `name` in `scope`."""
    program, facts = ctx.program, ctx.program.function(scope)
    shared = scope.function == "<module>" or "." in name
    word = name.rpartition(".")[2]
    for place in places:
        where, index = place
        is_inside = where.path == scope.path and (shared or where.function.startswith(f"{scope.function}.<locals>."))
        if where == scope or (is_inside and not _is_own(word, program.function(where))):
            if _goes_over(program.function(where), index, word):
                yield Run(*place, _comes_again(place, ctx))
    for around, item in listed_as(name, facts):
        for place in places:
            inside = place[0] == scope and _is_within(facts, facts.loops[place[1]].context, around)
            if inside and _goes_over(facts, place[1], item):
                yield Run(*place, _comes_again(place, ctx))
    yield from _taken_by_next(name, scope, facts, ctx, places)
    yield from _passed(name, scope, ctx, places, _HOPS)
    if depth > 0 and scope.function != "<module>":
        yield from _handed_back(name, scope, facts, ctx, places, depth)


def _passed(
    name: str, scope: Scope, ctx: FileFacts, places: list[_LoopPlace], hops: int, *, again: bool = False
) -> Iterator[Run]:
    """The loops of the functions that a loader is handed to."""
    program = ctx.program
    for edge in program.graph.outgoing.get(scope, ()) if hops else ():
        callee = program.function(edge.callee)
        for param in callee.params:
            given = param.name.lstrip("=*")
            if program.argument(edge, given) == name:
                anew = again or program.heat_at(scope, edge.context) >= Heat.EPOCH
                for place in places:
                    if place[0] == edge.callee and _goes_over(callee, place[1], given):
                        yield Run(*place, anew or _comes_again(place, ctx, outside=False))
                yield from _kept(edge.callee, given, ctx, places, again=anew)
                yield from _passed(given, edge.callee, ctx, places, hops - 1, again=anew)


def _kept(made: Scope, name: str, ctx: FileFacts, places: list[_LoopPlace], *, again: bool) -> Iterator[Run]:
    """The loops of an object over a loader that its constructor `made` is given, and keeps under a name of its own."""
    owner, _, method = made.function.rpartition(".")
    if method != "__init__":
        return
    facts = ctx.program.summaries[made.path].classes.get(owner)
    kept = facts.attributes.items() if facts is not None else ()
    words = [word for word, values in kept if any(value == name and where == made.function for value, where in values)]
    for place in places if words else ():
        where, index = place
        holder = _holder_of(words, ctx.program.function(where), index)
        if holder == "self":
            is_own = where.path == made.path and where.function.rpartition(".")[0] == owner
        else:
            refs = ctx.program.refs(holder, where) if holder else ()
            is_own = any(ref[:3] == (INSTANCE, made.path, owner) for ref in refs)
        if is_own:
            yield Run(*place, again or _comes_again(place, ctx))


def _holder_of(words: list[str], facts: FunctionFacts, loop: int) -> str:
    """`session` of a loop over `session.loader`, or over a wrapper of it."""
    wrapped = (value[2][0] for values in facts.binds.values() for value in values if _is_made(value) and value[2])
    texts = [facts.loops[loop].text, *(item for item in wrapped if isinstance(item, str) and "." in item)]
    for word in words:
        if not _goes_over(facts, loop, word):
            continue
        for text in texts:
            found = re.search(rf"\b(\w+)\.{re.escape(word)}\b", text)
            if found:
                return found[1]
    return ""


def _taken_by_next(
    name: str, scope: Scope, facts: FunctionFacts, ctx: FileFacts, places: list[_LoopPlace]
) -> Iterator[Run]:
    """The loops that take one batch after the other of an iterator of the loader: `batches = iter(loader)`, and then
    `next(batches)`. One that makes the iterator anew goes through the loader again.
    """
    iterators = {
        bound
        for bound, values in facts.binds.items()
        for value in values
        if isinstance(value, tuple) and value[0] == "call" and value[2][:1] == (name,)
    }
    if not iterators:
        return
    made_in = {
        loop
        for call in facts.calls
        if call.func == "iter" and call.args[:1] == (name,)
        for loop in facts.loops_around(call.context)
    }
    found: dict[int, None] = {}
    for call in facts.calls:
        taken = call.args[0] if call.func == "next" and call.args else _taken_from(call.func)
        if taken in iterators:
            found.update(dict.fromkeys(facts.loops_around(call.context)[:1]))
    for index in found:
        if (scope, index) in places:
            yield Run(scope, index, index in made_in or _comes_again((scope, index), ctx))


def _taken_from(func: object) -> str:
    """`batches` of `batches.__next__`, and of `batches.next` as iterators of loaders once had it."""
    iterator, _, name = func.rpartition(".") if isinstance(func, str) else ("", "", "")
    return iterator if name in ("next", "__next__") else ""


def _handed_back(
    name: str, scope: Scope, facts: FunctionFacts, ctx: FileFacts, places: list[_LoopPlace], depth: int
) -> Iterator[Run]:
    """What callers do with a loader that a factory returns, under the name they give it."""
    program = ctx.program
    for caller in {edge.caller for edge in program.callers(scope)}:
        for bound, values in program.function(caller).binds.items():
            for value in values:
                index = None
                if isinstance(value, tuple) and value[0] == "item":
                    _, value, index = value  # noqa: PLW2901 - the call whose result is unpacked
                if not (isinstance(value, tuple) and value[0] == "call") or not _returns(name, index, facts):
                    continue
                if any(ref[:3] == (FUNCTION, *scope) for ref in program.refs(value[1], caller)):
                    yield from _seen(bound, caller, ctx, places, depth - 1)


def _returns(name: str, index: object, facts: FunctionFacts) -> bool:
    if index is None:
        return name == "return" or name in facts.returns
    if not isinstance(index, int):
        return False
    return any(
        isinstance(value, tuple) and value[0] == "seq" and name in value[1][index : index + 1]
        for value in facts.returns
    )


def _is_own(name: str, facts: FunctionFacts) -> bool:
    """Whether a function has a parameter or variable of that name, which hides the module's."""
    return name in facts.binds or any(param.name.lstrip("=*") == name for param in facts.params)


def _goes_over(facts: FunctionFacts, loop: int, word: str) -> bool:
    """Whether a loop of a function is over what goes by a name, or over a wrapper of it: `bar = tqdm(self.loader)`."""
    text = facts.loops[loop].text
    return (
        _mentions(text, word)
        or word in _last_names(names_in(facts.loops[loop].iterable))
        or any(
            _mentions(text, name)
            for name, values in facts.binds.items()
            for value in values
            if isinstance(value, tuple) and value[0] == "call" and _last_names(value[2][:1]) == {word}
        )
    )


def _last_names(values: Iterable[object]) -> set[str]:
    return {value.rpartition(".")[2] for value in values if isinstance(value, str)}


def _mentions(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text) is not None


def _comes_again(place: _LoopPlace, ctx: FileFacts, *, outside: bool = True) -> bool:
    """Whether something around a loop over batches starts it again; a loop that hands it one loader after the other,
    or that makes the loader, does not.
    """
    scope, index = place
    facts = ctx.program.function(scope)
    inner = facts.loops[index]
    context = inner.context
    # What is gone through, without the names for a batch: `x = x.to(device)` makes no loader.
    over = inner.text.partition(" in ")[2] or inner.text
    while context >= 0:
        item = facts.contexts[context]
        if item.kind == "loop" and not _hands_on(facts, int(item.detail), over):
            return True
        context = item.parent
    return outside and ctx.program.heat(scope) >= Heat.EPOCH


def _hands_on(facts: FunctionFacts, outer: int, text: str) -> bool:
    loop = facts.loops[outer]
    if any(_mentions(text, name) for name in loop.targets):
        return True
    # `for split in splits: loader = make(split); for batch in loader: ...`
    inside = {item for item in range(len(facts.contexts)) if _is_within(facts, item, outer)}
    made = {name for name, values in facts.binds.items() if _mentions(text, name.rpartition(".")[2]) and values}
    return any(
        call.context in inside and any(_is_call(value, call.func) for name in made for value in facts.binds[name])
        for call in facts.calls
    )


def _is_within(facts: FunctionFacts, context: int, loop: int) -> bool:
    while context >= 0:
        item = facts.contexts[context]
        if item.kind == "loop" and int(item.detail) == loop:
            return True
        context = item.parent
    return False


def _is_call(value: object, func: object) -> bool:
    return isinstance(value, tuple) and value[0] == "call" and value[1] == func


def only_looks(call: ast.Call, loops: list[Run], ctx: FileFacts) -> bool:
    """Whether a loader is for evaluation, by its name or since none of the loops over it trains."""
    return purpose(call, ctx) == "eval" or (bool(loops) and all(use(loop, ctx) == "look" for loop in loops))
