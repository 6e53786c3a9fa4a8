"""Who calls whom: resolved call edges between the project's functions, and the callbacks handed to libraries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.entered import entered
from perflint.analysis.call_graph.handing import Handing, place_of_rest
from perflint.analysis.call_graph.named_methods import connect_named_methods
from perflint.analysis.call_graph.stand_ins import connect_iterators, connect_stand_ins
from perflint.analysis.call_graph.unknown_receivers import Guesses
from perflint.analysis.evidence import last_name as last_of
from perflint.analysis.linking import Connected, Packing, Together
from perflint.analysis.names.declared import is_abstract, is_marked, is_property
from perflint.analysis.names.fitting import has_all, may_take
from perflint.analysis.names.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Refs, Scope, few
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts, ReadFacts, Value, record
from perflint.torch_model import wrappers
from perflint.torch_model.frameworks import AUTOGRAD_FUNCTIONS
from perflint.torch_model.step_frameworks import CONTAINERS_OF_CALLED, RUN_BY_CALLS

_NO_FACTS = FunctionFacts("", 0, 0, "", "")
#: How deep parameters are followed to what callers pass, which may be parameters again.
_DEEPEST = 12
#: Library functions that keep a function for a single later moment, or run it somewhere else.
_KEEPERS = frozenset(
    {"Thread", "Process", "Timer", "register", "signal", "spawn", "Popen", "set_defaults", "add_argument"}
)


class _Callee(NamedTuple):
    """What all calls of a callee run: functions of the project, and those that stand in for them for some of the
    objects that it is of, with how sure that is.
    """

    targets: list[Scope]
    inherited: dict[Scope, Confidence]
    is_library: bool = False


_LIBRARY = _Callee([], {}, is_library=True)
#: What surely runs nothing of the project, unless it is handed a function.
_DULL = _Callee([], {}, is_library=True)


def _is_of_self(func: str, targets: list[Scope]) -> bool:
    """Whether a call runs a method of its own object: `self.step()` and `self(x)`, and not `self.model(x)`."""
    base, _, name = func.rpartition(".")
    if base == "self":
        return all(target.function.rpartition(".")[2] == name for target in targets)
    return func == "self"


#: What says nothing of a module but that it is one.
_ANY_MODULE = "torch.nn.Module"


class CallGraph:
    """Edges both ways. Built in two rounds: the second knows what callers pass for parameters."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.outgoing: dict[Scope, list[Edge]] = defaultdict(list)
        self.incoming: dict[Scope, list[Edge]] = defaultdict(list)
        #: Of names that something of the project has.
        self.unresolved: dict[Scope, list[CallFacts]] = defaultdict(list)
        #: Functions that are put in the place of the `forward` of what is not of the project.
        self.replacing_forwards: frozenset[Scope] = frozenset()
        self.handing = Handing(self)
        self._guesses = Guesses(resolver)
        self._params: dict[tuple[Scope, str], Refs] = {}
        self._resolving: set[tuple[Scope, str]] = set()
        nesting = resolver.nesting
        #: While edges are added: each scope once.
        self._scopes = {scope: scope for scope, _ in nesting.functions}
        #: By file, callees that are the same in all its functions.
        self._global: dict[str, dict[str, _Callee]] = {path: {} for path in resolver.summaries}
        #: Of functions that are called, what stands in for them where they are abstract.
        self._stand_ins: dict[Scope, list[Scope]] = {}
        #: Functions that give back one they define: `schedule(self.make_step())` runs what that gives.
        self._makers = {name for scope, _ in nesting.functions if (name := self._maker_of(scope))}
        #: The files that hold lambdas.
        self._with_lambdas = {scope.path for scope, _ in nesting.functions if scope.function.startswith("<lambda")}
        #: All that an attribute must be called to be something of the project.
        self._names = _attribute_names(resolver)

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
        self.resolver.forget()
        self.resolver.find_registries()
        # What is made by a plain name, `block(shortcut=shortcut)` of a parameter, is what others ask about.
        by_name = [item for item in waiting if _is_of_name(functions[item[0]][1].calls[item[1]], functions[item[0]][1])]
        if by_name:
            self._connect_waiting(by_name)
            self._params.clear()
            self.resolver.forget()
            self.resolver.find_registries()
        done = set(by_name)
        self._connect_waiting([item for item in waiting if item not in done] if done else waiting)
        self._global.clear()
        self._stand_ins.clear()
        self._connect_properties()
        for item in entered(self.resolver):
            self._add(item.caller, item.callee, item.context, item.line, Confidence.HIGH, -1)
        connect_named_methods(self.resolver, self)
        connect_iterators(self.resolver, self)
        self.replacing_forwards = connect_stand_ins(self.resolver, self)
        self._scopes.clear()

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
                    if not (call.args or call.keywords) or not self._given_functions(call, facts):
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
                found += [Ref(FUNCTION, item.path, item.function) for item in self._overriding(value, caller)]
        self._resolving.discard(key)
        refs = few(found)
        if not self._resolving:
            self._params[key] = refs
        return refs

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

    def argument(self, edge: Edge, name: str) -> object:
        """The value the call of `edge` passes for the callee's parameter `name`, None where it passes none."""
        if edge.callback or edge.index < 0:
            return None
        call = self.facts(edge.caller).calls[edge.index]
        for key, value in call.keywords:
            if key == name:
                return value
        place = self.handing.places(edge.callee).get(name)
        if place is None or place >= len(call.args) or place_of_rest(call, self.facts(edge.caller)) <= place:
            return None
        return call.args[place]

    def _is_dull(self, func: Value) -> bool:
        """Whether a callee is surely nothing of the project, by its name: `x.amax`."""
        if type(func) is str:
            _, dot, name = func.rpartition(".")
            return bool(dot) and name not in self._names
        return type(func) is tuple and func[0] == "attr" and func[2] not in self._names

    def _given_functions(self, call: CallFacts, facts: FunctionFacts) -> Sequence[Value]:
        """What a call is given that may be a function of the project."""
        named = self.resolver.nesting.by_name
        found = []
        for value in _given(call):
            if type(value) is str:
                last = value.rpartition(".")[2] if "." in value else value
                if last in named or (value in facts.binds and self._is_bound(value, facts)):
                    found.append(value)
            elif value is not None and (value[0] == "lambda" or (value[0] == "call" and self._makes_function(value))):
                found.append(value)
        return found

    def _is_bound(self, name: str, facts: FunctionFacts) -> bool:
        """Whether a function binds a name to what may be a function of the project."""
        named = self.resolver.nesting.by_name
        for value in facts.binds[name]:
            if isinstance(value, str):
                if value.rpartition(".")[2] in named:
                    return True
            elif value is not None and (value[0] == "lambda" or (value[0] == "call" and self._makes_function(value))):
                return True
        return False

    def _maker_of(self, scope: Scope) -> str:
        """The name of the function that a function is defined in and given back by, empty where there is none."""
        outer, _, name = scope.function.rpartition(".<locals>.")
        maker = self.resolver.summaries[scope.path].functions.get(outer) if outer else None
        return maker.name if maker is not None and name in maker.returns else ""

    def _makes_function(self, call: Value) -> bool:
        func = call[1]
        return isinstance(func, str) and (func.rpartition(".")[2] in self._makers or func.endswith("partial"))

    def _connect(self, scope: Scope, facts: FunctionFacts, index: int, callee: _Callee, *, guess: bool) -> bool:
        call = facts.calls[index]
        targets, inherited, is_library = callee
        passes = call.args or call.keywords
        if is_library and not guess and (_maps_a_name(call) or self._is_any_module(call.func, scope, facts)):
            return False  # what a name stands for may be what callers pass
        if passes and not targets and not inherited:
            for handed in self._callbacks(call, scope, facts):
                self._add(scope, handed, call.context, call.line, Confidence.MEDIUM, index, callback=True)
        if is_library:
            return True
        if len(targets) > 1:
            targets = [item for item in targets if self._may_run(item, call)] or targets
        confidence = Confidence.HIGH
        if guess and not targets and not inherited:
            targets = self._guesses.targets(call, facts)
            confidence = Confidence.MEDIUM
            if not targets:
                # One of these runs there, and what it is given may be meant for another one.
                inherited = dict.fromkeys(self._guesses.of_its_kind(call), confidence)
        for target in targets:
            self._add(scope, target, call.context, call.line, confidence, index)
            backward = self._backward_of(target)
            if backward is not None:
                self._add(scope, backward, call.context, call.line, confidence, -1)
        for target, sure in inherited.items() if inherited else ():
            missing = sure is not Confidence.HIGH and not any(self._is_marked(item) for item in targets)
            self._add(scope, target, call.context, call.line, sure, index, stands_in=missing)
        if passes and targets:
            for handed in self._handed_on(call, scope, targets):
                self._add(scope, handed, call.context, call.line, Confidence.MEDIUM, index, callback=True)
        return bool(targets or inherited)

    def _is_any_module(self, func: Value, scope: Scope, facts: FunctionFacts) -> bool:
        """Whether a call is of a parameter that is declared as a module, and as no class in particular."""
        if type(func) is not str:
            return False
        name = func.partition(".")[0]
        declared = next((param.annotation for param in facts.params if param.annotation and param.name == name), "")
        if not declared:
            return False
        return any(ref.name == _ANY_MODULE for ref in self.resolver.annotated(declared, scope))

    def _may_run(self, target: Scope, call: CallFacts) -> bool:
        """Whether one of those that a call may run takes what it hands over. A method that is called as one has nothing
        of its own.
        """
        facts = self.facts(target)
        is_method = bool(facts.in_class) and type(call.func) is str and call.func.endswith(f".{facts.name}")
        return may_take(facts, call.args, call.keywords) and not (
            is_method and not has_all(facts, call.args, call.keywords)
        )

    def _backward_of(self, target: Scope) -> Scope | None:
        """What autograd runs once for each forward of an autograd function."""
        owner, _, name = target.function.rpartition(".")
        backward = record(Scope, (target.path, f"{owner}.backward"))
        if name != "forward" or backward.function not in self.resolver.summaries[target.path].functions:
            return None
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
        targets = self.targets(func, scope)
        if targets is None:
            return _LIBRARY
        inherited = self._overrides(func, scope, targets)
        return record(_Callee, (targets, inherited, False))

    def _overrides(self, func: Value, scope: Scope, targets: list[Scope]) -> dict[Scope, Confidence]:
        """What `self.method()` runs where `self` is of a class that derives from the method's own."""
        if isinstance(func, str) and _is_of_self(func, targets):
            found = dict.fromkeys(self._overriding(func, scope), Confidence.HIGH)
        else:
            found = {}
            for target in targets:
                stand_ins = self._stand_ins.get(target)
                if stand_ins is None:
                    stand_ins = self._stand_ins[target] = self._implementations(target)
                if stand_ins:
                    found.update(dict.fromkeys(stand_ins, Confidence.MEDIUM))
            if targets and isinstance(func, str) and "." in func:
                found.update(dict.fromkeys(self._below_declared(func, scope, targets), Confidence.MEDIUM))
        return {target: sure for target, sure in found.items() if target not in targets} if found else found

    def _below_declared(self, func: str, scope: Scope, targets: list[Scope]) -> Iterator[Scope]:
        """What a method may be of an object whose class an annotation says: any of the classes below may be given."""
        base, _, method = func.rpartition(".")
        declared: bool | None = None
        for target in targets:
            name = target.function.rpartition(".")[2]
            if name != method:
                base = func  # `self.model(batch)` runs the forward of what the attribute holds
            cls = self.facts(target).in_class
            children = self._children_with(Ref(CLASS, target.path, cls), name) if cls else ()
            if children and declared is None:
                declared = self._is_declared(base, scope)
            if children and declared:
                for child in children:
                    yield from self._methods_of(child, (name,))

    def _is_declared(self, dotted: str, scope: Scope) -> bool:
        """Whether what goes by a name is of a class by annotation, itself or the parameter that it is given from."""
        written = self.resolver.written
        if any(True for _ in written.annotations(dotted, scope)):
            return True
        return any(
            isinstance(value, str) and "." not in value and any(True for _ in written.annotations(value, where))
            for value, where in written.definitions(dotted, scope)
        )

    def _overriding(self, func: str, scope: Scope) -> list[Scope]:
        cls = self.resolver.nesting.enclosing_class(scope)
        wanted = func.removeprefix("self.") if func != "self" else "forward"
        children = self._children_with(cls, wanted) if cls.name else ()
        if not children:
            return []
        method = scope.function.removeprefix(f"{cls.name}.").partition(".<locals>")[0]
        return [
            target
            for child in children
            if self._inherits(child, cls, method)
            for target in self._methods_of(Ref(INSTANCE, child.path, child.name), (wanted,))
        ]

    def _children_with(self, cls: Ref, method: str) -> Sequence[Ref]:
        """The classes that derive from one and do not have a method from it: those that define it, or have it from
        what does and is none of its own bases. Where nothing else defines it, nobody has to be asked.
        """
        hierarchy = self.resolver.hierarchy
        children = hierarchy.below(cls)
        if not children:
            return ()
        definers = {
            (scope.path, facts.in_class)
            for scope, facts in self.resolver.nesting.by_name.get(method, ())
            if facts.in_class
        }
        definers.difference_update([(base.path, base.name) for base in hierarchy.mro(cls)])
        if not definers:
            return ()
        return [child for child in children if any((base.path, base.name) in definers for base in hierarchy.mro(child))]

    def _inherits(self, child: Ref, cls: Ref, method: str) -> bool:
        """Whether a method of `cls` runs for instances of `child`: unchanged, or because the child's asks `super()`."""
        found = self.resolver.method(child, method)
        if found is None or found == Ref(FUNCTION, cls.path, f"{cls.name}.{method}"):
            return True
        facts = self.resolver.summaries[found.path].functions[found.name]
        return any(
            isinstance(call.func, tuple)
            and call.func[0] == "attr"
            and call.func[2] == method
            and "super" in str(call.func)
            for call in facts.calls
        )

    def _is_marked(self, target: Scope) -> bool:
        return is_marked(self.resolver.summaries[target.path].functions[target.function])

    def _implementations(self, target: Scope) -> list[Scope]:
        """The definitions that stand in for an abstract method."""
        facts = self.resolver.summaries[target.path].functions[target.function]
        if not facts.in_class or not is_abstract(facts):
            return []
        children = self.resolver.hierarchy.below(Ref(CLASS, target.path, facts.in_class))
        return [
            Scope(child.path, f"{child.name}.{facts.name}")
            for child in children
            if f"{child.name}.{facts.name}" in self.resolver.summaries[child.path].functions
        ]

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
        found: list[Scope] = []
        external = False
        for ref in refs:
            if ref.kind == FUNCTION:
                found.append(record(Scope, (ref.path, ref.name)))
            elif ref.kind == CLASS:
                external = True
                found += self._methods_of(ref, ("__init__", "__post_init__"))
            elif ref.kind == INSTANCE:
                found += self._methods_of(ref, ("forward", "__call__")) or self._run_by_call(ref)
                external = external or not found
            elif ref.kind in (EXTERNAL, EXTERNAL_INSTANCE):
                external = True
        if external and not found:
            found += self._sequential(func, scope)
        return list(dict.fromkeys(found)) or (None if external else [])

    def _run_by_call(self, ref: Ref) -> list[Scope]:
        """What calling an object runs by a method of its library's class: `update` of a metric."""
        derives = self.resolver.hierarchy.derives
        names = dict.fromkeys([method for base, method in RUN_BY_CALLS.items() if derives(ref, base)])
        return self._methods_of(ref, tuple(names)) if names else []

    def _methods_of(self, ref: Ref, names: tuple[str, ...]) -> list[Scope]:
        found = [self.resolver.method(ref, name) for name in names]
        return [record(Scope, (item.path, item.name)) for item in found if item is not None]

    def _sequential(self, func: Value, scope: Scope) -> list[Scope]:
        """Calling an `nn.Sequential` runs the `forward` of what it holds, a `MetricCollection` the `update`."""
        if not isinstance(func, str):
            return []
        found = []
        for definition, where in self.resolver.written.definitions(func, scope):
            value = _unchained(definition)
            if not isinstance(value, tuple) or value[0] != "call":
                continue
            maker = last_of(value[1])
            method = "forward" if maker.endswith("Sequential") else CONTAINERS_OF_CALLED.get(maker)
            whole = value[2][0] if maker in CONTAINERS_OF_CALLED and value[2] else value
            held = self.resolver.elements(whole, where) if method is not None else ()
            found += [item for ref in held if ref.kind == INSTANCE for item in self._methods_of(ref, (method or "",))]
        return found

    def _callbacks(self, call: CallFacts, scope: Scope, facts: FunctionFacts) -> list[Scope]:
        """Project functions handed to a library: it runs them about where it is called."""
        given = call.args[:1] if _maps_a_name(call) else self._given_functions(call, facts)
        if not given or (isinstance(call.func, str) and call.func.rpartition(".")[2] in _KEEPERS):
            return []
        found: list[Scope] = []
        for value in given:
            found += [Scope(ref.path, ref.name) for ref in self.resolver.refs(value, scope) if ref.kind == FUNCTION]
        return list(dict.fromkeys(found)) if found else found

    def _handed_on(self, call: CallFacts, scope: Scope, targets: list[Scope]) -> list[Scope]:
        """Functions defined where they are handed to a function of the project that runs what it is handed:
        `apply_to_sample(_move_to_cuda, sample)`. Each is as hot as its own call, whoever else calls that function.
        """
        inner = self.resolver.nesting.inner(scope)
        if not inner and scope.path not in self._with_lambdas:
            return []
        # Few calls hand on a function: that is told first, without a call for each value.
        local = [value for value in _given(call) if (type(value) is tuple and value[0] == "lambda") or value in inner]
        if not local:
            return []
        given: list[tuple[int | str, Value]] = [*enumerate(call.args), *call.keywords]
        found: list[Scope] = []
        for place, value in given:
            if value not in local:
                continue
            for target in targets:
                if self._runs_parameter(target, place):
                    refs = self.resolver.refs(value, scope)
                    found += [Scope(ref.path, ref.name) for ref in refs if ref.kind == FUNCTION]
        return list(dict.fromkeys(found))

    def _runs_parameter(self, target: Scope, place: int | str) -> bool:
        """Whether a function, or one defined in it, calls what it is given at `place`."""
        functions = self.resolver.summaries[target.path].functions
        facts = functions[target.function]
        names = [param.name.lstrip("=") for param in facts.params]
        if facts.in_class and names and "staticmethod" not in facts.decorators:
            names = names[1:]
        name = place if isinstance(place, str) else names[place] if place < len(names) else ""
        if name not in names:
            return False
        inside = f"{target.function}.<locals>."
        return any(
            call.func == name
            for qualname, other in functions.items()
            if qualname == target.function or qualname.startswith(inside)
            for call in other.calls
        )


