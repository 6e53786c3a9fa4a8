"""Whether a function can take what a call hands it: of many that a call may run, those that would raise do not run."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.ir.summary import SPREAD, FunctionFacts, Value


def may_take(facts: FunctionFacts, args: Sequence[Value], keywords: Sequence[tuple[str, Value]]) -> bool:
    """Whether a function, or a method of an object, takes these arguments and maybe others: `partial` has some of its
    own. True as well where they are not all known.
    """
    given = {name for name, _ in keywords}
    if SPREAD in given:
        return True
    given.discard("")
    by_place, takes_more, takes_any = 0, False, False
    for name, _, _ in facts.params:  # asked of each of hundreds that a call may run
        begins = name[:1]
        if begins == "=":
            if given:
                given.discard(name[1:])
        elif begins != "*":
            by_place += 1
            if given:
                given.discard(name)
        elif name[:2] == "**":
            takes_any = True
        else:
            takes_more = True
    if _is_bound(facts) and len(args) < by_place:  # with as many it may be `Base.step(self, batch)`
        by_place -= 1
    if len(args) > by_place and not takes_more:
        return False
    return takes_any or not given


def object_takes(facts: FunctionFacts, args: Sequence[Value], keywords: Sequence[tuple[str, Value]]) -> bool:
    """Whether the method that calling an object runs takes just these arguments; True where they are not all known."""
    given = {name for name, _ in keywords}
    if SPREAD in given or "" in given:
        return True
    by_place = [param for param in facts.params if not param.name.startswith(("=", "*"))][1:]
    takes_more = any(param.name.startswith("*") and not param.name.startswith("**") for param in facts.params)
    if len(args) > len(by_place) and not takes_more:
        return False
    return may_take(facts, (), keywords) and has_all(facts, args, keywords)


def has_all(facts: FunctionFacts, args: Sequence[Value], keywords: Sequence[tuple[str, Value]]) -> bool:
    """Whether these arguments are all that a function, or a method of an object, cannot do without."""
    given = {name for name, _ in keywords}
    if SPREAD in given or "" in given:
        return True
    by_place = [param for param in facts.params if not param.name.startswith(("=", "*"))][_is_bound(facts) :]
    left = [*by_place[len(args) :], *(param for param in facts.params if param.name.startswith("="))]
    return all(param.default is not None or param.name.lstrip("=") in given for param in left)


def _is_bound(facts: FunctionFacts) -> bool:
    return bool(facts.in_class) and "staticmethod" not in facts.decorators
