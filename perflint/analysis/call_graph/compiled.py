"""Which of the project's code `torch.compile` traces, followed from the places where something is compiled."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import CLASS, EXTERNAL, FUNCTION, INSTANCE, Refs, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence, Hop
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts, Param, Summary, Value
from perflint.torch_model.compiling import COMPILERS, KEPT_OUT
from perflint.torch_model.names import canonical

_NONE = ("const", "NoneType", None)
_OFF = ("const", "bool", False)
#: How the names end of what compiles.
_CALLED = ("compile", "optimize")
#: A framework's switches for compiling: where one is mentioned, something may be compiled.
COMPILING_NAMES = ("torch_compile", "_dynamo", "torch_xla", "use_compile")


def compiled_scopes(resolver: Resolver, graph: CallGraph) -> dict[Scope, Hop]:
    """Functions that are traced, each with the place where what holds it is compiled.

    Only calls that are plain to see are followed: a missed function is better than a wrong one.
    """
    found: dict[Scope, Hop] = {}
    waiting: deque[Scope] = deque()
    for scope, hop in _sites(resolver):
        if scope not in found and not _is_kept_out(resolver, scope):
            found[scope] = hop
            waiting.append(scope)
    while waiting:
        scope = waiting.popleft()
        for edge in graph.outgoing.get(scope, ()):
            callee = edge.callee
            # A property is mostly asked behind a switch: `self.caches and self.cache.size`.
            is_property = edge.index < 0
            if callee in found or edge.callback or is_property or edge.confidence < Confidence.HIGH:
                continue
            if (
                callee.function.endswith("__init__")
                or _is_kept_out(resolver, callee)
                or _may_be_left_out(resolver, edge)
            ):
                continue
            found[callee] = found[scope]
            waiting.append(callee)
    return found


def always_compiled(resolver: Resolver, graph: CallGraph, compiled: Mapping[Scope, Hop]) -> frozenset[Scope]:
    """Of the functions that are traced, those that nothing runs without: each of their callers is traced as well.

    What holds a function may be compiled by a method that only users call, who may as well leave it.
    """
    sites = ((scope, hop) for scope, hop in _sites(resolver) if compiled.get(scope) == hop)
    entered = {scope for scope, hop in sites if not _is_on_request(resolver, graph, hop)}
    found = set(compiled)
    waiting = [scope for scope in compiled if not _is_always(scope, found, entered, graph)]
    while waiting:
        scope = waiting.pop()
        if scope not in found:
            continue
        found.discard(scope)
        callees = {edge.callee for edge in graph.outgoing.get(scope, ())}
        waiting += [callee for callee in callees & found if not _is_always(callee, found, entered, graph)]
    return frozenset(found)


def _is_always(scope: Scope, traced: AbstractSet[Scope], entered: AbstractSet[Scope], graph: CallGraph) -> bool:
    callers = [edge.caller for edge in graph.incoming.get(scope, ()) if not edge.stands_in]
    return scope in entered or (bool(callers) and all(caller in traced for caller in callers))


def _is_on_request(resolver: Resolver, graph: CallGraph, hop: Hop) -> bool:
    """Whether the place where something is compiled stands in a method of a class that only users call, or that such
    methods call.
    """
    functions = resolver.summaries[hop.path].functions
    methods = [name for name, facts in functions.items() if facts.in_class and facts.name != "__init__"]
    around = [name for name in methods if any(call.line == hop.line for call in functions[name].calls)]
    return any(_is_left_to_users(resolver, graph, Scope(hop.path, name)) for name in around)


def _is_left_to_users(resolver: Resolver, graph: CallGraph, method: Scope) -> bool:
    seen, waiting = {method}, [method]
    while waiting:
        scope = waiting.pop()
        facts = resolver.summaries[scope.path].functions[scope.function]
        if not facts.in_class or facts.name == "__init__":
            return False
        callers = {edge.caller for edge in graph.incoming.get(scope, ())} - seen
        seen |= callers
        waiting += callers
    return True


def _may_be_left_out(resolver: Resolver, edge: Edge) -> bool:
    """Whether a call asks an argument that need not be given: `cache.length()`, with `cache=None` in training."""
    facts = resolver.summaries[edge.caller.path].functions[edge.caller.function]
    func = facts.calls[edge.index].func
    base = func.partition(".")[0] if isinstance(func, str) and "." in func else ""
    return any(param.name.lstrip("=") == base and param.default == _NONE for param in facts.params)


def compiles_anything(resolver: Resolver) -> bool:
    """Whether anything is compiled, by whatever spelling: a call or decorator named `compile` of anything but a regular
    expression.
    """
    for path, summary in resolver.summaries.items():
        for qualname, facts in summary.functions.items():
            values = [call.func for call in facts.calls] + [_called(value) for value in facts.decorators]
            if any(_is_compile(resolver, value, Scope(path, qualname)) for value in values):
                return True
    return False


def _called(value: Value) -> Value:
    return value[1] if isinstance(value, tuple) and value[0] == "call" else value


def _is_compile(resolver: Resolver, func: Value, scope: Scope) -> bool:
    if last_name(func) != "compile":
        return False
    refs = resolver.refs(func, scope)
    return not any(ref.name.startswith(("re.", "regex.", "builtins.")) for ref in refs)


def _sites(resolver: Resolver) -> Iterator[tuple[Scope, Hop]]:
    for path, summary in resolver.summaries.items():
        functions = summary.functions if _may_compile(summary) else {}
        for qualname, facts in functions.items():
            scope = Scope(path, qualname)
            sites = [call for call in facts.calls if last_name(call.func).endswith(_CALLED)]
            if sites and not _is_switched_off(resolver, facts):
                for call in sites:
                    for target in _compiled_by(resolver, facts, call, scope):
                        yield target, Hop(path, call.line, "compiled here")
            if facts.decorators and _is_decorated(resolver, facts, scope, COMPILERS):
                yield scope, Hop(path, facts.line, "compiled here")


def _may_compile(summary: Summary) -> bool:
    """Whether a file has a word in it that is called to compile."""
    words = summary.identifiers()
    return any(part in words for part in _CALLED)


def _is_switched_off(resolver: Resolver, facts: FunctionFacts) -> bool:
    """Whether a function compiles only what a parameter asks for, `compile_head=False`, that nothing in sight sets."""
    switches = {param.name.lstrip("="): place for place, param in enumerate(facts.params) if _is_switch(param)}
    if not switches:
        return False
    called = (facts.in_class if facts.name == "__init__" else facts.name).rpartition(".")[2]
    places = [place - bool(facts.in_class) for place in switches.values()]
    given = [item for name in switches for item in resolver.nesting.keywords.get(name, ())]
    given += [
        (item, item.call.args[place])
        for item in resolver.nesting.calls.get(called, ())
        for place in places
        if place < len(item.call.args)
    ]
    return all(
        value == _OFF or _hands_on_a_switch(resolver.nesting.functions[item.number][1], value) for item, value in given
    )


def _is_switch(param: Param) -> bool:
    return "compile" in param.name and param.default == _OFF


def _hands_on_a_switch(facts: FunctionFacts, value: Value) -> bool:
    """`Part(compile_head=compile_head)`, in a function that has such a parameter itself."""
    return any(param.name.lstrip("=") == value and _is_switch(param) for param in facts.params)


def _compiled_by(resolver: Resolver, facts: FunctionFacts, call: CallFacts, scope: Scope) -> Iterator[Scope]:
    """The functions that a call of `torch.compile(x)` or `x.compile()` compiles."""
    func = call.func
    if _names(resolver, func, scope, COMPILERS):
        if call.args and call.args[0] is not None:
            yield from _entered(resolver, resolver.refs(call.args[0], scope))
        return
    # `torch.compile` takes nothing but the module by position: `self.compile(optimizer, loss)` is the project's own.
    if isinstance(func, str) and func.endswith(".compile") and not call.args:
        receiver = func.removesuffix(".compile")
        yield from _entered(resolver, _modules(resolver, resolver.refs(receiver, scope)))
        yield from _entered(resolver, _modules(resolver, _narrowed(resolver, facts, receiver, scope)))


def _narrowed(resolver: Resolver, facts: FunctionFacts, name: str, scope: Scope) -> Refs:
    """The classes that `isinstance(name, ...)` of the same function asks for."""
    found: list[Value] = []
    for call in facts.calls:
        if call.func == "isinstance" and len(call.args) == 2 and call.args[0] == name:
            asked = call.args[1]
            found += asked[1] if isinstance(asked, tuple) and asked[0] == "seq" else [asked]
    return tuple(ref for value in found for ref in resolver.refs(value, scope) if ref.kind == CLASS and ref.path)


def _modules(resolver: Resolver, refs: Refs) -> Refs:
    return tuple(
        ref for ref in refs if ref.kind in (INSTANCE, CLASS) and resolver.hierarchy.derives(ref, "torch.nn.Module")
    )


def _entered(resolver: Resolver, refs: Refs) -> Iterator[Scope]:
    for ref in refs:
        if ref.kind == FUNCTION:
            yield Scope(ref.path, ref.name)
        elif ref.kind in (INSTANCE, CLASS):
            method = resolver.method(ref, "forward")
            if method is not None and method.path:
                yield Scope(method.path, method.name)


def _is_kept_out(resolver: Resolver, scope: Scope) -> bool:
    return _is_decorated(resolver, resolver.summaries[scope.path].functions[scope.function], scope, KEPT_OUT)


def _is_decorated(resolver: Resolver, facts: FunctionFacts, scope: Scope, names: frozenset[str]) -> bool:
    if not facts.decorators:
        return False
    owner = Scope(scope.path, facts.owner if facts.owner in resolver.summaries[scope.path].functions else MODULE)
    return any(_names(resolver, value, owner, names) for value in facts.decorators)


def _names(resolver: Resolver, value: Value, scope: Scope, names: frozenset[str]) -> bool:
    """Whether a value is one of the library functions, or a call or `partial` of one."""
    if isinstance(value, tuple) and value[0] == "call":
        if str(value[1]).endswith("partial") and value[2]:
            return _names(resolver, value[2][0], scope, names)
        return _names(resolver, value[1], scope, names)
    return any(ref.kind == EXTERNAL and canonical(ref.name) in names for ref in resolver.refs(value, scope))
