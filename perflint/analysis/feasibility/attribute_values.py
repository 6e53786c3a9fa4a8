"""What names and attributes are given, as summaries have it, and what methods are called of."""

from __future__ import annotations

from perflint.analysis.names.refs import Ref, Scope
from perflint.ir.computed import COVERS
from perflint.ir.summary import ClassFacts, Value


def values_of(facts: ClassFacts, owner: Ref, name: str) -> list[tuple[Value, Scope]]:
    """What an attribute is given by the class itself, each with where it is written."""
    plain, computed = facts.attributes.get(name, ()), facts.computed.get(name, ())
    covered = {(item[1], where) for item, where in computed if type(item) is tuple and item[0] == COVERS}
    told = [item for item in computed if type(item[0]) is not tuple or item[0][0] != COVERS]
    left = [item for item in plain if item not in covered]
    return [
        (begun(value) if where != owner.name else value, Scope(owner.path, where)) for value, where in (*told, *left)
    ]


def begun(value: Value) -> Value:
    """What a name is bound to, unless it is an empty list or tuple: nobody makes one that stays empty, and what fills
    it (`.extend`, an item of another name) need not stand here.
    """
    return None if value == ("seq", ()) else value


def receiver_of(func: Value) -> Value:
    """What a method is called of."""
    if type(func) is str:
        return func.rpartition(".")[0] or None
    return func[1] if type(func) is tuple and func[0] == "attr" else None
