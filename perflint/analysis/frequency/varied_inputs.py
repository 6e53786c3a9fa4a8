"""Whether a loop gives a network another input on each iteration, by what reaches the arguments of the call.

A loop over what is there before it begins, and that runs a network on one part of it after the other, is a pass over
data, whatever that is called: files, frames of a generator, pieces of a sequence that a range cuts.
"""

from __future__ import annotations

from collections.abc import Iterable

from perflint.analysis.frequency.counting import counts
from perflint.analysis.frequency.sources import behind, last_of_call, parts_of
from perflint.analysis.names.refs import CLASS, EXTERNAL_INSTANCE, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.naming.data import OPTION
from perflint.analysis.naming.models import MODEL
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts, LoopFacts, Value
from perflint.torch_model.modules import makes_module

#: Iterations that a program writes down: fewer are an example, not a pass.
_EXAMPLES = 100
#: How many names a bound is followed through.
_LINKS = 3
#: What tells how long something is.
_EXTENTS = ("len(", ".shape", ".size(")
#: What makes a whole number of a quotient.
_ROUNDING = frozenset({"int", "ceil", "floor", "round"})
#: What gives the parts of a network.
_PARTS = frozenset(
    "modules named_modules children named_children parameters named_parameters state_dict buffers named_buffers "
    "_modules param_groups layers blocks stages".split()
)
#: What cuts something in as many parts as it is told.
_IN_PARTS = frozenset({"chunk", "tensor_split"})
#: What goes through its first argument.
_WRAPPERS = frozenset("enumerate tqdm track list tuple iter reversed sorted items values zip".split())


