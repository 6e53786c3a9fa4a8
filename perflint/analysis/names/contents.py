"""What the program puts into containers: items that are stored, appended and registered, by the container they go into.

A registry is a container with a function that fills it, which is called where a class or function is defined. A
container inside an instance, as `self._items` of a class `Registry`, has contents of its own for each instance: in the
class they are one placeholder, which a call on an instance that is known by name replaces by what that one holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from perflint.analysis.names.containers import Container, Homes, outermost
from perflint.analysis.names.hierarchy import Hierarchy
from perflint.analysis.names.nesting import Nesting
from perflint.analysis.names.refs import (
    CLASS,
    EXTERNAL,
    EXTERNAL_INSTANCE,
    FUNCTION,
    INSTANCE,
    ParamRefs,
    ParamValues,
    Ref,
    Refs,
    Scope,
    argument,
    few,
    instance_of,
)
from perflint.ir.summary import MODULE, FunctionFacts, Summary, Value
from perflint.torch_model import registries

#: A class or function that is in some instance of a registry, and what calling one gives.
REGISTERED = "registered"
REGISTERED_INSTANCE = "registered instance"
_PLACEHOLDERS = (REGISTERED, REGISTERED_INSTANCE)
#: Answers of so many parts are not gone through again and again.
_MANY = 8


class Resolving(Protocol):
    """What contents ask of the resolver that they answer for."""

    summaries: Mapping[str, Summary]
    leans: int
    param_refs: ParamRefs | None
    param_values: ParamValues | None
    nesting: Nesting

    def refs(self, value: Value, scope: Scope) -> Refs: ...


class _Stored(NamedTuple):
    """An item that a function puts into what it calls `container`."""

    container: str
    item: Value
    scope: Scope


class _Registries(NamedTuple):
    """What registries hold; by class, its instances that are registries; containers inside instances of such."""

    held: dict[Container, list[Ref]]
    instances: dict[Ref, list[Container]]
    inside: dict[Container, Ref]


_NO_REGISTRIES = _Registries({}, {}, {})


class Contents:
    """Answers for one resolver."""

    def __init__(
        self, resolver: Resolving, hierarchy: Hierarchy, homes: Homes, functions: list[tuple[Scope, FunctionFacts]]
    ) -> None:
        self._resolver = resolver
        self._hierarchy = hierarchy
        self._homes = homes
        self._functions = functions
        self._stored: dict[str, list[_Stored]] | None = None
        self._registries: _Registries | None = None
        self._placeholders: dict[int, tuple[Refs, bool]] = {}

    def forget(self) -> None:
        """Drop what was concluded before it was known what callers pass."""
        self._registries = None
        self._placeholders.clear()

    def items(self, dotted: str, scope: Scope) -> Iterator[Ref]:
        """What is put into a container after it was made."""
        stored = self._all_stored().get(dotted.rpartition(".")[2], ())
        registries = self._all_registries()
        if not stored and not registries.held:
            return
        container = self._homes.container(dotted, scope)
        if container is None:
            return
        if container in registries.inside:
            owner = registries.inside[container]
            yield Ref(REGISTERED, owner.path, owner.name)
            return
        yield from registries.held.get(container, ())
        for item in stored:
            if self._homes.container(item.container, item.scope) == container:
                yield from self._put(item)

    def replaced(self, found: Refs, receiver: str, scope: Scope) -> Refs:
        """What a method of a registry gives, with what the registry `receiver` holds for the placeholder."""
        if receiver in ("self", "cls") or not self._holds_placeholder(found):
            return found
        registries = self._all_registries()
        named = self._named(receiver, scope)
        known = [item for one in named for item in registries.held.get(one, ())]
        replaced: list[Ref] = []
        for ref in found:
            if ref.kind not in (REGISTERED, REGISTERED_INSTANCE):
                replaced.append(ref)
                continue
            held = known
            if not held and self._is_handed_itself(receiver, scope, ref):
                replaced.append(ref)  # `self.build_func(config, registry=self)`: whoever calls that method knows
                continue
            if not held and all(one.is_local for one in named):
                of_class = registries.instances.get(Ref(CLASS, ref.path, ref.name), ())
                held = [item for one in of_class for item in registries.held[one]]
            replaced += map(instance_of, held) if ref.kind == REGISTERED_INSTANCE else held
        return few(replaced)

    def _holds_placeholder(self, found: Refs) -> bool:
        """Whether any of several is what a registry holds, whichever: of what a factory gives, which may be hundreds of
        classes, it is asked for each call.
        """
        if len(found) < _MANY:
            return any(ref.kind in _PLACEHOLDERS for ref in found)
        known = self._placeholders.get(id(found))
        if known is None:
            # Held with the answer, so that nothing else gets its place.
            known = self._placeholders[id(found)] = found, any(ref.kind in _PLACEHOLDERS for ref in found)
        return known[1]

    def chosen(self, found: Refs, function: Ref, call: Value, caller: Scope) -> Refs:
        """Of what a function gives that is handed a registry, what the registry that this `call` hands it holds."""
        held = self._all_registries().held
        if not held or self._resolver.param_values is None:
            return found
        facts = self._resolver.summaries[function.path].functions[function.name]
        is_method = bool(facts.in_class) and "staticmethod" not in facts.decorators
        handed: set[Container] = set()
        for place, param in enumerate(facts.params):
            value = argument(call, param.name, place - is_method) if place >= is_method else None
            own = self._homes.container(value, caller) if isinstance(value, str) else None
            if own is not None and own in held:
                handed.add(own)
        if not handed:
            return found
        own_items = {item for one in handed for item in held[one]}
        others = {item for one, items in held.items() if one not in handed for item in items} - own_items
        return tuple([ref for ref in found if _class_of(ref) not in others])

    def _named(self, receiver: str, scope: Scope) -> list[Container]:
        """The containers that a name may be of: where it is a parameter, those that callers pass, or hand on."""
        container = self._homes.container(receiver, scope) if receiver else None
        found = {} if container is None else {container: None}
        waiting = [(receiver, scope)]
        seen = set(waiting)
        while waiting and self._resolver.param_values is not None:
            name, where = waiting.pop()
            if "." in name:
                continue
            for value, caller in self._resolver.param_values(where, name):
                given = self._homes.container(value, caller) if isinstance(value, str) else None
                if given is None:
                    continue
                found[given] = None
                if given.is_local and (value, caller) not in seen:  # what the caller was handed itself
                    seen.add((value, caller))
                    waiting.append((value, caller))
        return list(found)

    def _is_handed_itself(self, receiver: str, scope: Scope, registry: Ref) -> bool:
        """Whether a parameter is a registry that one of its own methods hands over."""
        if self._resolver.param_values is None or "." in receiver:
            return False
        return any(
            value == "self"
            and caller.path == registry.path
            and self._resolver.summaries[caller.path].functions[caller.function].in_class == registry.name
            for value, caller in self._resolver.param_values(scope, receiver)
        )

    def looked_up(self, receiver: str, method: str, scope: Scope) -> Refs:
        """What a method gives that libraries' registries have: `MODELS.get(name)`, `MODELS.build(options)`."""
        if method not in registries.LOOKING_UP and method not in registries.BUILDING:
            return ()
        held = self._all_registries().held
        container = self._homes.container(receiver, scope) if held else None
        found = held.get(container, ()) if container is not None else ()
        return few(map(instance_of, found) if method in registries.BUILDING else found)

    def of_library(self, function: str) -> list[Ref]:
        """What the program puts into the registries whose items a library's function makes: `timm.create_model`."""
        names = registries.made_by(function)
        held = self._all_registries().held if names else {}
        return [item for name in names for item in held.get(_of_library(name), ())]

    # Items that are stored and appended.

    def _all_stored(self) -> dict[str, list[_Stored]]:
        if self._stored is None:
            self._stored = {}
            for scope, facts in self._functions:
                for item in _stored_in(scope, facts):
                    self._stored.setdefault(item.container.rpartition(".")[2], []).append(item)
        return self._stored

    def _put(self, stored: _Stored) -> Iterator[Ref]:
        """What an item is; in `__init_subclass__` its class stands for each class below."""
        found = self._resolver.refs(stored.item, stored.scope)
        if stored.scope.function.endswith("__init_subclass__") and stored.item == "cls":
            for ref in found:
                yield from self._hierarchy.below(ref)
            return
        yield from found

    # Registries.

    def find_registries(self) -> None:
        """Find them once it is known what callers pass."""
        self._all_registries()

    def _all_registries(self) -> _Registries:
        self._resolver.leans += 1
        if self._resolver.param_refs is None:
            return _NO_REGISTRIES  # what is registered is asked once it is known what callers pass
        if self._registries is None:
            self._registries = _NO_REGISTRIES  # while they are looked for
            self._registries = _Finder(self._resolver, self._hierarchy, self._homes, self._functions).find(
                [item for items in self._all_stored().values() for item in items]
            )
        return self._registries


