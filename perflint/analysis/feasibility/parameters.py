"""What the calls of functions pass for their parameters, and which functions are called by what nobody sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.callbacks import AUTOGRAD
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.handing import place_of_rest
from perflint.analysis.feasibility.called_parts import CalledParts
from perflint.analysis.frequency.roots import RootFinder
from perflint.analysis.names.decorated import hands_on
from perflint.analysis.names.refs import CLASS, FUNCTION, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.callees import last_name
from perflint.ir.dull import MAYBE_DULL, PLAIN_METHODS
from perflint.ir.summary import ENTRIES, MODULE, SPREAD, CallFacts, FunctionFacts, Param, Value

#: What a function is given through these decorators is what a call passes.
_PASSING_ON = frozenset(
    {
        "staticmethod",
        "classmethod",
        "abstractmethod",
        "torch",
        "functools",
        "abc",
        "contextlib",
        "dataclass",
        "dataclasses",
    }
)


#: What calling an object runs.
_CALLED = ("forward", "__call__")


class Passed(NamedTuple):
    """What a call passes for a parameter: a value written where the call is, or, `left_out`, the default. Where both
    are not, nobody can tell; `spread` is for what a mapping may hold that comes from elsewhere.
    """

    value: tuple[Value, ...] | None
    left_out: bool = False
    spread: bool = False


_UNSEEN = Passed(None)
_SPREAD_OUT = Passed(None, spread=True)
_LEFT_OUT = Passed(None, left_out=True)


class Passing:
    """The arguments of one program's calls."""

    def __init__(self, resolver: Resolver, graph: CallGraph, roots: RootFinder) -> None:
        self._resolver = resolver
        self._graph = graph
        self._roots = roots
        self._library = roots.library
        self._parts = CalledParts(resolver, graph)
        self._callers: dict[Scope, list[Edge]] = {}
        self._decorated: dict[Scope, bool] = {}
        #: By keyword, the calls that pass it to what has no name of its own.
        self._passing: dict[str, list[tuple[Scope, int, CallFacts]]] = {}

    def facts(self, scope: Scope) -> FunctionFacts:
        return self._resolver.summaries[scope.path].functions[scope.function]

    def callers(self, scope: Scope) -> list[Edge]:
        """The calls that may be of a function, but those of tests and of code that no run comes to: those that surely
        are, those of what it overrides, for they may be of an object that has this one, and those by its name of which
        nobody can tell what they call.
        """
        known = self._callers.get(scope)
        if known is None:
            known = self._callers[scope] = list(dict.fromkeys(self._calls_of(scope)))
        return known

    def _calls_of(self, scope: Scope) -> Iterator[Edge]:
        facts = self.facts(scope)
        yield from self._seen(scope)
        # What makes an object of a base, and `super().__init__()` of its other children, makes none of this class.
        if facts.in_class and facts.name != "__init__":
            for base in self._resolver.mro(Ref(CLASS, scope.path, facts.in_class))[1:]:
                if base.path:
                    for edge in self._seen(Scope(base.path, f"{base.name}.{facts.name}")):
                        yield edge._replace(callee=scope)
            yield from self._by_name(scope, facts)

    def _seen(self, scope: Scope) -> Iterator[Edge]:
        for edge in self._graph.incoming.get(scope, ()):
            if edge.caller.path not in self._resolver.tests and edge.caller not in self._roots.unused:
                yield edge

    def _by_name(self, scope: Scope, facts: FunctionFacts) -> Iterator[Edge]:
        """Of objects that are called, those that are given one of the options of this one's `forward`."""
        found = self._unresolved.get(facts.name, ())
        if facts.name in _CALLED:
            options = {param.name.lstrip("=") for param in own_parameters(facts) if param.default is not None}
            found = [item for name in sorted(options) for item in self._by_keyword(name)]
        for caller, index, call in found:
            yield Edge(caller, scope, call.context, call.line, Confidence.MEDIUM, index)

    @cached_property
    def _unresolved(self) -> Mapping[str, list[tuple[Scope, int, CallFacts]]]:
        """The calls of which nobody can tell what they call, by the last name of what is called."""
        found: dict[str, list[tuple[Scope, int, CallFacts]]] = {}
        for scope, calls in self._graph.unresolved.items():
            if scope.path not in self._resolver.tests:
                places = {id(call): index for index, call in enumerate(self.facts(scope).calls)}
                for call in calls:
                    found.setdefault(last_name(call.func), []).append((scope, places[id(call)], call))
        return found

    @cached_property
    def _sure(self) -> frozenset[tuple[Scope, int]]:
        """The calls, by function and place, of which it is known what they call."""
        edges = (edge for edges in self._graph.outgoing.values() for edge in edges)
        return frozenset([(edge.caller, edge.index) for edge in edges if edge.confidence is Confidence.HIGH])

    def _by_keyword(self, key: str) -> list[tuple[Scope, int, CallFacts]]:
        """The calls of what no function or class goes by the name of that pass a keyword: calls of objects."""
        known = self._passing.get(key)
        if known is None:
            nesting = self._resolver.nesting
            named = sorted([item for item, _ in nesting.keywords.get(key, ())], key=lambda item: item[::2])
            known = self._passing[key] = [
                (item.scope, item.place, item.call)
                for item in named
                if item.scope.path not in self._resolver.tests
                and (item.scope, item.place) not in self._sure
                and (name := last_name(item.call.func))
                and name not in nesting.by_name
                and not name[0].isupper()
            ]
        return known

    def is_open(self, scope: Scope) -> bool:
        """Whether users of the program, or decorators, may call a function with whatever they like."""
        return self._is_decorated(scope) or self._library.is_open(scope)

    def is_of_package(self, scope: Scope) -> bool:
        """Whether users of the program, or of a package that it makes, may call a function that it does not call."""
        return self.is_open(scope) or self._library.is_installed(scope.path)

    def is_called_unseen(self, scope: Scope) -> bool:
        """Whether a function may be called with what nobody sees: by a framework, a decorator, or by a name that
        is not written down.
        """
        facts = self.facts(scope)
        root = self._roots.functions.get(scope)
        if self.is_open(scope):
            return True
        is_told = root is not None and (root.last_resort or root.by_name or root.role == AUTOGRAD)
        if root is not None and (not is_told or self._has_no_sure_call(scope)):
            return True
        if not facts.in_class or facts.name == "__init__":
            return False
        # Calls of a tensor's methods are not recorded, some of them only where they pass something.
        unrecorded = PLAIN_METHODS if any(param.default is None for param in own_parameters(facts)) else MAYBE_DULL
        return facts.name in unrecorded

    def may_be_given(self, scope: Scope, facts: FunctionFacts, name: str) -> bool:
        """Whether a call of a part of something, which may be an object of the class, gives its `forward` an argument:
        what is given is not told by that, but that it is.
        """
        params = own_parameters(facts)
        place = place_of(facts, name) if facts.name in _CALLED and facts.in_class else None
        required = sum(param.default is None for param in params)
        return place is not None and self._parts.may_give(scope, facts, required, place, len(params))

    def _has_no_sure_call(self, scope: Scope) -> bool:
        """Whether nothing but guesses, and a function itself, call it."""
        return all(edge.confidence < Confidence.HIGH or edge.caller == scope for edge in self.callers(scope))

    def _is_decorated(self, scope: Scope) -> bool:
        """Whether a decorator may call a function, or make objects of its class, with other arguments."""
        known = self._decorated.get(scope)
        if known is None:
            facts = self.facts(scope)
            outside = Scope(scope.path, facts.owner or MODULE)
            of_class: tuple[Value, ...] = ()
            if facts.name == "__init__" and facts.in_class in self._resolver.summaries[scope.path].classes:
                of_class = self._resolver.summaries[scope.path].classes[facts.in_class].decorators
            known = not all(self._passes_on(item, outside) for item in (*facts.decorators, *of_class))
            self._decorated[scope] = known
        return known

    def _passes_on(self, decorator: Value, scope: Scope) -> bool:
        """Whether a decorator leaves it to calls what a function is given."""
        named = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
        first = named.partition(".")[0] if isinstance(named, str) else ""
        imported = self._resolver.summaries[scope.path].imports.get(first, first)
        return imported.partition(".")[0] in _PASSING_ON or hands_on(decorator, scope, self._resolver)

    def passed(self, edge: Edge, name: str) -> Passed:
        """What the call of an edge passes for the parameter `name` of its callee, or for what `**options` may hold."""
        facts = self.facts(edge.callee)
        if edge.callback or edge.stands_in or edge.index < 0 or self._is_decorated(edge.callee):
            return _UNSEEN
        caller = self.facts(edge.caller)
        call = caller.calls[edge.index]
        if not self._is_plain(call, edge, facts):
            return _UNSEEN
        for key, value in call.keywords:
            if key == name:
                return self._written(caller, edge.index, name, value)
        place = place_of(facts, name)
        spreads = any(key == SPREAD for key, _ in call.keywords)
        if place is not None:
            if spreads and not place < place_of_rest(call, caller) < len(call.args):
                return _LEFT_OUT if self._is_named_elsewhere(edge.callee, name) else _UNSEEN
            if place < len(call.args):
                return self._written(caller, edge.index, str(place), call.args[place])
        spread = [value for key, value in call.keywords if key == ""]
        if not spread:
            return _LEFT_OUT
        return self._spread(spread[0], caller, _default(facts, name), name) if len(spread) == 1 else _UNSEEN

    def _is_named_elsewhere(self, callee: Scope, name: str) -> bool:
        """Whether a call gives an argument its name beside what it spreads, which then holds it nowhere: the same is
        spread, `model(*batch, train=False)`, where it is left out.
        """
        for edge in self.callers(callee):
            call = self.facts(edge.caller).calls[edge.index] if edge.index >= 0 else None
            keys = [key for key, _ in call.keywords] if call is not None else []
            if name in keys and SPREAD in keys:
                return True
        return False

    def _spread(self, mapping: Value, caller: FunctionFacts, default: Value, name: str) -> Passed:
        """What `**mapping` passes for a parameter: an entry of a dict that is written down, or what the caller takes as
        its own `**options`.
        """
        if type(mapping) is str and "." not in mapping and mapping not in caller.unclear:
            held = caller.binds.get(mapping, ())
            if any(param.name == f"**{mapping}" for param in caller.params):
                asked = ("call", f"{mapping}.get", (("const", "str", name), default), ())
                return _UNSEEN if held or mapping in caller.computed or default is None else Passed((asked,))
            mapping = held[0] if len(held) == 1 and mapping not in caller.computed else mapping
        if type(mapping) is not tuple:
            is_changed = type(mapping) is str and (mapping in caller.unclear or f"{mapping}{ENTRIES}" in caller.unclear)
            return _UNSEEN if is_changed else _SPREAD_OUT
        if mapping[0] == "map":
            entries = dict(mapping[1])
        elif mapping[:2] == ("call", "dict") and not mapping[2]:
            entries = dict(mapping[3])
        else:
            return _SPREAD_OUT
        if name in entries:
            return Passed((entries[name],))
        return _UNSEEN if "" in entries else _LEFT_OUT

    def _written(self, caller: FunctionFacts, index: int, place: str, value: Value) -> Passed:
        computed = caller.computed.get(f"#{index}:{place}")
        return Passed((value,) if computed is None else computed)

    def _is_plain(self, call: CallFacts, edge: Edge, facts: FunctionFacts) -> bool:
        """Whether a call passes what stands in it, and no more: it is of the function itself, by its name, and neither
        of a `partial` of it nor of a method that the class is asked for.
        """
        owner = call.func.rpartition(".")[0] if isinstance(call.func, str) else ""
        if facts.name == "__init__" and last_name(call.func) != "__init__":
            refs = self._resolver.refs(call.func, edge.caller)
            return bool(refs) and all(ref.kind == CLASS for ref in refs)
        if last_name(call.func) != facts.name and not _applies(call.func, facts):
            return self._is_of_instance(call, edge, facts) or self._is_chosen(call, edge, facts)
        if owner == "self":
            # `self.step = partial(step, exact=True)`
            return bool(facts.in_class) and not self._is_held(edge.caller, facts.name)
        if not facts.in_class or not owner or _applies(call.func, facts):
            return True
        if {"staticmethod", "classmethod"}.isdisjoint([item for item in facts.decorators if isinstance(item, str)]):
            return not any(ref.kind == CLASS for ref in self._resolver.refs(owner, edge.caller))
        return True

    def _is_chosen(self, call: CallFacts, edge: Edge, facts: FunctionFacts) -> bool:
        """Whether a local name is called that stands for functions as they are: `spline = rational if exact else
        linear`, in whatever branch it is given them.
        """
        caller = self.facts(edge.caller)
        name = call.func
        if type(name) is not str or facts.in_class or name in caller.unclear or name in caller.computed:
            return False
        held = caller.binds.get(name, ())
        return bool(held) and all(
            type(value) is str and all(ref.kind == FUNCTION for ref in self._resolver.refs(value, edge.caller))
            for value in held
        )

    def _is_held(self, scope: Scope, name: str) -> bool:
        """Whether the class around a scope is given something for what goes by the name of a method."""
        cls = self._resolver.nesting.enclosing_class(scope)
        known = self._resolver.hierarchy.facts(cls) if cls.name else None
        return known is not None and (name in known.attributes or name in known.computed or name in known.unclear)

    def _is_of_instance(self, call: CallFacts, edge: Edge, facts: FunctionFacts) -> bool:
        """Whether an object is called, which runs its `forward` or `__call__` with the same arguments."""
        if facts.name not in _CALLED or call.func is None:
            return False
        return not any(ref.kind == "function" for ref in self._resolver.refs(call.func, edge.caller))


def own_parameters(facts: FunctionFacts) -> list[Param]:
    """What a call passes: `self` is not."""
    params = [param for param in facts.params if not param.name.startswith("*")]
    return params[1:] if facts.in_class and "staticmethod" not in facts.decorators else params


def default_of(facts: FunctionFacts, name: str) -> Value:
    """The default of a parameter, as it is written."""
    return next((param.default for param in own_parameters(facts) if param.name.lstrip("=") == name), None)


def _default(facts: FunctionFacts, name: str) -> Value:
    """The default of a parameter where it is a literal, which is the same wherever it is written."""
    found = default_of(facts, name)
    return found if type(found) is tuple and found[0] == "const" else None


def place_of(facts: FunctionFacts, name: str) -> int | None:
    """Which positional argument a parameter is, None for one that is given by its name alone."""
    names = [param.name for param in own_parameters(facts) if not param.name.startswith("=")]
    return names.index(name) if name in names else None


def _applies(func: Value, facts: FunctionFacts) -> bool:
    """Whether a call runs the `forward` of an autograd function, whose context stands in for its object."""
    return facts.name == "forward" and bool(facts.in_class) and last_name(func) == "apply"
