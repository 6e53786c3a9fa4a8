"""What calls give back: instances of classes, what functions of the project return, what libraries hand through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from perflint.analysis.names.contents import REGISTERED, REGISTERED_INSTANCE
from perflint.analysis.names.fitting import may_take
from perflint.analysis.names.loaded_modules import BY_NAME
from perflint.analysis.names.named_classes import NamedClasses
from perflint.analysis.names.refs import (
    CLASS,
    EXTERNAL,
    EXTERNAL_INSTANCE,
    FUNCTION,
    IDENTITY,
    INSTANCE,
    MODULE_REF,
    Ref,
    Refs,
    Scope,
    argument,
    few,
    handed_back,
    together,
)
from perflint.ir.summary import FunctionFacts, Value, record
from perflint.torch_model import wrappers
from perflint.torch_model.names import canonical
from perflint.torch_model.registries import made_by

if TYPE_CHECKING:
    from perflint.analysis.names.resolver import Resolver

#: Methods of dicts that give the value of a key.
_LOOKING_UP = frozenset({"get", "pop", "setdefault"})
#: Of libraries that make what a configuration names: of the project, as often as not.
_FACTORIES = frozenset({"instantiate", "instantiate_from_config", "build_from_cfg"})
_PREPARE = wrappers.PREPARE_METHODS
_IDENTITY_METHODS = wrappers.MODULE_CHAIN | wrappers.UNWRAP_METHODS | {"compile"}


class Results:
    """Answers for one program: parts of what its resolver says of values."""

    def __init__(self, resolver: Resolver, configured: Callable[[], frozenset[str]]) -> None:
        self._resolver = resolver
        self.named_classes = NamedClasses(resolver, configured)
        #: By function, what it gives back, each of several by itself, and whether none of it is what a call hands it.
        self._given_back: dict[Ref, tuple[list[Value], bool]] = {}

    def of_call(self, value: Value, scope: Scope) -> Refs:
        """What a call written in `scope` may give."""
        func, args, contents = value[1], value[2], self._resolver.contents
        last = func.rpartition(".")[2] if type(func) is str else func[2] if func[0] == "attr" else ""
        if last in _PREPARE and args:
            return self._resolver.refs(args[0], scope)
        callees = self._resolver.refs(func, scope)
        receiver = func.rpartition(".")[0] if type(func) is str else ""
        if callees:
            if len(callees) == 1:
                results = self.result(callees[0], value, scope)
            else:
                callees = tuple([one for one in callees if self._may_make(one, value)]) or callees
                results = together([self.result(callee, value, scope) for callee in callees])
            if not receiver:
                # What a registry gave is called, in one of its own methods: which instance it is, only callers tell.
                is_looked_up = any(callee.kind == REGISTERED for callee in callees)
                return contents.replaced(results, func, scope) if type(func) is str and not is_looked_up else results
            # What a registry holds is surer than what its methods give, which is that of all registries of the class.
            found = contents.looked_up(receiver, last, scope) or contents.replaced(results, receiver, scope)
            if found or last not in _LOOKING_UP:  # `dict().get(key)` is a method of a library's class
                return found
        if last in _LOOKING_UP and receiver and args:
            key = args[0][2] if isinstance(args[0], tuple) and args[0][0] == "const" else None
            held = self._resolver.elements(receiver, scope, key)
            return few([*held, *(self._resolver.refs(args[1], scope) if len(args) > 1 else ())])
        if last in _IDENTITY_METHODS:
            base = func.rpartition(".")[0] if type(func) is str else func[1]
            if isinstance(base, tuple) and base[0] == "call" and base[1] == "super":
                base = "self"  # `super().to(device)` hands back the object itself
            return self._resolver.refs(base or None, scope)
        if last == "options":  # `Worker.options(num_gpus=1).remote()`
            base = receiver or (func[1] if type(func) is tuple else None)
            return tuple([ref for ref in self._resolver.refs(base, scope) if ref.kind in (CLASS, FUNCTION)])
        if func == "getattr" and len(args) > 1:
            return self._by_text(args[0], args[1], scope)
        return ()

    def _by_text(self, base: Value, name: Value, scope: Scope) -> Refs:
        """`getattr(base, name)`: under a name that is computed, any of the classes of a module."""
        if isinstance(name, tuple) and name[0] == "const":
            return self._resolver.refs(("attr", base, name[2]), scope) if name[1] == "str" else ()
        own = isinstance(base, tuple) and base[:2] == ("item", "sys.modules")
        paths = (
            [scope.path] if own else [ref.path for ref in self._resolver.refs(base, scope) if ref.kind == MODULE_REF]
        )
        found = together([self._resolver.offered(path) for path in paths])
        return found or (self.named_classes.imported_into(scope.path, name) if own else ())

    def result(self, callee: Ref, value: Value, scope: Scope) -> Refs:
        if callee.kind == CLASS:
            return (record(Ref, (INSTANCE, callee.path, callee.name)),)
        if callee.kind == FUNCTION:
            found = (
                self._resolver.loaded_modules.through(callee, value, scope)
                or self.named_classes.through(callee, value, scope)
                or self.returned(callee, value, scope)
            )
            return self._resolver.contents.chosen(found, callee, value, scope) if len(found) > 1 else found
        if callee.kind == INSTANCE:
            method = self._resolver.method(callee, "forward") or self._resolver.method(callee, "__call__")
            return self.returned(method, value, scope) if method else ()
        if callee.kind == EXTERNAL:
            return self._library_result(callee, value, scope)
        if callee.kind == REGISTERED:
            return (record(Ref, (REGISTERED_INSTANCE, callee.path, callee.name)),)
        if callee.kind == EXTERNAL_INSTANCE:
            owner, _, last = callee.name.rpartition(".")
            if last in _IDENTITY_METHODS:
                return (Ref(EXTERNAL_INSTANCE, "", owner),)
        return ()

    def _may_make(self, callee: Ref, call: Value) -> bool:
        """Whether the constructor takes what a call hands it, of one that may make any of several classes."""
        found = self._resolver.method(callee, "__init__") if callee.kind == CLASS else None
        if found is None:
            return True
        return may_take(self._resolver.summaries[found.path].functions[found.name], call[2], call[3])

    def _library_result(self, callee: Ref, value: Value, scope: Scope) -> Refs:
        args = value[2]
        index = IDENTITY.get(canonical(callee.name))
        if index is not None and len(args) > index:
            return self._resolver.refs(args[index], scope)
        handed = [item for item in handed_back(callee.name, value) if item is not None]
        if len(handed) == 1 and callee.name not in wrappers.ALWAYS_SEVERAL:
            return self._resolver.refs(handed[0], scope)
        if callee.name == "builtins.getattr" and len(args) > 1:
            return self._by_text(args[0], args[1], scope)
        if callee.name in BY_NAME and args and isinstance(args[0], tuple) and args[0][0] == "const":
            return self._resolver.imports.imported(args[0][2], scope.path) if isinstance(args[0][2], str) else ()
        loaded = self._resolver.loaded_modules.loaded(callee.name, value, scope)
        if loaded is not None:
            # What is imported by a name that nobody knows is of the folders that the texts tell, not the machinery's.
            return loaded or (self._resolver.imports.below_texts(scope.path) if callee.name in BY_NAME else ())
        if made_by(callee.name):
            self._resolver.leans += 1
        registered = self._resolver.contents.of_library(callee.name)
        if registered or (self._resolver.param_refs is None and made_by(callee.name)):
            # What is registered is known once callers are: until then such a call waits, and is of no library.
            return few([ref for item in registered for ref in self.result(item, value, scope)])
        if callee.name == "builtins.next" and args:
            return self._resolver.elements(args[0], scope, None)
        if callee.name.rpartition(".")[2] in _FACTORIES:
            return ()
        return (record(Ref, (EXTERNAL_INSTANCE, "", callee.name)),)

    def returned(self, function: Ref, call: Value = None, caller: Scope | None = None) -> Refs:
        """What calling a project function gives back: of what it was handed, what this `call` hands it."""
        facts = self._resolver.summaries[function.path].functions[function.name]
        scope = record(Scope, (function.path, function.name))
        if facts.is_generator:
            return ()
        found: Refs = ()
        if facts.returns:
            parts, is_own = self._parts(function, facts)
            if is_own or caller is None:
                found = self._resolver.any_of(parts, scope)
            else:
                placed = [item for value in facts.returns for item in self.placed(value, facts, scope, call, caller)]
                found = together([self._resolver.refs(value, where) for value, where in placed])
        if not found and facts.returns_annotation:
            found = self._resolver.annotated(facts.returns_annotation, scope)
        return found

    def _parts(self, function: Ref, facts: FunctionFacts) -> tuple[list[Value], bool]:
        known = self._given_back.get(function)
        if known is None:
            parts: list[Value] = []
            waiting = [*reversed(facts.returns)]
            while waiting:
                value = waiting.pop()
                if type(value) is tuple and value[0] == "either":
                    waiting += reversed(value[1])
                else:
                    parts.append(value)
            names = [value[1] if type(value) is tuple and value[0] == "call" else value for value in parts]
            known = self._given_back[function] = parts, all(self._handed_at(name, facts) is None for name in names)
        return known

    def placed(
        self, value: Value, facts: FunctionFacts, scope: Scope, call: Value, caller: Scope | None
    ) -> Iterator[tuple[Value, Scope]]:
        """What a function gives back, each of several by itself: `maker(**options) if x is None else x` is made of what
        the call hands it, and nothing that other callers do.
        """
        form = value[0] if type(value) is tuple else ""
        if form == "either":
            for part in value[1]:
                yield from self.placed(part, facts, scope, call, caller)
        elif form == "call" and isinstance(value[1], str):
            func, where = self.handed(value[1], facts, scope, call, caller)
            yield (value, scope) if where == scope else (("call", func, (), ()) if func else None, where)
        else:
            yield self.handed(value, facts, scope, call, caller)

    def handed(
        self, value: Value, facts: FunctionFacts, scope: Scope, call: Value, caller: Scope | None
    ) -> tuple[Value, Scope]:
        """What a function gives back, with the scope to look it up in: a parameter that it leaves as it is, is what
        the call hands it, whatever other callers do."""
        index = None if caller is None else self._handed_at(value, facts)
        if index is None or caller is None:
            return value, scope
        is_method = bool(facts.in_class) and "staticmethod" not in facts.decorators
        return argument(call, facts.params[index].name, index - is_method), caller

    def _handed_at(self, value: Value, facts: FunctionFacts) -> int | None:
        """The place of the parameter that a value is, left as it is; None where it is none."""
        if not isinstance(value, str) or value in facts.binds or value in facts.annotations:
            return None
        index = self._resolver.nesting.positions(facts).get(value)
        is_method = bool(facts.in_class) and "staticmethod" not in facts.decorators
        return None if index is None or facts.params[index].annotation or (is_method and not index) else index
