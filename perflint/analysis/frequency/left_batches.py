"""Loops behind a pass that go through what its last turn has left: the rows of one batch, a few of which are shown."""

from __future__ import annotations

from perflint.analysis.frequency.counting import counts
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.names.used_as import iterated
from perflint.ir.summary import FunctionFacts, LoopFacts, Value


def shows_a_batch(loop: LoopFacts, scope: Scope, facts: FunctionFacts, resolver: Resolver) -> bool:
    """Whether a loop in another one counts, or goes through what a loop has bound: `for row in batch`."""
    if counts(loop.iterable, scope, resolver):
        return True
    name = (iterated(loop.iterable) or "").partition(".")[0]
    return any(_is_of_turn(value) for value in facts.binds.get(name, ()))


def _is_of_turn(value: Value) -> bool:
    while isinstance(value, tuple) and value[0] == "item":
        if value[2] is None:
            return True
        value = value[1]
    return False
