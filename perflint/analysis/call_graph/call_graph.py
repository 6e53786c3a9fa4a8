"""Who calls whom: resolved call edges between the project's functions, and the callbacks handed to libraries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from perflint.analysis.call_graph.compositions import transforms_of
from perflint.analysis.call_graph.computed_methods import connect_computed_methods
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.entered import entered
from perflint.analysis.call_graph.handed_functions import HandedFunctions, maps_a_name
from perflint.analysis.call_graph.handing import Handing, place_of_rest
from perflint.analysis.call_graph.items_of_items import connect_items
from perflint.analysis.call_graph.looked_up import LookedUp
from perflint.analysis.call_graph.made_objects import MadeObjects
from perflint.analysis.call_graph.named_methods import connect_named_methods
from perflint.analysis.call_graph.overriding import Overriding, methods_of
from perflint.analysis.call_graph.picked_parts import PickedParts
from perflint.analysis.call_graph.sequences import sequences_of
from perflint.analysis.call_graph.stand_ins import connect_iterators, connect_stand_ins
from perflint.analysis.call_graph.unknown_receivers import Guesses
from perflint.analysis.call_graph.waiting import in_turn
from perflint.analysis.linking import Connected, Packing, Together
from perflint.analysis.names.declared import is_marked, is_property
from perflint.analysis.names.fitting import has_all, may_take
from perflint.analysis.names.namespaces import names_in
from perflint.analysis.names.refs import (
    CLASS,
    EXTERNAL,
    EXTERNAL_INSTANCE,
    FUNCTION,
    INSTANCE,
    Ref,
    Refs,
    Scope,
    few,
    instances_rather,
    is_of_itself,
)
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts, ReadFacts, Value, record
from perflint.torch_model import wrappers
from perflint.torch_model.frameworks import AUTOGRAD_FUNCTIONS
from perflint.torch_model.step_frameworks import RUN_BY_CALLS

_NO_FACTS = FunctionFacts("", 0, 0, "", "")
#: How deep parameters are followed to what callers pass, which may be parameters again.
_DEEPEST = 12
#: What says nothing of a module but that it is one.
_ANY_MODULE = "torch.nn.Module"


class _Callee(NamedTuple):
    """What all calls of a callee run: functions of the project, and those that stand in for them for some of the
    objects that it is of, with how sure that is.
    """

    targets: list[Scope]
    inherited: dict[Scope, Confidence]
    is_library: bool = False


_LIBRARY = _Callee([], {}, is_library=True)
_SO_FAR_LIBRARY = _Callee([], {}, is_library=True)  # before it is known what callers pass and registries hold
_DULL = _Callee([], {}, is_library=True)  # what surely runs nothing of the project, unless it is handed a function


class CallGraph:
    """Edges both ways. Built in two rounds: the second knows what callers pass for parameters."""

    def __init__(self, resolver: Resolver, configured: Callable[[], frozenset[str]] = frozenset) -> None:
        self.resolver = resolver
        self.outgoing: dict[Scope, list[Edge]] = defaultdict(list)
        self.incoming: dict[Scope, list[Edge]] = defaultdict(list)
        #: Of names that something of the project has.
        self.unresolved: dict[Scope, list[CallFacts]] = defaultdict(list)
        #: Functions that are put in the place of the `forward` of what is not of the project.
        self.replacing_forwards: frozenset[Scope] = frozenset()
        self.handing = Handing(self)
        self._guesses = Guesses(resolver)
        self._picked = PickedParts(resolver)
        self._looked_up = LookedUp(resolver, configured)
        self._handed = HandedFunctions(resolver)
        self._overriding = Overriding(resolver)
        self._params: dict[tuple[Scope, str], Refs] = {}
        self._resolving: set[tuple[Scope, str]] = set()
        nesting = resolver.nesting
        #: While edges are added: each scope once.
        self._scopes = {scope: scope for scope, _ in nesting.functions}
        #: By file, callees that are the same in all its functions.
        self._global: dict[str, dict[str, _Callee]] = {path: {} for path in resolver.summaries}
        #: All that an attribute must be called to be something of the project.
        self.names = _attribute_names(resolver)

    def build(self, together: Together | None = None) -> None:
        """Connect all calls: first those that are plain to see, then the others by what callers pass and by guesses.

        The first takes nothing but summaries, so processes that work `together` share it.
        """
        functions = self.resolver.nesting.functions
        if together is None:
            waiting = self._connect_plain(range(len(functions)))
        else:
            waiting = self._connect_plain_with(together)
        self.resolver.param_refs = self.passed
        self.resolver.param_values = self.values_passed
        self.resolver.made_refs = MadeObjects(self).passed
        self.resolver.forget()
        self.resolver.find_registries()
        # What is made by a plain name, `block(shortcut=shortcut)` of a parameter, is what others ask about.
        by_name, others, later = in_turn(waiting, functions, self.incoming)
        if by_name:
            self._connect_waiting(by_name)
            self._params.clear()
            self.resolver.forget()
            self.resolver.find_registries()
        self._connect_waiting(others)
        self._connect_last(later)
        self._global.clear()
        self._overriding.forget()
        self._connect_properties()
        for item in entered(self.resolver):
            self._add(item.caller, item.callee, item.context, item.line, Confidence.HIGH, -1)
        connect_named_methods(self.resolver, self)
        connect_computed_methods(self.resolver, self)
        connect_iterators(self.resolver, self)
        connect_items(self.resolver, self)
        self.replacing_forwards = connect_stand_ins(self.resolver, self)
        self._scopes.clear()

    def _connect_last(self, later: list[tuple[int, int]]) -> None:
        """Connect calls of what functions are handed whose callers come out with the other calls."""
        scopes = {self.resolver.nesting.functions[number][0] for number, _ in later}
        self.resolver.forget_in(scopes)
        self._params = {key: refs for key, refs in self._params.items() if key[0] not in scopes}
        self._connect_waiting(later)

    def _connect_waiting(self, waiting: list[tuple[int, int]]) -> None:
        """Connect calls by what callers pass, and by guesses."""
        functions = self.resolver.nesting.functions
        for shared in self._global.values():
            shared.clear()
        last = None
        known: dict[Value, _Callee] = {}
        for number, index in waiting:
            scope, facts = functions[number]
            if scope is not last:
                known.clear()
                last = scope
            call = facts.calls[index]
            callee = known.get(call.func)
            if callee is None:
                callee = known[call.func] = self._new_callee(call.func, scope, facts)
            if not self._connect(scope, facts, index, callee, guess=True):
                self.unresolved[scope].append(call)

    def _connect_plain(self, numbers: range) -> list[tuple[int, int]]:
        """Connect the calls of some functions that are plain to see. The others: the places of function and call."""
        functions = self.resolver.nesting.functions
        waiting: list[tuple[int, int]] = []
        for number in numbers:
            scope, facts = functions[number]
            known: dict[Value, _Callee] = {}
            for index, call in enumerate(facts.calls):
                func = call.func
                callee = known.get(func)
                if callee is None:
                    callee = _DULL if self._is_dull(func) else self._new_callee(func, scope, facts)
                    known[func] = callee
                if callee is _DULL:
                    if not (call.args or call.keywords) or not self._handed.functions(call, facts):
                        continue
                    callee = self._new_callee(func, scope, facts)
                if not self._connect(scope, facts, index, callee, guess=False):
                    waiting.append((number, index))
        return waiting

    def _connect_plain_with(self, together: Together) -> list[tuple[int, int]]:
        functions = self.resolver.nesting.functions
        packing = Packing(functions)

        def work(numbers: range) -> bytes:
            waiting = self._connect_plain(numbers)
            edges = [edge for edges in self.outgoing.values() for edge in edges]
            self.outgoing.clear()
            self.incoming.clear()
            return packing.packed(Connected(edges, waiting))

        waiting: list[tuple[int, int]] = []
        for words in list(together.share(work, functions)):
            connected = packing.unpacked(words)
            waiting += connected.waiting
            for edge in connected.edges:
                self.outgoing[edge.caller].append(edge)
                self.incoming[edge.callee].append(edge)
        return waiting

    def _connect_properties(self) -> None:
        """Reading a property runs it."""
        functions = self.resolver.nesting.functions
        names = {facts.name for _, facts in functions if facts.in_class and facts.decorators and is_property(facts)}
        if not names:
            return
        for scope, facts in functions:
            for read in facts.reads:
                base, _, name = read.path.rpartition(".")
                if name in names:
                    self._connect_property(scope, base, name, read)

    def _connect_property(self, scope: Scope, base: str, name: str, read: ReadFacts) -> None:
        for ref in self.resolver.refs(base, scope):
            found = self.resolver.method(ref, name) if ref.kind == INSTANCE else None
            if found is not None and is_property(self.resolver.summaries[found.path].functions[found.name]):
                callee = Scope(found.path, found.name)
                self._add(scope, callee, read.context, read.line, Confidence.HIGH, -1)

    def passed(self, scope: Scope, name: str) -> Refs:
        """What the resolved callers of a function pass for its parameter `name`."""
        key = (scope, name)
        if key in self._params:
            return self._params[key]
        if key in self._resolving or len(self._resolving) > _DEEPEST:
            self.resolver.cut()
            return ()
        self._resolving.add(key)
        found: list[Ref] = []
        for value, caller in self.values_passed(scope, name):
            found += self.resolver.refs(value, caller)
            if type(value) is str and value.startswith("self.") and any(ref.kind == FUNCTION for ref in found):
                found += [Ref(FUNCTION, item.path, item.function) for item in self._overriding.below(value, caller)]
        if found:
            found += self._by_default(scope, name)
        self._resolving.discard(key)
        refs = few(found)
        if not self._resolving:
            self._params[key] = refs
        return refs

    def _by_default(self, scope: Scope, name: str) -> list[Ref]:
        """The functions and classes of the project that a parameter is by default, where a call passes nothing."""
        facts = self.facts(scope)
        default = next((param.default for param in facts.params if param.name.lstrip("=") == name), None)
        if not isinstance(default, str) or not self.handing.is_left_out(scope, name):
            return []
        return [ref for ref in self.resolver.refs(default, Scope(scope.path, facts.owner or MODULE)) if ref.path]

    def values_passed(self, scope: Scope, name: str) -> list[tuple[Value, Scope]]:
        """What the resolved callers of a function pass for its parameter `name`, each with where it is written."""
        facts = self.resolver.summaries[scope.path].functions.get(scope.function)
        if facts is None:
            return []
        known = self.resolver.nesting.positions(facts)
        if f"*{name}" in known:
            return self.handing.rest(scope)
        return self.handing.values(scope, name) if name in known else []

    def facts(self, scope: Scope) -> FunctionFacts:
        return self.resolver.summaries[scope.path].functions[scope.function]

    def abandon(self) -> None:
        """Nothing is being worked out any more."""
        self._resolving.clear()

    def argument(self, edge: Edge, name: str) -> Value:
        """The value the call of `edge` passes for the callee's parameter `name`, None where it passes none."""
        return self.argument_at(edge, name, self.handing.places(edge.callee).get(name))

    def argument_at(self, edge: Edge, name: str, place: int | None) -> Value:
        """The same, of a parameter that stands at a place among the arguments."""
        if edge.callback or edge.index < 0:
            return None
        caller = edge.caller
        facts = self.resolver.summaries[caller.path].functions[caller.function]
        call = facts.calls[edge.index]
        args, keywords = call.args, call.keywords
        for key, value in keywords:
            if key == name:
                return value
        if not args:
            return None
        if place is None or place >= len(args) or (keywords and place_of_rest(call, facts) <= place):
            return None
        return args[place]

    def _is_dull(self, func: Value) -> bool:
        """Whether a callee is surely nothing of the project, by its name: `x.amax`."""
        if type(func) is str:
            _, dot, name = func.rpartition(".")
            return bool(dot) and name not in self.names
        return type(func) is tuple and func[0] == "attr" and func[2] not in self.names

    def _connect(self, scope: Scope, facts: FunctionFacts, index: int, callee: _Callee, *, guess: bool) -> bool:
        call = facts.calls[index]
        targets, inherited, is_library = callee
        passes = call.args or call.keywords
        if is_library and not guess and (callee is _SO_FAR_LIBRARY or self._may_be_passed(call, scope, facts)):
            return False
        if passes and not targets and not inherited:
            for handed in self._handed.callbacks(call, scope, facts):
                self._add(scope, handed, call.context, call.line, Confidence.MEDIUM, index, callback=True)
            if is_library and type(call.func) is str and not self._is_foreign(call.func, scope.path, facts):
                for held in transforms_of(call.func, scope, self.resolver):
                    self._add(scope, held, call.context, call.line, Confidence.HIGH, index, callback=True)
        if is_library:
            return True
        if len(targets) > 1 and type(call.func) is str and call.func in facts.binds:
            targets = _made_or_run(targets, call, facts)
        if len(targets) + len(inherited or ()) > 1:
            able = [item for item in targets if self._may_run(item, call)]
            below = {item: sure for item, sure in (inherited or {}).items() if self._may_run(item, call)}
            targets, inherited = (able, below) if able or below else (targets, inherited)
        confidence, is_looked_up = Confidence.HIGH, False
        if guess and not targets and not inherited:
            targets = self._guesses.targets(call, facts)
            confidence = Confidence.MEDIUM
            if not targets:
                # One of these runs there, and what it is given may be meant for another one.
                meant = self._picked.targets(call, scope, facts) or self._guesses.of_its_kind(call, scope.path)
                meant = meant or self._guesses.of_its_family(call)
                inherited = dict.fromkeys(meant or self._guesses.of_network(call), confidence)
            if not targets and not inherited:
                for looked, sure in self._looked_up.of_call(call, scope).items():
                    doubted = sure is Confidence.LOW
                    self._add(scope, looked, call.context, call.line, sure, index, stands_in=doubted)
                    is_looked_up = True
        for target in targets:
            self._add(scope, target, call.context, call.line, confidence, index)
            backward = self._backward_of(target)
            if backward is not None:
                self._add(scope, backward, call.context, call.line, confidence, -1)
        for target, sure in inherited.items() if inherited else ():
            missing = sure is not Confidence.HIGH and not any(is_marked(self.facts(item)) for item in targets)
            self._add(scope, target, call.context, call.line, sure, index, stands_in=missing)
        if passes and targets:
            for handed in self._handed.handed_on(call, scope, targets):
                self._add(scope, handed, call.context, call.line, Confidence.MEDIUM, index, callback=True)
        return bool(targets or inherited or is_looked_up)

    def _may_be_passed(self, call: CallFacts, scope: Scope, facts: FunctionFacts) -> bool:
        """Whether what a name stands for may be what callers pass: a parameter that is declared as a module, and as no
        class in particular.
        """
        if maps_a_name(call) or type(call.func) is not str:
            return maps_a_name(call)
        name = call.func.partition(".")[0]
        declared = next((param.annotation for param in facts.params if param.annotation and param.name == name), "")
        return bool(declared) and any(ref.name == _ANY_MODULE for ref in self.resolver.annotated(declared, scope))

    def _may_run(self, target: Scope, call: CallFacts) -> bool:
        """Whether one of those that a call may run takes what it hands over. A method that is called as one has nothing
        of its own, nor has what runs an object that is called.
        """
        facts = self.facts(target)
        func = call.func
        is_method = bool(facts.in_class) and (
            func.endswith(f".{facts.name}") if type(func) is str else facts.name in ("forward", "__call__")
        )
        return may_take(facts, call.args, call.keywords) and not (
            is_method and not has_all(facts, call.args, call.keywords)
        )

    def _backward_of(self, target: Scope) -> Scope | None:
        """What autograd runs once for each forward of an autograd function."""
        owner, _, name = target.function.rpartition(".")
        if name != "forward" or f"{owner}.backward" not in self.resolver.summaries[target.path].functions:
            return None
        backward = record(Scope, (target.path, f"{owner}.backward"))
        cls = Ref(CLASS, target.path, owner)
        return backward if self.resolver.hierarchy.derives(cls, *AUTOGRAD_FUNCTIONS) else None

    def _new_callee(self, func: Value, scope: Scope, facts: FunctionFacts) -> _Callee:
        nesting = self.resolver.nesting
        if type(func) is not str:
            return self._evaluated(func, scope)
        if scope.function == MODULE or not nesting.is_global(func, scope):
            return _LIBRARY if self._is_foreign(func, scope.path, facts) else self._evaluated(func, scope)
        shared = self._global[scope.path]
        callee = shared.get(func)
        if callee is None:
            foreign = self._is_foreign(func, scope.path, _NO_FACTS)
            callee = _LIBRARY if foreign else self._evaluated(func, nesting.module(scope.path))
            shared[func] = callee
        return callee

    def _is_foreign(self, func: str, path: str, facts: FunctionFacts) -> bool:
        """Whether a callee is plainly a library's function: most are, and need no second thought."""
        first, _, rest = func.partition(".")
        return (
            bool(rest)
            and first not in facts.binds
            and func not in facts.binds
            and self.resolver.imports.is_foreign(first, path)
        )

    def _evaluated(self, func: Value, scope: Scope) -> _Callee:
        leans = self.resolver.leans
        targets = self.targets(func, scope)
        if targets is None:
            is_dotted = type(func) is not str or "." in func  # a class that is a parameter's default waits elsewhere
            return _SO_FAR_LIBRARY if is_dotted and leans != self.resolver.leans else _LIBRARY
        inherited = self._overriding.of_call(func, scope, targets)
        return record(_Callee, (targets, inherited, False))

    def _add(
        self,
        caller: Scope,
        callee: Scope,
        context: int,
        line: int,
        confidence: Confidence,
        index: int,
        callback: bool = False,  # noqa: FBT001, FBT002 - as the edge has it
        *,
        stands_in: bool = False,
    ) -> None:
        callee = self._scopes[callee]
        self.add(record(Edge, (caller, callee, context, line, confidence, index, callback, stands_in)))

    def add(self, edge: Edge) -> None:
        self.outgoing[edge.caller].append(edge)
        self.incoming[edge.callee].append(edge)

    def targets(self, func: Value, scope: Scope) -> list[Scope] | None:
        """The project functions that calling a callee runs; None when it is known to be a library's."""
        refs = self.resolver.refs(func, scope)
        if not refs:
            return []
        if len(refs) == 1 and refs[0].kind == FUNCTION:
            return [record(Scope, (refs[0].path, refs[0].name))]
        if len(refs) > 1 and not self._rebinds(func, scope):
            refs = instances_rather(refs)
        found: list[Scope] = []
        external = False
        for ref in refs:
            if ref.kind == FUNCTION:
                found.append(record(Scope, (ref.path, ref.name)))
            elif ref.kind == CLASS:
                external = True
                found += methods_of(self.resolver, ref, ("__init__", "__post_init__"))
            elif ref.kind == INSTANCE:
                found += methods_of(self.resolver, ref, ("forward", "__call__")) or self._run_by_call(ref)
                external = external or not found
            elif ref.kind in (EXTERNAL, EXTERNAL_INSTANCE):
                external = external or not wrappers.is_of_what_was_saved(ref.name)
        if external and not found:
            found += sequences_of(func, scope, self.resolver)
        return list(dict.fromkeys(found)) or (None if external else [])

    def _rebinds(self, func: Value, scope: Scope) -> bool:
        """Whether a function calls a class by a name that then stands for the object: `model = model(width)`."""
        binds = self.facts(scope).binds.get(func, ()) if type(func) is str else ()
        return any(is_of_itself(value, func) for value in binds)

    def _run_by_call(self, ref: Ref) -> list[Scope]:
        """What calling an object runs by a method of its library's class: `update` of a metric."""
        derives = self.resolver.hierarchy.derives
        names = dict.fromkeys([method for base, method in RUN_BY_CALLS.items() if derives(ref, base)])
        return methods_of(self.resolver, ref, tuple(names)) if names else []


def _made_or_run(targets: list[Scope], call: CallFacts, facts: FunctionFacts) -> list[Scope]:
    """Of `model = model(width)` the constructor, and of another call of the name what runs an object of the class."""
    values = [value for value in facts.binds[call.func] if is_of_itself(value, call.func)]
    if not values:
        return targets
    makes = ("call", call.func, call.args, call.keywords) in values
    return [item for item in targets if item.function.endswith(("__init__", "__post_init__")) is makes] or targets


def _attribute_names(resolver: Resolver) -> set[str]:
    """The names that functions, classes and attributes of a project have, and what its modules bind and import."""
    nesting = resolver.nesting
    found = set(nesting.by_name) | wrappers.WRAPPED_ATTRIBUTES | {"apply", "remote"}
    for summary in resolver.summaries.values():
        found.update(summary.imports, summary.functions[MODULE].binds, names_in(summary))
        for qualname, cls in summary.classes.items():
            found.add(qualname.rpartition(".")[2])
            found.update(cls.attributes, cls.annotations)
    for dotted in nesting.dotted.values():
        found.update([name.rpartition(".")[2] for name in dotted])
    return found
