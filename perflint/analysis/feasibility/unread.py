"""Objects that are kept and never taken up again: `self.recall = Recall()`, where nothing reads that attribute."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import CallFacts, ClassFacts, FunctionFacts, Value, is_among

#: What finds attributes without their names.
_OF_ITSELF = ("self.children", "self.named_children")
_FINDING = ("_modules", "getattr", "__getattr__", "__dict__", "vars", "eval")


class Unread:
    """The attributes of one program that nothing reads."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._known: dict[str, tuple[str, ...] | None] = {}

    def is_kept(self, call: CallFacts, scope: Scope) -> bool:
        """Whether what a call makes goes into an attribute of its object, and nothing takes it from there."""
        summary = self._resolver.summaries[scope.path]
        facts = summary.functions[scope.function]
        owner = summary.classes.get(facts.in_class)
        made = call.func
        kept = [
            name
            for name, values in (owner.attributes.items() if owner is not None else ())
            if any(where == scope.function and made in _within(value) for value, where in values)
        ]
        elsewhere = (*facts.returns, *_handed(facts), *_bound(facts))
        if len(kept) != 1 or any(made in _within(value) for value in elsewhere):
            return False
        read = f"self.{kept[0]}"
        if any(_reads(value, read) for value in (*_values(facts), *_bound(facts), *_attributes(owner, kept[0]))):
            return False
        if any(call.func in _OF_ITSELF for other in summary.functions.values() for call in other.calls):
            return False
        return self._readers(kept[0]) == (f"{scope.path}:{scope.function}",) and summary.words().isdisjoint(_FINDING)

    def _readers(self, name: str) -> tuple[str, ...] | None:
        """The functions that have a name among their identifiers; None where a text or a statement outside has it."""
        if name not in self._known:
            self._known[name] = self._found(name)
        return self._known[name]

    def _found(self, name: str) -> tuple[str, ...] | None:
        found: list[str] = []
        for path, summary in self._resolver.summaries.items():
            if is_among(name, summary.texts):
                return None
            if name in summary.identifiers():
                own = [
                    f"{path}:{item}" for item, facts in summary.functions.items() if is_among(name, facts.identifiers)
                ]
                if not own and is_among(name, summary.identifiers()):
                    return None
                found += own
        return tuple(found)


def _within(value: Value) -> Iterator[Value]:
    """What is called for a value: `Loss` for what it gives, and for what methods of that give, `Loss().cuda()`."""
    while type(value) is tuple and value and value[0] in ("call", "attr"):
        if value[0] == "call":
            yield value[1]
        value = value[1]


def _values(facts: FunctionFacts) -> Iterator[Value]:
    """What a function gives back, calls and hands over."""
    yield from facts.returns
    yield from (call.func for call in facts.calls)
    yield from _handed(facts)


def _handed(facts: FunctionFacts) -> Iterator[Value]:
    for call in facts.calls:
        yield from call.args
        yield from (value for _, value in call.keywords)


def _bound(facts: FunctionFacts) -> Iterator[Value]:
    yield from (value for values in facts.binds.values() for value in values)


def _attributes(owner: ClassFacts | None, but: str) -> Iterator[Value]:
    """What the other attributes of a class are given."""
    for name, values in owner.attributes.items() if owner is not None else ():
        yield from (value for value, _ in values if name != but)


def _reads(value: Value, dotted: str) -> bool:
    """Whether an attribute stands anywhere in a value."""
    if type(value) is str:
        return f"{value}.".startswith(f"{dotted}.")
    return type(value) is tuple and any(_reads(part, dotted) for part in value if type(part) in (str, tuple))