def _of_library(name: str) -> Container:
    """A registry that a library keeps."""
    return Container("", "", name)


def _class_of(ref: Ref) -> Ref:
    return Ref(CLASS, ref.path, ref.name) if ref.kind == INSTANCE else ref


def _stored_in(scope: Scope, facts: FunctionFacts) -> Iterator[_Stored]:
    for container, item in facts.stores:
        yield _Stored(container, item, scope)
    for call in facts.calls:
        if type(call.func) is str and call.args:
            container, _, method = call.func.rpartition(".")
            place = registries.PUTTING.get(method)
            if place is not None and container and place < len(call.args) and call.args[place] is not None:
                yield _Stored(container, call.args[place], scope)


class _Finder:
    def __init__(
        self, resolver: Resolving, hierarchy: Hierarchy, homes: Homes, functions: list[tuple[Scope, FunctionFacts]]
    ) -> None:
        self._resolver = resolver
        self._hierarchy = hierarchy
        self._homes = homes
        self._functions = functions
        self._found = _Registries({}, {}, {})
        #: What containers are found to hold, once more: they may hold thousands of functions.
        self._known: dict[Container, set[Ref]] = {}
        #: Functions that put what they are given into a container, themselves or by functions in them.
        self._putting: dict[Scope, list[_Stored]] = {}

    def find(self, stored: list[_Stored]) -> _Registries:
        for item in stored:
            if isinstance(item.item, str) and self._is_given(item.item, item.scope):
                self._putting.setdefault(outermost(item.scope), []).append(item)
        self._add_callers()
        self._note_decorated()
        self._note_calls({scope.function.rpartition(".")[2] for scope in self._putting} | registries.REGISTERING)
        return self._found

    def _is_given(self, name: str, scope: Scope) -> bool:
        facts = self._resolver.summaries[scope.path].functions[scope.function]
        return any(param.name.lstrip("=") == name for param in facts.params)

    def _add_callers(self) -> None:
        """Methods that hand on to one of their own class that puts: `self._register(module=cls)`."""
        methods = dict(self._putting)
        files = {scope.path for scope in methods}
        for scope, facts in self._functions:
            if scope.path not in files:
                continue
            method = outermost(scope)
            cls = method.function.rpartition(".")[0]
            for call in facts.calls:
                if type(call.func) is str and call.func.startswith("self."):
                    target = Scope(scope.path, f"{cls}.{call.func[5:]}")
                    if target in methods and target != method:
                        self._putting.setdefault(method, methods[target])

    def _note_decorated(self) -> None:
        for scope, facts in self._functions:
            if facts.decorators and not facts.in_class:
                owner = Scope(scope.path, facts.owner or MODULE)
                self._decorated(Ref(FUNCTION, scope.path, scope.function), facts.decorators, owner)
        for path, summary in self._resolver.summaries.items():
            for qualname, cls in summary.classes.items():
                if cls.decorators:
                    self._decorated(Ref(CLASS, path, qualname), cls.decorators, Scope(path, MODULE))

    def _decorated(self, item: Ref, decorators: tuple[Value, ...], scope: Scope) -> None:
        for decorator in decorators:
            called = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
            if isinstance(called, str):
                self._note(called, scope, [item])

    def _note_calls(self, names: set[str]) -> None:
        """`register(name, Net)`, `MODELS.register(name)(Net)`."""
        # What `MODELS.register(name)` gives has no name of its own.
        for _, scope, _, call in self._resolver.nesting.calls_of([*names, ""]):
            func = call.func
            if type(func) is tuple and func[0] == "call":
                func = func[1]
            if type(func) is not str or func.rpartition(".")[2] not in names or not self._registers(func, scope):
                continue
            if not self._keeps(func, scope):
                continue  # what a call hands over may take long to tell
            given = [*call.args, *(value for _, value in call.keywords)]
            items = [
                ref
                for value in given
                if isinstance(value, str)
                for ref in self._resolver.refs(value, scope)
                if ref.kind in (CLASS, FUNCTION) or (ref.kind == EXTERNAL and not ref.name.startswith("builtins."))
            ]
            if items:
                self._note(func, scope, items)

    def _registers(self, called: str, scope: Scope) -> bool:
        return any(
            Scope(ref.path, ref.name) in self._putting
            if ref.kind == FUNCTION
            else ref.kind in (INSTANCE, EXTERNAL, EXTERNAL_INSTANCE)
            for ref in self._resolver.refs(called, scope)
        )

    def _keeps(self, called: str, scope: Scope) -> bool:
        """Whether what goes by a name may put what it is given into a container that is known."""
        for ref in self._resolver.refs(called, scope):
            puts = ref if ref.kind == FUNCTION else None
            if ref.kind == INSTANCE:
                puts = self._hierarchy.method(ref, "__call__")
            elif puts is None:
                return True
            stored = () if puts is None else self._putting.get(Scope(puts.path, puts.name), ())
            if any(self._homes.container(one.container, one.scope) is not None for one in stored):
                return True
        return False

    def _note(self, called: str, scope: Scope, items: list[Ref]) -> None:
        """Note that what goes by a name is called with items, if it puts them anywhere."""
        receiver, _, last = called.rpartition(".")
        for ref in self._resolver.refs(called, scope):
            if ref.kind == FUNCTION:
                self._put_by(Scope(ref.path, ref.name), receiver, scope, items)
            elif ref.kind == INSTANCE:
                method = self._hierarchy.method(ref, "__call__")
                if method is not None:
                    self._put_by(Scope(method.path, method.name), called, scope, items)
            elif ref.kind in (EXTERNAL, EXTERNAL_INSTANCE) and last in registries.REGISTERING and receiver:
                self._hold(self._homes.container(receiver, scope), items)
                self._hold(_of_library(receiver.rpartition(".")[2]), items)
            elif ref.kind == EXTERNAL and registries.put_by(ref.name):
                self._hold(_of_library(registries.put_by(ref.name)), items)

    def _put_by(self, function: Scope, receiver: str, scope: Scope, items: list[Ref]) -> None:
        for stored in self._putting.get(function, ()):
            inside = self._homes.container(stored.container, stored.scope)
            if inside is None or not self._is_of_instance(stored, function):
                self._hold(inside, items)
                continue
            facts = self._resolver.summaries[function.path].functions[function.function]
            owner = Ref(CLASS, function.path, facts.in_class)
            registry = self._homes.container(receiver, scope) if receiver not in ("", "self", "cls") else None
            # What is put into an object that only a function has, is found where it is put.
            if registry is not None and not registry.is_local:
                self._found.inside[inside] = owner
                instances = self._found.instances.setdefault(owner, [])
                if registry not in instances:
                    instances.append(registry)
                self._hold(registry, items)

    def _is_of_instance(self, stored: _Stored, function: Scope) -> bool:
        facts = self._resolver.summaries[function.path].functions[function.function]
        return bool(facts.in_class) and stored.container.partition(".")[0] == "self"

    def _hold(self, container: Container | None, items: list[Ref]) -> None:
        if container is not None:
            held = self._found.held.setdefault(container, [])
            known = self._known.setdefault(container, set())
            new = [item for item in items if item not in known]
            held += new
            known.update(new)
