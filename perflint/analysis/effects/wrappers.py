"""By effect, the names by which calls of the project's own functions have it: what a rule listens to besides the names
that libraries gave. Found from the few functions that have the effect themselves, up a few calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from perflint.analysis.effects.summary import Effect, Effects
from perflint.analysis.names.refs import Scope
from perflint.finding import Heat
from perflint.ir.callees import last_name
from perflint.ir.own_effects import KEEPS
from perflint.ir.summary import FunctionFacts, Value
from perflint.torch_model import modules
from perflint.torch_model.names import last

if TYPE_CHECKING:
    from perflint.analysis.program import Program

__all__ = ["DISTRIBUTION", "KEEPING", "is_wrapper", "names_by_effect"]

#: The name under which calls that keep what they are given are listened to.
KEEPING = "keeps"
#: The name under which calls of what holds a class of distributions are listened to.
DISTRIBUTION = "distribution"
#: What a library's function with the effect goes by: a file that has none of these words has no such call.
_WORDS: dict[str, tuple[str, ...]] = {
    Effect.WAITS.value: ("synchronize",),
    Effect.MEETS.value: ("barrier", "wait_for_everyone", "monitored_barrier"),
    Effect.EMPTIES.value: ("empty_cache", "release_memory", "clear_device_cache"),
    Effect.COLLECTS.value: ("collect", "release_memory"),
    Effect.GENERATES.value: ("generate",),
}
#: The classes of libraries under whose names calls of classes that derive from them are listened to.
_DERIVED = ("DataParallel", "DataLoader")
#: Calls from a function with the effect up to the one that a rule is shown.
_LEVELS = 2
_MOST_CALLS = 12
#: What only a function does that is there for more than freeing, waiting or meeting.
_MORE = (
    Effect.LAUNCHES, Effect.FORWARD, Effect.BACKWARD, Effect.STEPS, Effect.GENERATES, Effect.UNKNOWN, Effect.FILES,
    Effect.COPIES, Effect.READS, Effect.COMPILES, Effect.DRAWS,
)  # fmt: skip
#: Ways to keep something of every call; an attribute that is set anew forgets the one before.
GROWING = frozenset("append appendleft add extend insert sum item put".split())
#: Those of them that are calls.
_ADDING = GROWING - {"sum", "item"}


def names_by_effect(program: Program) -> dict[str, frozenset[str]]:
    """The names of wrappers of waits and of freeing, of what generates, and of what keeps a parameter of each call."""
    found = {effect: frozenset(_named(program, effect, words)) for effect, words in _WORDS.items()}
    # What keeps something of every step is called on every step itself.
    functions = program.resolver.nesting.functions
    hot = [scope for scope, facts in functions if program.heat(scope) >= Heat.STEP and _keeps(facts)]
    keeping = _upwards(program, hot, _keeps_parameter(program), _called_hot(program))
    found[KEEPING] = frozenset(name for names in keeping for name in names)
    checked = modules.CHECKED_DISTRIBUTIONS
    found[DISTRIBUTION] = (
        frozenset((*_holding(program, modules.DISTRIBUTION_PACKAGES, checked), *_derived(program, checked)))
        if _names_distributions(program)
        else frozenset()
    )
    for base in _DERIVED:
        found[base] = frozenset(_derived(program, (base,))) if program.mentions((base,)) else frozenset()
    return found


def _names_distributions(program: Program) -> bool:
    return any(program.mentions((last(package.rstrip(".")),)) for package in modules.DISTRIBUTION_PACKAGES)


def _derived(program: Program, derived_from: Sequence[str]) -> set[str]:
    """The last names of the project's classes that derive, as written, from a class of one of these names."""
    found: set[str] = set()
    classes = [
        (qualname.rpartition(".")[2], {_last(written) for written in cls.bases})
        for summary in program.summaries.values()
        for qualname, cls in summary.classes.items()
        if cls.bases
    ]
    known = set(derived_from)
    while more := {name for name, bases in classes if name not in found and not bases.isdisjoint(known)}:
        found |= more
        known |= more
    return found


def _holding(program: Program, packages: tuple[str, ...], classes: Sequence[str]) -> Iterator[str]:
    """The names under which functions and objects hold classes of libraries: `def __init__(self, dist=td.Normal)`."""

    def is_one(value: Value, imports: Mapping[str, str]) -> bool:
        written = value if isinstance(value, str) else ""
        head, dot, rest = written.partition(".")
        return last(written) in classes and f"{imports.get(head, '')}{dot}{rest}".startswith(packages)

    for path, summary in program.summaries.items():
        if not program.mentions(classes, (path,)):
            continue
        held: dict[str, set[str]] = {}
        for qualname, facts in summary.functions.items():
            held[qualname] = {item.name.lstrip("*=") for item in facts.params if is_one(item.default, summary.imports)}
            yield from held[qualname]
            yield from (
                name for name, values in facts.binds.items() if any(is_one(item, summary.imports) for item in values)
            )
        for cls in summary.classes.values():
            for name, stored in cls.attributes.items():
                if any(is_one(value, summary.imports) or value in held.get(where, ()) for value, where in stored):
                    yield name


