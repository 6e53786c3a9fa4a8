"""What a call of a method may run in the classes below the one that it is known to be of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflint.analysis.names.declared import is_abstract
from perflint.analysis.names.refs import CLASS, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.ir.summary import Value, record


class Overriding:
    """Answers for one program, without regard to who calls whom."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        #: Of functions that are called, what stands in for them where they are abstract.
        self._stand_ins: dict[Scope, list[Scope]] = {}
        #: By its name, the classes that define a method.
        self._definers: dict[str, frozenset[tuple[str, str]]] = {}

    def forget(self) -> None:
        """All calls are connected."""
        self._stand_ins.clear()

    def of_call(self, func: Value, scope: Scope, targets: list[Scope]) -> dict[Scope, Confidence]:
        """What `self.method()` runs where `self` is of a class that derives from the method's own."""
        if isinstance(func, str) and _is_of_self(func, targets):
            found = dict.fromkeys(self.below(func, scope), Confidence.HIGH)
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
            cls = self._resolver.facts(target).in_class
            children = self._children_with(Ref(CLASS, target.path, cls), name) if cls else ()
            if children and declared is None:
                declared = self._is_declared(base, scope)
            if children and declared:
                for child in children:
                    yield from methods_of(self._resolver, child, (name,))

    def _is_declared(self, dotted: str, scope: Scope) -> bool:
        """Whether what goes by a name is of a class by annotation, itself or the parameter that it is given from."""
        written = self._resolver.written
        if any(True for _ in written.annotations(dotted, scope)):
            return True
        return any(
            isinstance(value, str) and "." not in value and any(True for _ in written.annotations(value, where))
            for value, where in written.definitions(dotted, scope)
        )

    def below(self, func: str, scope: Scope) -> list[Scope]:
        cls = self._resolver.nesting.enclosing_class(scope)
        wanted = func.removeprefix("self.") if func != "self" else "forward"
        children = self._children_with(cls, wanted) if cls.name else ()
        if not children:
            return []
        method = scope.function.removeprefix(f"{cls.name}.").partition(".<locals>")[0]
        return [
            target
            for child in children
            if self._inherits(child, cls, method)
            for target in methods_of(self._resolver, Ref(INSTANCE, child.path, child.name), (wanted,))
        ]

    def _children_with(self, cls: Ref, method: str) -> Sequence[Ref]:
        """The classes that derive from one and do not have a method from it: those that define it, or have it from
        what does and is none of its own bases. Where nothing else defines it, nobody has to be asked.
        """
        hierarchy = self._resolver.hierarchy
        children = hierarchy.below(cls)
        if not children:
            return ()
        definers = self._defining(method)
        own = {(base.path, base.name) for base in hierarchy.mro(cls)}
        if definers <= own:
            return ()
        return [
            child
            for child in children
            if any((at := (base.path, base.name)) in definers and at not in own for base in hierarchy.mro(child))
        ]

    def _defining(self, method: str) -> frozenset[tuple[str, str]]:
        """The classes that define a method: of `forward`, each module of the program."""
        known = self._definers.get(method)
        if known is None:
            named = self._resolver.nesting.by_name.get(method, ())
            found = frozenset([(scope.path, facts.in_class) for scope, facts in named if facts.in_class])
            known = self._definers[method] = found
        return known

    def _inherits(self, child: Ref, cls: Ref, method: str) -> bool:
        """Whether a method of `cls` runs for instances of `child`: unchanged, or because the child's asks `super()`."""
        found = self._resolver.method(child, method)
        if found is None or found == Ref(FUNCTION, cls.path, f"{cls.name}.{method}"):
            return True
        facts = self._resolver.summaries[found.path].functions[found.name]
        return any(
            isinstance(call.func, tuple)
            and call.func[0] == "attr"
            and call.func[2] == method
            and "super" in str(call.func)
            for call in facts.calls
        )

    def _implementations(self, target: Scope) -> list[Scope]:
        """The definitions that stand in for an abstract method."""
        facts = self._resolver.summaries[target.path].functions[target.function]
        if not facts.in_class or not is_abstract(facts):
            return []
        children = self._resolver.hierarchy.below(Ref(CLASS, target.path, facts.in_class))
        return [
            Scope(child.path, f"{child.name}.{facts.name}")
            for child in children
            if f"{child.name}.{facts.name}" in self._resolver.summaries[child.path].functions
        ]


def methods_of(resolver: Resolver, ref: Ref, names: tuple[str, ...]) -> list[Scope]:
    found = [resolver.method(ref, name) for name in names]
    return [record(Scope, (item.path, item.name)) for item in found if item is not None]


def _is_of_self(func: str, targets: list[Scope]) -> bool:
    """Whether a call runs a method of its own object: `self.step()` and `self(x)`, and not `self.model(x)`."""
    base, _, name = func.rpartition(".")
    if base == "self":
        return all(target.function.rpartition(".")[2] == name for target in targets)
    return func == "self"
