"""What the decorators of a function, and a body that only raises, say of it."""

from __future__ import annotations

from perflint.ir.summary import FunctionFacts, Value

#: What is called to raise that a method is missing, and to say of which class.
_RAISED = ("NotImplementedError", "type")
_CACHES = frozenset({"cache", "lru_cache", "cached_property", "memoize", "cached"})


def is_abstract(facts: FunctionFacts) -> bool:
    """Whether a method is left to the classes below: marked so, or all it does is to raise `NotImplementedError`."""
    if is_marked(facts):
        return True
    if facts.contexts or facts.binds or facts.returns or facts.yields:
        return False
    return "NotImplementedError" in facts.identifiers.split() and all(call.func in _RAISED for call in facts.calls)


def is_marked(facts: FunctionFacts) -> bool:
    """Whether a method is marked as one that the classes below must define."""
    return any(str(item).rpartition(".")[2] == "abstractmethod" for item in facts.decorators)


def is_property(facts: FunctionFacts) -> bool:
    return any(
        isinstance(item, str) and item.rpartition(".")[2] in ("property", "cached_property")
        for item in facts.decorators
    )


def handed_back(facts: FunctionFacts) -> str:
    """The attribute that a property does nothing but return; empty for what is none."""
    if len(facts.returns) != 1 or not facts.params or facts.calls or not is_property(facts):
        return ""
    value = facts.returns[0]
    owner, _, name = value.rpartition(".") if isinstance(value, str) else ("", "", "")
    return name if owner == facts.params[0].name and name != facts.name else ""


def is_cached(facts: FunctionFacts) -> bool:
    """Whether a decorator keeps what the function returns, so that calling it again runs nothing."""
    return any(map(_is_cache, facts.decorators))


def _is_cache(decorator: Value) -> bool:
    """`cache`, `functools.lru_cache(100)`"""
    name = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
    return isinstance(name, str) and name.rpartition(".")[2] in _CACHES


def kept_by(value: Value, name: str) -> bool:
    """Whether a value is what goes by `name`, behind a cache: `lru_cache(100)(self.f)` for `self.f`, also with some of
    its arguments given, `cache(partial(self.f, x))`.
    """
    if not (isinstance(value, tuple) and value[0] == "call" and value[2] and _is_cache(value[1])):
        return False
    inner = value[2][0]
    while isinstance(inner, tuple) and inner[0] == "call" and inner[2] and str(inner[1]).endswith("partial"):
        inner = inner[2][0]
    return inner == name  # type: ignore[no-any-return]
