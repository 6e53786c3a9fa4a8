"""What a call may run that looks a function or a class up in a module by a name that it computes.

`getattr(losses, options.name)(x, y)`, and the same kept in an attribute or called later. Which of them it is, a
configuration says: where one names functions or classes of the module, it is one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from perflint.analysis.names.fitting import has_all, may_take
from perflint.analysis.names.refs import INSTANCE, MODULE_REF, Ref, Scope
from perflint.analysis.names.resolver import GLOBALS, Resolver
from perflint.finding import Confidence
from perflint.ir.summary import CallFacts, Value

#: Past this many, a name says nothing about which of them runs.
_MOST = 24


class LookedUp:
    """Answers for one program. `configured` gives the words of configurations."""

    def __init__(self, resolver: Resolver, configured: Callable[[], frozenset[str]]) -> None:
        self._resolver = resolver
        self._configured = configured

    def of_call(self, call: CallFacts, scope: Scope) -> dict[Scope, Confidence]:
        """What a call may run, with how sure that is."""
        found: dict[Scope, str] = {}
        for value, where in self._called(call.func, scope):
            for ref in self._modules(value, where):
                functions = self._resolver.imports.functions(ref.path)
                found.update((Scope(item.path, item.name), item.name) for item in functions)
            if isinstance(value, tuple) and value[0] == "call":
                found.update(self._instances(value, where))
        fitting = {item: name for item, name in found.items() if self._fits(item, call)}
        if not fitting:
            return {}
        words = self._configured()
        named = [item for item, name in fitting.items() if name in words or f"{name}:" in words]
        if named:
            return dict.fromkeys(named, Confidence.MEDIUM)
        if len(found) > _MOST:
            return {}
        told = self._told
        return {item: Confidence.MEDIUM if name in told else Confidence.LOW for item, name in fitting.items()}

    @cached_property
    def _told(self) -> frozenset[str]:
        """The words that texts of the program begin with: the default of an option is one of them."""
        return frozenset([word for summary in self._resolver.summaries.values() for word in summary.texts.split()])

    def _called(self, func: Value, scope: Scope) -> list[tuple[Value, Scope]]:
        """What is called, as it is written: `losses[name](x)` calls one of those that `losses` was made of."""
        if isinstance(func, str):
            return self._resolver.written.definitions(func, scope)
        if not (isinstance(func, tuple) and func[0] == "item" and isinstance(func[1], str)) or _namespace(func):
            return [(func, scope)]
        made = self._resolver.written.definitions(func[1], scope)
        return [(item, where) for value, where in made for item in _items(value)]

    def _instances(self, made: Value, scope: Scope) -> Iterator[tuple[Scope, str]]:
        """What calling an object runs whose class is looked up and is made with what a call hands it."""
        makers = [(made[1], scope)]
        if isinstance(made[1], str):
            makers = self._resolver.written.definitions(made[1], scope)
        for value, where in makers:
            for ref in self._modules(value, where):
                for cls in self._resolver.imports.own_classes(ref.path):
                    if self._is_made(cls, made):
                        instance = Ref(INSTANCE, cls.path, cls.name)
                        method = self._resolver.method(instance, "forward") or self._resolver.method(
                            instance, "__call__"
                        )
                        if method is not None:
                            yield Scope(method.path, method.name), cls.name

    def _is_made(self, cls: Ref, made: Value) -> bool:
        init = self._resolver.method(cls, "__init__")
        return init is None or may_take(self._resolver.summaries[init.path].functions[init.name], made[2], made[3])

    def _modules(self, value: Value, scope: Scope) -> list[Ref]:
        """The modules in which a value looks something up by a name that nobody sees."""
        if not isinstance(value, tuple):
            return []
        named = _namespace(value)
        if named == GLOBALS:
            return [Ref(MODULE_REF, scope.path, "")]
        if named:
            return [ref for ref in self._resolver.refs(named, scope) if ref.kind == MODULE_REF]
        if not (value[:2] == ("call", "getattr") and len(value[2]) > 1):
            return []
        base, name = value[2][:2]
        if isinstance(name, tuple) and name[0] == "const":
            return []
        return [ref for ref in self._resolver.refs(base, scope) if ref.kind == MODULE_REF]

    def _fits(self, scope: Scope, call: CallFacts) -> bool:
        facts = self._resolver.summaries[scope.path].functions[scope.function]
        return may_take(facts, call.args, call.keywords) and has_all(facts, call.args, call.keywords)


def is_in_namespace(func: Value) -> bool:
    """Whether what is called is looked up in a module by a name that no text tells."""
    return _namespace(func) is not None


def _namespace(value: Value) -> Value:
    """The module of `losses.__dict__[name]` and `vars(losses)[name]`, where no text tells the name. `globals()[name]`
    is of its own one.
    """
    if not isinstance(value, tuple) or value[0] != "item" or value[2] is not None:
        return None
    held = value[1]
    if held == GLOBALS:
        return held
    if isinstance(held, str):
        return held.removesuffix(".__dict__") if held.endswith(".__dict__") else None
    return held[2][0] if isinstance(held, tuple) and held[:2] == ("call", "vars") and len(held[2]) == 1 else None


def _items(value: Value) -> Iterator[Value]:
    """What a container that is written so holds."""
    if isinstance(value, tuple) and value[0] in ("table", "each"):
        yield value[1]
    elif isinstance(value, tuple) and value[0] == "seq":
        yield from value[1]
    elif isinstance(value, tuple) and value[0] == "map":
        yield from (item for _, item in value[1])
