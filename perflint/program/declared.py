"""What the decorators of a function, and a body that only raises, say of it."""

from __future__ import annotations

from perflint.facts.summary import FunctionFacts

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


def is_cached(facts: FunctionFacts) -> bool:
    """Whether a decorator keeps what the function returns, so that calling it again runs nothing."""
    for decorator in facts.decorators:
        name = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
        if isinstance(name, str) and name.rpartition(".")[2] in _CACHES:
            return True
    return False
