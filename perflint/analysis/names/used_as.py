"""What names stand for by how a function uses them: what its loops take batches from, and its optimizers.

A loop goes through batches where each turn is moved to a device and handed to a model, or trained on, whatever the
loader is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope, given
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts, Value
from perflint.torch_model import frameworks, loaders

if TYPE_CHECKING:
    from perflint.analysis.names.resolver import Resolver

_MOVES = frozenset({"to", "cuda"})
#: What is called of the turn of a loop over models, optimizers or losses, not of a batch.
_OF_PARTS = frozenset(
    "backward step zero_grad parameters named_parameters state_dict load_state_dict train eval requires_grad_ modules "
    "named_modules children register_forward_hook".split()
)
_FIRST: Value = ("const", "int", 0)
#: Methods that models run by, besides being called.
_RUNS = frozenset("forward generate predict encode decode sample loss compute_loss".split())
_DEEPEST = 12
#: Builtins whose results hold what they are given.
_HOLDING = frozenset({"dict", "list", "tuple", "enumerate", "zip", "iter"})
#: Position of the wrapped iterable by the wrapper's last name: `tqdm` may come from anywhere.
_WRAPPER_POSITION = {
    **{
        name.rpartition(".")[2]: wrapper.argument
        for name, wrapper in loaders.WRAPPERS.items()
        if wrapper.shape in ("same", "counted")
    },
    **dict.fromkeys(loaders.WRAPPER_METHODS, 0),
    **dict.fromkeys(frameworks.LOADER_PREPARING, 0),
}


def sources_of_batches(facts: FunctionFacts) -> frozenset[str]:
    """The names, dotted or not, that such loops of a function go over."""
    sources = [iterated(loop.iterable) if loop.kind == "for" and loop.targets else "" for loop in facts.loops]
    if not any(sources):
        return frozenset()
    calls: dict[int, list[tuple[CallFacts, bool]]] = {}
    for call in facts.calls:
        is_own = True
        for index in facts.loops_around(call.context):
            calls.setdefault(index, []).append((call, is_own))
            is_own = is_own and facts.loops[index].kind == "comprehension"
    named = {item.name.lstrip("*=") for item in facts.params} | facts.binds.keys()
    return frozenset(
        [name for index, name in enumerate(sources) if name and _is_fed(index, calls.get(index, []), facts, named)]
    )


def iterated(value: Value) -> str:
    """The name that a loop goes over, through `enumerate` and progress bars; "" where it goes over something else."""
    while isinstance(value, tuple) and value[0] == "call":
        place, passed = _WRAPPER_POSITION.get(last_name(value[1])), given(value)
        if place is None or len(passed) <= place:
            return ""
        value = passed[place]
    return value if isinstance(value, str) else ""


def _is_fed(index: int, calls: list[tuple[CallFacts, bool]], facts: FunctionFacts, named: set[str]) -> bool:
    """`calls` of a loop, each with whether it stands in no loop inside of that."""
    turns = _turns(facts.loops[index].targets, facts.loops[index].iterable)
    if any(
        last_name(value[1]) == "unsqueeze" for name in turns for value in facts.binds.get(name, ()) if _is_call(value)
    ):
        return False
    parts = _parts(turns, facts)
    moves = runs = trains = False
    for call, is_own in calls:
        name = call.func if isinstance(call.func, str) else ""
        first, _, last = name.rpartition(".")
        if name in turns or (first in turns and last in _OF_PARTS):
            return False
        given = [*call.args, *(value for _, value in call.keywords)]
        if is_own and last_name(call.func) in _MOVES and not parts.isdisjoint(_taken_from(call.func)):
            moves = True
        elif _is_model(name, named) and any(not parts.isdisjoint(_taken_from(value)) for value in given):
            runs = True
        trains = trains or (is_own and last_name(call.func) == "backward")
    return runs and (moves or trains)


def _turns(targets: tuple[str, ...], iterable: Value) -> frozenset[str]:
    is_counted = isinstance(iterable, tuple) and iterable[:2] == ("call", "enumerate")
    return frozenset(targets[1:] if is_counted else targets)


def _parts(names: frozenset[str], facts: FunctionFacts) -> set[str]:
    """The names, and those that are bound to parts of them, moved or not: not to what a tokenizer makes of a text."""
    found = set(names)
    waiting = True
    while waiting:
        more = {
            name
            for name, values in facts.binds.items()
            if name not in found and any(not found.isdisjoint(_taken_from(value)) for value in values)
        }
        found |= more
        waiting = bool(more)
    return found


def _is_model(name: str, named: set[str]) -> bool:
    """Whether something that the function is given, has bound or holds is called: for all that is known, a model."""
    first, _, rest = name.partition(".")
    if first == "self":
        return bool(rest)
    return first in named and (not rest or rest.rpartition(".")[2] in _RUNS)


def _taken_from(value: Value, depth: int = _DEEPEST) -> Iterator[str]:
    """The first names of what a value is a part of: of `batch["x"].to(device)`, `batch`."""
    if isinstance(value, str):
        yield value.partition(".")[0]
    elif isinstance(value, tuple) and value and depth:
        form, rest = value[0], value[1:]
        if form == "call":
            # A method of it, or something that only holds it: `dict(batch)`.
            rest = (value[1],) if "." in str(value[1]) or isinstance(value[1], tuple) else ()
            rest = value[2] if value[1] in _HOLDING else rest
            if last_name(value[1]) == "unsqueeze" and value[2][:1] == (_FIRST,):
                rest = ()  # a batch is made of it: it is one sample
        elif form in ("item", "attr"):
            rest = (value[1],)
        elif form == "map":
            rest = tuple(item for _, item in value[1])
        elif form in ("seq", "either"):
            rest = value[1]
        elif form not in ("each", "table"):
            rest = ()
        for part in rest:
            yield from _taken_from(part, depth - 1)


def _is_call(value: Value) -> bool:
    return isinstance(value, tuple) and value[0] == "call"


def optimizers_of(facts: FunctionFacts) -> frozenset[str]:
    """What a function has take steps as only an optimizer does: it sets gradients to zero too, or is all that takes a
    step, without being told anything, where the function walks back a loss.
    """
    stepping = [call for call in facts.calls if last_name(call.func) == "step" and isinstance(call.func, str)]
    if not stepping:
        return frozenset()
    called = {call.func for call in facts.calls if isinstance(call.func, str)}
    bare = {call.func[:-5] for call in stepping if not call.args and not call.keywords and "." in call.func}
    found = {name for name in bare if f"{name}.zero_grad" in called}
    walks_back = any(last_name(call.func) in ("backward", "manual_backward") for call in facts.calls)
    if not found and len(stepping) == len(bare) == 1 and walks_back:
        return frozenset(name for name in bare if f"{name}.get_last_lr" not in called)
    return frozenset(found)


def opens_stream(scope: Scope, facts: FunctionFacts, resolver: Resolver) -> bool:
    """Whether a function gives a new object of the project that hands out one thing after the other: what it takes for
    that is a part of the data, as a file, and no batch.
    """
    made = [value[1] for value in facts.returns if isinstance(value, tuple) and value[0] == "call"]
    for ref in (ref for func in made for ref in resolver.refs(func, scope) if ref.kind == CLASS):
        found = resolver.method(Ref(INSTANCE, ref.path, ref.name), "__iter__")
        if found is not None and resolver.summaries[found.path].functions[found.name].is_generator:
            return True
    return False
