"""Which calls make the objects of a class, and under which conditions: its methods run where one of them was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from perflint.analysis.feasibility.options import Options
from perflint.analysis.feasibility.parameters import own_parameters
from perflint.analysis.feasibility.unread import Unread
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, SPREAD, CallFacts, ClassFacts, FunctionFacts, Value, is_among

#: Past so many calls that make objects of a class, one of them is taken to be open.
_MOST = 40
#: Of no more files all identifiers are kept as texts.
_FEW_FILES = 1000
#: What is asked of a class without making anything of it, or its bases.
_ASKING = frozenset({"isinstance", "issubclass", "super", "hasattr"})
#: What no run fulfils.
_NEVER: tuple[Value, bool] = (("const", "bool", False), True)
#: What makes an object of the class that a method stands in.
_MAKING_ITS_OWN = frozenset({"cls", "__class__", "type"})
#: Decorators that hand a class to nobody.
_PLAIN_DECORATORS = frozenset({"dataclass", "script", "final", "total_ordering", "runtime_checkable"})


class Making(NamedTuple):
    """A call that makes an object, where it stands, and the tests that it stands under."""

    scope: Scope
    conditions: tuple[tuple[Value, bool], ...]


class Makings:
    """The calls that make objects in one program."""

    def __init__(self, resolver: Resolver, options: Options, configured: Callable[[], frozenset[str]]) -> None:
        self._resolver = resolver
        self._options = options
        self._configured = configured
        self._unread = Unread(resolver)
        self._known: dict[Ref, tuple[Making, ...] | None] = {}

    def of(self, cls: Ref) -> tuple[Making, ...]:
        """The calls that make all objects of a class and of those below it; none where something else may make one,
        as where the class is handed over or goes by a text.
        """
        if cls not in self._known:
            self._known[cls] = self._found(cls)
        return self._known[cls] or ()

    def _found(self, cls: Ref) -> tuple[Making, ...] | None:
        family = [cls, *self._resolver.hierarchy.below(cls)]
        if any(map(self._may_be_found, family)):
            return None
        made: list[Making] = []
        for scope, _, call in self._options.makings(cls):
            if last_name(call.func) != "replace":
                fits = all(self._takes(ref, call) for ref in self._resolver.refs(call.func, scope) if ref in family)
                fits = fits and not self._unread.is_kept(call, scope)
                conditions = self._resolver.facts(scope).conditions_at(call.line, call.column)
                made.append(Making(scope, conditions if fits else (_NEVER, *conditions)))
        if not made or len(made) > _MOST:
            return None
        makers = {outer for item in made for outer in self._around(item.scope)}
        if any(self._is_handed_over(item, makers, family) for item in family):
            return None
        return tuple(made)

    def _takes(self, cls: Ref, call: CallFacts) -> bool:
        """Whether the constructor of a class may take what a call gives: with another keyword it raises."""
        method = self._resolver.method(Ref(INSTANCE, cls.path, cls.name), "__init__")
        given = [key for key, _ in call.keywords]
        if method is None or "" in given or SPREAD in given or self._resolver.method(cls, "__new__") is not None:
            return True
        facts = self._resolver.summaries[method.path].functions[method.name]
        params = own_parameters(facts)
        if facts.decorators or len(params) + 1 < len(facts.params):
            return True  # it takes anything
        by_place = [param for param in params if not param.name.startswith("=")]
        return len(call.args) <= len(by_place) and {param.name.lstrip("=") for param in params}.issuperset(given)

    def _around(self, scope: Scope) -> list[Scope]:
        """A function and those that it stands in."""
        around = [where for where, _ in self._resolver.nesting.scopes(scope) if where.function != MODULE]
        return around or [scope]

    def _may_be_found(self, cls: Ref) -> bool:
        """Whether something else than a call of its name may find a class: a decorator, a text, a configuration."""
        facts = self._resolver.hierarchy.facts(cls)
        name = cls.name.rpartition(".")[2]
        if facts is None or facts.keywords or name in self._configured():
            return True
        called = (item[1] if isinstance(item, tuple) and item[0] == "call" else item for item in facts.decorators)
        if any(last_name(item) not in _PLAIN_DECORATORS for item in called):
            return True
        return any(is_among(name, summary.texts) for summary in self._resolver.summaries.values())

    def _is_handed_over(self, cls: Ref, makers: set[Scope], family: list[Ref]) -> bool:
        """Whether anything mentions a class that neither makes one nor asks of what class something is."""
        name = cls.name.rpartition(".")[2]
        if name in self._renamed:
            return True  # it goes by another name somewhere
        for path, summary in self._resolver.summaries.items():
            mentions = [] if path in self._resolver.tests else list(self._mentions(name, path, cls))
            meant = self._resolver.refs(name, Scope(path, MODULE)) if mentions else ()
            if meant and not any(ref in family for ref in meant):
                continue  # another one goes by its name there
            for qualname in mentions:
                scope, facts = Scope(path, qualname), summary.functions[qualname]
                if any(_holds(value, name) for value in _values(facts)):
                    return True
                is_own = Ref(CLASS, path, facts.in_class) in family
                if scope not in makers and not (_makes_no_own(facts) if is_own else _only_asks(facts, name)):
                    return True
        return False

    @cached_property
    def _renamed(self) -> frozenset[str]:
        """What some file that holds no tests imports under another name, by its own."""
        summaries, tests = self._resolver.summaries.items(), self._resolver.tests
        imports = (item for path, summary in summaries if path not in tests for item in summary.imports.items())
        return frozenset(last for bound, target in imports if (last := target.rpartition(".")[2]) != bound)

    def _mentions(self, name: str, path: str, cls: Ref) -> Iterator[str]:
        """The functions that stand in no other, and the module's own statements, in which a name stands."""
        summary = self._resolver.summaries[path]
        if name not in self._identifiers.get(path, name):
            return  # of most files this tells it at once
        for qualname, facts in summary.functions.items():
            if is_among(name, facts.identifiers):
                yield qualname
        for statement in summary.statements:
            if not statement.imports and is_among(name, statement.identifiers):
                held = [item for item in summary.classes.values() if statement.line <= item.line <= statement.end_line]
                if not held or not all(self._is_plain_body(item, path, cls) for item in held):
                    yield MODULE

    @cached_property
    def _identifiers(self) -> dict[str, str]:
        """By file, all its identifiers, where there is room for them."""
        summaries = self._resolver.summaries
        return {path: one.identifiers() for path, one in summaries.items()} if len(summaries) <= _FEW_FILES else {}

    def _is_plain_body(self, facts: ClassFacts, path: str, cls: Ref) -> bool:
        """Whether the body of a class names another one only as its base, or as an annotation."""
        if cls in self._resolver.mro(Ref(CLASS, path, facts.qualname)):
            return True
        name = cls.name.rpartition(".")[2]
        return any(name in text for text in facts.annotations.values())