class VariedInputs:
    """Answers for one program."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def is_varied(
        self, call: CallFacts, given: Iterable[Value], scope: Scope, facts: FunctionFacts, loop: LoopFacts
    ) -> bool:
        """Whether what a `call` of a network is `given` comes from what a `for` loop of a function binds."""
        targets = {name for name in loop.targets if name != "_"}
        if loop.kind != "for" or not targets or self._is_part_of_network(facts, scope) or _is_over_parts(loop.iterable):
            return False
        if counts(loop.iterable, scope, self._resolver):
            if self.is_example(loop.iterable, scope) or not _counts_extent(loop, facts):
                return False
            return any(_is_cut(value, targets, call.func) for value in behind(given, facts, targets))
        if last_of_call(loop.iterable) == "enumerate" and len(loop.targets) > 1:
            targets.discard(loop.targets[0])
        return _is_made_of(self._subject(given, scope, facts), targets, _keyed(loop.iterable), facts)

    def _subject(self, given: Iterable[Value], scope: Scope, facts: FunctionFacts) -> Value:
        """What a network is run on, of what a call is given: the first that is no network, number or option itself."""
        for value in given:
            if not self._is_option(value, scope, facts):
                return value
        return None

    def _is_option(self, value: Value, scope: Scope, facts: FunctionFacts) -> bool:
        if not isinstance(value, str):
            return isinstance(value, tuple) and value[0] in ("const", "lambda")
        if MODEL.search(last_name(value)) or OPTION.search(last_name(value)):
            return True
        if any(map(self._is_code, self._resolver.refs(value, scope))):
            return True
        made = facts.binds.get(value, ())
        return bool(made) and all(isinstance(item, tuple) and item[0] == "const" for item in made)

    def _is_code(self, ref: Ref) -> bool:
        """Whether something is a network, a class or a function."""
        if ref.kind in (INSTANCE, EXTERNAL_INSTANCE):
            is_own = ref.kind == INSTANCE
            return (
                self._resolver.hierarchy.is_module(Ref(CLASS, ref.path, ref.name)) if is_own else makes_module(ref.name)
            )
        return True

    def _is_part_of_network(self, facts: FunctionFacts, scope: Scope) -> bool:
        """Loops in methods of modules go over layers, rows and steps of one input."""
        return bool(facts.in_class) and self._resolver.hierarchy.is_module(Ref(CLASS, scope.path, facts.in_class))

    def is_example(self, value: Value, scope: Scope, links: int = _LINKS) -> bool:
        """`range(10)`, `range(count)` of a count that is written down."""
        if isinstance(value, str):
            if not links:
                return False
            made = self._resolver.written.definitions(value, scope)
            return bool(made) and all(self.is_example(item, where, links - 1) for item, where in made)
        if not isinstance(value, tuple):
            return False
        if value[0] == "const":
            return isinstance(value[2], int) and abs(value[2]) < _EXAMPLES
        if value[0] != "call" or not value[2]:
            return False
        if last_name(value[1]) in _IN_PARTS:
            return self.is_example(value[2][-1], scope, links)
        if last_name(value[1]) in _WRAPPERS or value[1] == "len":
            return self.is_example(value[2][0], scope, links)
        return last_name(value[1]) in ("range", "trange") and all(
            self.is_example(item, scope, links) for item in value[2]
        )


def _counts_extent(loop: LoopFacts, facts: FunctionFacts) -> bool:
    """Whether a loop counts how long something is, or goes by pieces: what else is counted may be a few parts."""
    value: Value = loop.iterable
    while isinstance(value, tuple) and value[0] == "call" and value[2] and last_of_call(value) != "range":
        value = value[2][0]
    if isinstance(value, str):
        return True
    bounds = value[2] if isinstance(value, tuple) and value[0] == "call" else ()
    if len(bounds) == 3 or any(word in loop.text for word in _EXTENTS):
        return True
    made = [item for name in bounds if isinstance(name, str) for item in facts.binds.get(name, ())]
    return any(
        last_of_call(item) in ("len", "size")
        or (isinstance(item, tuple) and ".shape" in str(item[1]))
        or _is_rounded(item)
        for item in made
    )


def counts_pieces(loop: LoopFacts, facts: FunctionFacts) -> bool:
    """Whether a loop counts as many pieces as a length holds: `range(n_batches)`."""
    bounds = loop.iterable[2] if isinstance(loop.iterable, tuple) and loop.iterable[0] == "call" else ()
    return any(_is_rounded(item) for name in bounds if isinstance(name, str) for item in facts.binds.get(name, ()))


def _is_rounded(value: Value) -> bool:
    """`int(rows / size)`: how many pieces there are of what is that long, rounded."""
    return last_of_call(value) in _ROUNDING and bool(value[2]) and value[2][0] is None


def _keyed(value: Value) -> str:
    """What a loop goes through the keys of, or through itself: `rows` of `tqdm(rows.keys())`."""
    while isinstance(value, tuple) and value[0] == "call":
        if isinstance(value[1], str) and last_name(value[1]) == "keys":
            return value[1].removesuffix(".keys")
        if last_of_call(value) not in _WRAPPERS or not value[2]:
            return ""
        value = value[2][0]
    return value if isinstance(value, str) else ""


def _is_made_of(value: Value, targets: set[str], keyed: str, facts: FunctionFacts) -> bool:
    """Whether a value is one of the targets, a part of it or what is `keyed` by it, or what a call makes of it: of what
    that is given first, not of a size that something else is brought to.
    """
    seen: set[str] = set()
    waiting: list[Value] = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            name = value.partition(".")[0]
            if name in targets:
                return True
            if name not in seen:
                seen.add(name)
                waiting += facts.binds.get(name, ())
                waiting += (part for target, parts in facts.mixed if target == name for part in parts)
                waiting += (item for container, item in facts.stores if container == name)
        elif isinstance(value, tuple) and value[0] == "item" and value[2] is None and keyed and value[1] == keyed:
            return True
        elif isinstance(value, tuple) and value[0] == "call":
            waiting += value[2][:1] or [item for _, item in value[3]]
            waiting += [value[1]] if "." in str(value[1]) else ()
        elif isinstance(value, tuple):
            waiting += parts_of(value)
    return False


def _is_cut(value: Value, targets: set[str], func: Value) -> bool:
    """Whether a value is an item of what is there before the loop, or comes from a call that is told the number."""
    if not isinstance(value, tuple):
        return False
    if value[0] == "item":
        owner = value[1].partition(".")[0] if isinstance(value[1], str) else ""
        return value[2] is None and bool(owner) and owner not in targets
    return (
        value[0] == "call"
        and value[1] != func
        and len(value[2]) > 1
        and not targets.isdisjoint(item for item in value[2] if isinstance(item, str))
    )


def _is_over_parts(value: Value) -> bool:
    """Whether a loop goes over the layers of a network."""
    while isinstance(value, tuple) and value[0] == "call":
        if last_of_call(value) in _PARTS:
            return True
        if isinstance(value[1], tuple) and value[1][0] == "attr":
            value = value[1][1]
        elif last_of_call(value) in _WRAPPERS and value[2]:
            value = value[2][0]
        elif isinstance(value[1], str) and last_of_call(value) in _WRAPPERS:
            return value[1].rpartition(".")[0].rpartition(".")[2] in _PARTS
        else:
            return False
    return isinstance(value, str) and value.rpartition(".")[2] in _PARTS
