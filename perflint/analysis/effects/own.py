"""What a function does by its own text: library calls, and the facts of `ir.own_effects`, without what it calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from perflint.analysis.effects.summary import Effect, Kept
from perflint.analysis.evidence import is_backward, is_optimizer_step
from perflint.analysis.names.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, INSTANCE, MODULE_REF, Ref, Scope
from perflint.ir import own_effects
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts, Value
from perflint.torch_model import effects as library

if TYPE_CHECKING:
    from perflint.analysis.names.resolver import Resolver

_YOUNG = (("const", "int", 0), ("const", "int", 1))
#: What hands back what it is given, by its last name, so that a parameter comes back through it.
_HANDING = frozenset("to cuda cpu eval train requires_grad_ contiguous".split())


class Done(NamedTuple):
    """An effect of a function's own text: where, by a call of what, and whether it happens whenever it runs."""

    effect: Effect
    line: int
    text: str
    is_sure: bool


def done_by(scope: Scope, facts: FunctionFacts, called: set[int], resolver: Resolver) -> Iterator[Done]:
    """The effects of a function's own text; `called` are the places of its calls that run code of the project."""
    for index, call in enumerate(facts.calls):
        if index in called:
            # A module of the project runs; what its forward does, its own effects say.
            if _is_module(call.func, scope, resolver):
                yield Done(Effect.FORWARD, call.line, shown(call.func), facts.is_sure(call.line, call.column))
            continue
        found = of_call(call, scope, resolver)
        if found:
            sure = facts.is_sure(call.line, call.column)
            text = shown(call.func)
            for effect in found:
                yield Done(effect, call.line, text, sure)
    for fact in facts.does:
        if fact.kind == own_effects.READS:
            text = f"{fact.name}.{fact.detail}" if fact.name else fact.detail
            yield Done(Effect.READS, fact.line, text, facts.is_sure(fact.line, fact.column))
        elif fact.kind == own_effects.PRINTS:
            yield Done(Effect.LOGS, fact.line, "print", facts.is_sure(fact.line, fact.column))
        elif fact.kind == own_effects.COMPUTES:
            yield Done(Effect.LAUNCHES, fact.line, "", is_sure=False)


def of_call(call: CallFacts, scope: Scope, resolver: Resolver) -> tuple[Effect, ...]:
    """What a call does that runs nothing of the project."""
    func = call.func
    whole = _whole(func)
    if is_backward(func, call.args):
        return (Effect.BACKWARD, Effect.LAUNCHES)
    if is_optimizer_step(func, call.args, resolver, scope):
        return (Effect.STEPS, Effect.LAUNCHES)
    if func == "open":
        mode = next((value for key, value in call.keywords if key == "mode"), call.args[1] if call.args[1:] else None)
        writes = isinstance(mode, tuple) and mode[:2] == ("const", "str") and not set("wax").isdisjoint(mode[2])
        return (Effect.FILES,) if writes else (Effect.LOADS,)
    refs = resolver.refs(whole, scope)
    if not refs and func != whole:
        return (Effect.FORWARD, Effect.LAUNCHES)  # `net.forward(x)`, whatever the network is
    found: dict[Effect, None] = {}
    for ref in refs:
        found.update(dict.fromkeys(_of_ref(ref, call)))
    if Effect.WAITS in found and _is_of_a_stream(call, scope, resolver):
        found = {Effect.WAITS_PART: None}
    if refs and not all(ref.kind in (INSTANCE, MODULE_REF) for ref in refs):
        return tuple(found)
    name = last_name(func)
    by_method = library.of_method(name) if name and func != name else None
    if by_method is not None:
        return by_method
    return (Effect.UNKNOWN,)


def _is_of_a_stream(call: CallFacts, scope: Scope, resolver: Resolver) -> bool:
    """`torch.cuda.synchronize(self.copy_stream)`: what is meant is the work of one stream."""
    given = (*call.args, *(value for _, value in call.keywords))
    refs = (ref for value in given for ref in resolver.refs(value, scope))
    return any(ref.kind == EXTERNAL_INSTANCE and ref.name.endswith((".Stream", "current_stream")) for ref in refs)


def _of_ref(ref: Ref, call: CallFacts) -> tuple[Effect, ...]:
    if ref.kind == EXTERNAL:
        found = library.of_function(ref.name)
        # `gc.collect(0)` goes through the young objects alone, `gc.collect(2)` through all.
        given = (*call.args, *(value for _, value in call.keywords))
        return () if found == (Effect.COLLECTS,) and any(item in _YOUNG for item in given) else found
    if ref.kind == EXTERNAL_INSTANCE:
        # `event.synchronize` is what an instance's method resolves to; the instance itself is called otherwise.
        name = last_name(_whole(call.func))
        is_method = bool(name) and ref.name.endswith(f".{name}")
        return library.of_function(ref.name) if is_method else library.of_instance(ref.name)
    return ()


def _whole(func: Value) -> Value:
    """`net` of `net.forward`, which is what a call of the network runs."""
    return func[:-8] if type(func) is str and func[-8:] == ".forward" else func


def _is_module(func: Value, scope: Scope, resolver: Resolver) -> bool:
    for ref in resolver.refs(_whole(func), scope):
        if ref.kind == INSTANCE and ref.path and resolver.hierarchy.is_module(Ref(CLASS, ref.path, ref.name)):
            return True
    return False


def shown(func: Value) -> str:
    """A callee as findings name it."""
    return func if isinstance(func, str) else last_name(func)


def kept_by(path: str, facts: FunctionFacts) -> Iterator[Kept]:
    """The parameters that a function's own text keeps."""
    for fact in facts.does:
        if fact.kind == own_effects.KEEPS:
            how, _, into = fact.detail.partition(" ")
            yield Kept(fact.name, how, into, 0, path, fact.line)


def written_by(facts: FunctionFacts) -> set[str]:
    """The parameters that a function's own text writes into."""
    return {fact.name for fact in facts.does if fact.kind == own_effects.WRITES}


def returned_by(facts: FunctionFacts) -> set[str]:
    """The parameters that a function may hand back."""
    params = parameters(facts)
    return {name for value in facts.returns for name in carried(value) if name in params}


def trained_by(facts: FunctionFacts) -> set[str]:
    """The parameters that a function runs as modules, and walks back from: `def step(net): net(x).sum().backward()`."""
    params = parameters(facts)
    return {call.func for call in facts.calls if isinstance(call.func, str) and call.func in params}


def parameters(facts: FunctionFacts) -> dict[str, int]:
    """The names of the parameters, with their places."""
    return {param.name.lstrip("*="): place for place, param in enumerate(facts.params)}


def carried(value: Value) -> set[str]:
    """The names of which a value holds, whole, what they hold: `{"aux": aux}`, `(a, b)`, `x.to(device)`."""
    if isinstance(value, str):
        return {value}
    if not isinstance(value, tuple):
        return set()
    kind = value[0]
    if kind in ("seq", "either"):
        return set().union(*map(carried, value[1]))
    if kind == "map":
        return set().union(*(carried(item) for _, item in value[1]))
    if kind == "call" and last_name(value[1]) in _HANDING:
        func = value[1]
        return carried(func.rpartition(".")[0] if isinstance(func, str) else func[1])
    return set()
