"""Whether a loop counts: what it iterates is a range of integers, from its iterable, for the roots of heat."""

from __future__ import annotations

from perflint.analysis.names.refs import Scope, given
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import Value

_RANGES = frozenset({"range", "trange", "arange", "count"})
#: What goes through its first argument, unchanged or in another order.
_WRAPPERS = frozenset("enumerate tqdm track list tuple iter reversed sorted islice".split())
_DEPTH = 6


def counts(value: Value | None, scope: Scope, resolver: Resolver, depth: int = _DEPTH) -> bool:
    """Whether each value that may be iterated is a range: `trange(epochs)`, or a name that is bound to such ones only.

    What a range is bound to says nothing: `train_iterator = trange(epochs)` gives numbers, no batches.
    """
    if depth == 0 or value is None:
        return False
    if isinstance(value, str):
        definitions = resolver.written.definitions(value, scope)
        return bool(definitions) and all(counts(inner, where, resolver, depth - 1) for inner, where in definitions)
    if isinstance(value, tuple) and value[0] == "call":
        name = last_name(value[1])
        passed = given(value)
        return name in _RANGES or (name in _WRAPPERS and bool(passed) and counts(passed[0], scope, resolver, depth - 1))
    return False