def _is_of_name(call: CallFacts, facts: FunctionFacts) -> bool:
    """Whether a call makes something by the name of a parameter, and hands it something."""
    if type(call.func) is not str or "." in call.func or not (call.args or call.keywords):
        return False
    return any(param.name.lstrip("=") == call.func for param in facts.params)


def _unchained(value: Value) -> Value:
    """`nn.Sequential(...)` of `nn.Sequential(...).to(device).train()`."""
    while isinstance(value, tuple) and value[0] == "call" and isinstance(value[1], tuple) and value[1][0] == "attr":
        if value[1][2] not in wrappers.MODULE_CHAIN:
            break
        value = value[1][1]
    return value


def _maps_a_name(call: CallFacts) -> bool:
    """Whether what a name stands for is run on each element: `map(function, *rows)`."""
    return call.func == "map" and bool(call.args) and isinstance(call.args[0], str)


def _attribute_names(resolver: Resolver) -> set[str]:
    """The names that functions, classes and attributes of a project have, and what its modules bind and import."""
    nesting = resolver.nesting
    found = set(nesting.by_name) | wrappers.WRAPPED_ATTRIBUTES | {"apply", "remote"}
    for summary in resolver.summaries.values():
        found.update(summary.imports, summary.functions[MODULE].binds)
        for qualname, cls in summary.classes.items():
            found.add(qualname.rpartition(".")[2])
            found.update(cls.attributes, cls.annotations)
    for dotted in nesting.dotted.values():
        found.update([name.rpartition(".")[2] for name in dotted])
    return found


def _given(call: CallFacts) -> Sequence[Value]:
    return [*call.args, *[value for _, value in call.keywords]] if call.keywords else call.args
