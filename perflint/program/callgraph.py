"""Who calls whom: resolved call edges between the project's functions, and the callbacks handed to libraries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from perflint.facts.summary import MODULE, CallFacts, FunctionFacts, Summary
from perflint.finding import Confidence
from perflint.program.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Refs, Resolver, Scope

#: Methods too common to be guessed from their name alone, even when one class of the project defines them.
_COMMON = frozenset(
    "forward call run fit train eval step update reset close open read write load save get set add remove start stop "
    "build create init setup process apply parse format log print sample predict transform encode decode compute "
    "append extend insert pop clear copy items keys values join split strip to cpu cuda size view reshape mean sum "
    "max min item backward zero_grad state_dict load_state_dict parameters modules children register send recv get_config "
    "search match find replace count index sort reverse group flush seek tell next submit result put done wait".split()
)


class Edge(NamedTuple):
    """`caller` runs `callee` at `line`, in context `context` of the caller. `index` is the call's place in its facts.

    A `callback` is handed to the call, which then runs it with arguments nobody sees.
    """

    caller: Scope
    callee: Scope
    context: int
    line: int
    confidence: Confidence
    index: int
    callback: bool = False


class CallGraph:
    """Edges both ways. Built in two rounds: the second knows what callers pass for parameters."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.outgoing: dict[Scope, list[Edge]] = defaultdict(list)
        self.incoming: dict[Scope, list[Edge]] = defaultdict(list)
        self.unresolved: dict[Scope, list[CallFacts]] = defaultdict(list)
        self._params: dict[tuple[Scope, str], Refs] = {}
        self._resolving: set[tuple[Scope, str]] = set()
        self._methods = _single_methods(resolver.summaries)

    def build(self) -> None:
        waiting: list[tuple[Scope, FunctionFacts, int]] = []
        for path, summary in self.resolver.summaries.items():
            for qualname, facts in summary.functions.items():
                scope = Scope(path, qualname)
                for index in range(len(facts.calls)):
                    if not self._connect(scope, facts, index, guess=False):
                        waiting.append((scope, facts, index))
        self.resolver.param_refs = self.passed
        self.resolver.forget()
        for scope, facts, index in waiting:
            if not self._connect(scope, facts, index, guess=True):
                self.unresolved[scope].append(facts.calls[index])

    def passed(self, scope: Scope, name: str) -> Refs:
        """What the resolved callers of a function pass for its parameter `name`."""
        key = (scope, name)
        if key in self._params:
            return self._params[key]
        if key in self._resolving or len(self._resolving) > 12:
            return ()
        self._resolving.add(key)
        found: dict[Ref, None] = {}
        for edge in self.incoming.get(scope, ())[:16]:
            value = self.argument(edge, name)
            if value is not None:
                for ref in self.resolver.refs(value, edge.caller):
                    found[ref] = None
        self._resolving.discard(key)
        refs = tuple(found)[:6]
        if not self._resolving:
            self._params[key] = refs
        return refs

    def argument(self, edge: Edge, name: str) -> object:
        """The value the call of `edge` passes for the callee's parameter `name`, None where it passes none."""
        if edge.callback:
            return None
        call = self.resolver.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index]
        facts = self.resolver.summaries[edge.callee.path].functions[edge.callee.function]
        for key, value in call.keywords:
            if key == name:
                return value
        names = [param.name for param in facts.params if not param.name.startswith(("=", "*"))]
        if facts.in_class and names and "staticmethod" not in facts.decorators:
            names = names[1:]
        if name in names and names.index(name) < len(call.args):
            return call.args[names.index(name)]
        return None

    def _connect(self, scope: Scope, facts: FunctionFacts, index: int, *, guess: bool) -> bool:
        call = facts.calls[index]
        targets = self.targets(call, scope)
        confidence = Confidence.HIGH
        external = False
        if targets is None:
            external, targets = True, []
        callbacks = self._callbacks(call, scope) if external or not targets else []
        if not targets and not external and guess:
            targets = self._guess(call)
            confidence = Confidence.MEDIUM
        for callee in targets:
            self._add(Edge(scope, callee, call.context, call.line, confidence, index))
        for callee in callbacks:
            self._add(Edge(scope, callee, call.context, call.line, Confidence.MEDIUM, index, callback=True))
        return bool(targets or external)

    def _add(self, edge: Edge) -> None:
        self.outgoing[edge.caller].append(edge)
        self.incoming[edge.callee].append(edge)

    def targets(self, call: CallFacts, scope: Scope) -> list[Scope] | None:
        """The project functions a call runs; None when it is known to be a library's."""
        refs = self.resolver.refs(call.func, scope)
        if not refs:
            return []
        found: list[Scope] = []
        external = False
        for ref in refs:
            if ref.kind == FUNCTION:
                found.append(Scope(ref.path, ref.name))
            elif ref.kind == CLASS:
                external = True
                found += self._methods_of(ref, ("__init__", "__post_init__"))
            elif ref.kind == INSTANCE:
                found += self._methods_of(ref, ("forward", "__call__"))
                external = external or not found
            elif ref.kind in (EXTERNAL, EXTERNAL_INSTANCE):
                external = True
        if external and not found:
            found += self._sequential(call, scope)
        return list(dict.fromkeys(found)) or (None if external else [])

    def _methods_of(self, ref: Ref, names: tuple[str, ...]) -> list[Scope]:
        found = [self.resolver.method(ref, name) for name in names]
        return [Scope(item.path, item.name) for item in found if item is not None]

    def _sequential(self, call: CallFacts, scope: Scope) -> list[Scope]:
        """Calling an `nn.Sequential` runs the `forward` of what it holds."""
        if not isinstance(call.func, str):
            return []
        found = []
        for value, where in self.resolver.definitions(call.func, scope):
            if isinstance(value, tuple) and value[0] == "call" and str(value[1]).endswith("Sequential"):
                for ref in self.resolver.elements(value, where):
                    if ref.kind == INSTANCE:
                        found += self._methods_of(ref, ("forward",))
        return found

    def _callbacks(self, call: CallFacts, scope: Scope) -> list[Scope]:
        """Project functions handed to a library: it runs them about where it is called."""
        found = []
        for value in (*call.args, *(value for _, value in call.keywords)):
            if value is None or (isinstance(value, tuple) and value[0] not in ("lambda", "call")):
                continue
            if isinstance(value, tuple) and value[0] == "call" and not str(value[1]).endswith("partial"):
                continue
            for ref in self.resolver.refs(value, scope):
                if ref.kind == FUNCTION:
                    found.append(Scope(ref.path, ref.name))
        return list(dict.fromkeys(found))

    def _guess(self, call: CallFacts) -> list[Scope]:
        """A method defined exactly once in the program, called on something unknown."""
        func = call.func
        if isinstance(func, str):
            base, _, name = func.rpartition(".")
            if not base or base in ("self", "cls"):
                return []
        elif func is not None and func[0] == "attr":
            name = func[2]
        else:
            return []
        if name in _COMMON or name.startswith("__") or ("_" not in name.strip("_") and len(name) < 10):
            return []
        found = self._methods.get(name)
        return [found] if found is not None else []


def _single_methods(summaries: Mapping[str, Summary]) -> dict[str, Scope | None]:
    """Method names that exactly one class of the program defines."""
    found: dict[str, Scope | None] = {}
    for path, summary in summaries.items():
        for qualname, facts in summary.functions.items():
            if facts.in_class and qualname != MODULE:
                name = facts.name
                found[name] = None if name in found else Scope(path, qualname)
    return found