def _last(base: Value) -> str:
    """`DataLoader` of `data.DataLoader` and of `DataLoader[Batch]`."""
    written = base[1] if isinstance(base, tuple) and base[0] == "item" else base
    return written.rpartition(".")[2] if isinstance(written, str) else ""


def is_wrapper(effects: Effects, effect: Effect) -> bool:
    """Whether a function has an effect on every run and does nothing else of weight."""
    return effects.surely(effect) and not effects.does(*_MORE)


def _named(program: Program, effect: str, words: tuple[str, ...]) -> Iterator[str]:
    if not program.mentions(words):
        return
    wanted = Effect(effect)
    seeds = [scope for scope, facts in _functions_naming(program, words) if _calls(facts, words)]

    def has_it(scope: Scope) -> bool:
        if wanted is Effect.GENERATES:
            return program.effects(scope).does(wanted)
        facts = program.function(scope)
        return not facts.loops and len(facts.calls) <= _MOST_CALLS and is_wrapper(program.effects(scope), wanted)

    for names in _upwards(program, seeds, has_it):
        yield from names
    for _, facts in _functions_naming(program, words):
        yield from (name for name, values in facts.binds.items() if any(_is_alias(value, words) for value in values))
    for path, summary in program.summaries.items():
        if program.mentions(words, (path,)):
            for cls in summary.classes.values():
                for name, values in cls.attributes.items():
                    if any(_is_alias(value, words) for value, _ in values):
                        yield name


def _functions_naming(program: Program, words: tuple[str, ...]) -> Iterator[tuple[Scope, FunctionFacts]]:
    framed = [f" {word} " for word in words]
    for path, summary in program.summaries.items():
        text = program.identifiers(path)
        if any(word in text for word in framed):
            for qualname, facts in summary.functions.items():
                yield Scope(path, qualname), facts


def _calls(facts: FunctionFacts, words: tuple[str, ...]) -> bool:
    return any(last_name(call.func) in words for call in facts.calls)


def _is_alias(value: Value, words: tuple[str, ...]) -> bool:
    """`torch.cuda.empty_cache`, `partial(gc.collect)`"""
    if isinstance(value, tuple) and value[0] == "call" and last_name(value[1]) == "partial" and value[2]:
        value = value[2][0]
    return isinstance(value, str) and "." in value and value.rpartition(".")[2] in words


def _keeps(facts: FunctionFacts) -> bool:
    # Of most functions the words tell that they keep nothing; those of inner ones stand with the ones around them.
    words = facts.identifiers
    if words and not facts.may_store and _ADDING.isdisjoint(words.split()):
        return False
    return any(fact.kind == KEEPS and fact.detail.partition(" ")[0] in GROWING for fact in facts.does)


def _keeps_parameter(program: Program) -> Callable[[Scope], bool]:
    def keeps(scope: Scope) -> bool:
        # What its own text keeps is told without what it calls.
        return _keeps(program.function(scope)) or any(kept.how in GROWING for kept in program.effects(scope).keeps)

    return keeps


def _called_hot(program: Program) -> Callable[[Scope], bool]:
    """Tells whether a function has a name by which something as hot as a step may call it: a rule listens there alone.
    What is kept behind a cache is no hotter for being called.
    """

    def is_called(scope: Scope) -> bool:
        is_hot = program.heat(scope) >= Heat.STEP or scope in program.heatmap.cached
        return is_hot and bool(_names(program.function(scope)))

    return is_called


def _upwards(
    program: Program,
    seeds: Iterator[Scope] | list[Scope],
    has_it: Callable[[Scope], bool],
    is_wanted: Callable[[Scope], bool] = lambda _: True,
) -> Iterator[tuple[str, ...]]:
    """The names of functions with an effect, and of their callers that have it from them. Only functions that are
    wanted are asked about, and those that such functions may have it from.
    """
    seen: set[Scope] = set()
    level = list(seeds)
    for above in reversed(range(_LEVELS + 1)):
        level = [
            scope
            for scope in dict.fromkeys(level)
            if scope not in seen and _is_below(scope, program, is_wanted, above) and has_it(scope)
        ]
        seen.update(level)
        yield from (_names(program.function(scope)) for scope in level)
        level = [edge.caller for scope in level for edge in program.graph.incoming.get(scope, ())]


def _is_below(scope: Scope, program: Program, is_wanted: Callable[[Scope], bool], levels: int) -> bool:
    """Whether a function is wanted, or one that calls it by way of so many others at most."""
    level = {scope}
    for _ in range(levels + 1):
        if any(map(is_wanted, level)):
            return True
        level = {edge.caller for item in level for edge in program.graph.incoming.get(item, ())}
    return False


def _names(facts: FunctionFacts) -> tuple[str, ...]:
    """What calls of a function go by: a constructor goes by its class."""
    if facts.name in ("__init__", "__call__", "__enter__", "forward"):
        return ()
    return (facts.name,)