def _makes_no_own(facts: FunctionFacts) -> bool:
    return all(last_name(call.func) not in _MAKING_ITS_OWN for call in facts.calls)


def _only_asks(facts: FunctionFacts, name: str) -> bool:
    """Whether a function uses a class only to ask what something is, or as an annotation."""
    if any(last_name(call.func) in _ASKING and name in str(call.args) for call in facts.calls):
        return True
    told = [param.annotation for param in facts.params]
    return any(name in text for text in (*told, facts.returns_annotation, *facts.annotations.values()))


def _values(facts: FunctionFacts) -> Iterator[Value]:
    """What a function keeps, gives back and hands over."""
    for values in facts.binds.values():
        yield from values
    yield from facts.returns
    for call in facts.calls:
        if type(call.func) is str and not call.func.endswith(".__init__"):
            yield call.func.rpartition(".")[0]  # `Net.small()` may make one
        if last_name(call.func) not in _ASKING:
            yield from call.args
            yield from (value for _, value in call.keywords)


def _holds(value: Value, name: str) -> bool:
    """Whether a value is, or holds, what goes by a name, and not what calling that gives."""
    if type(value) is str:
        return value.rpartition(".")[2] == name
    form = value[0] if type(value) is tuple else "const"
    if form == "call":
        given = (*value[2], *(item for _, item in value[3]))
        return last_name(value[1]) not in _ASKING and any(_holds(item, name) for item in given)
    if form == "map":
        return any(_holds(item, name) for _, item in value[1])
    if form in ("seq", "either"):
        return any(_holds(item, name) for item in value[1])
    return form in ("item", "attr", "each", "table") and _holds(value[1], name)
