"""How much of a program is reached: how many functions are hot, cold, not called, and which calls are not resolved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.finding import Heat
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, CallFacts

_MOST_NAMES = 5
_DEEPEST = 6
#: What is looked for, in words.
NO_LOOP = (
    "No training loop was found. Looked for: a loop over a DataLoader, a loop that runs backward() or an optimizer's "
    "step(), and methods that Lightning, Trainer and other frameworks call. Rules about hot code report nothing."
)


class Reach(NamedTuple):
    """`rare` functions run every epoch or every so many steps; no call is known of those that are `unreached`.
    `unresolved` are names of functions that calls could not be resolved for, with how many such calls run every step,
    and all in all.
    """

    hot: int
    rare: int
    cold: int
    unreached: int
    unresolved: tuple[tuple[str, int, int], ...]
    uses_torch: bool
    #: Files that cannot be imported, with what they lack.
    unimportable: tuple[tuple[str, str], ...] = ()

    def lines(self) -> Iterator[str]:
        """What `--statistics` prints."""
        total = self.hot + self.rare + self.cold + self.unreached
        yield (
            f"{total} functions: {self.hot} hot, {self.rare} every epoch or every few steps, {self.cold} cold, "
            f"{self.unreached} never called"
        )
        if self.unresolved:
            named = ", ".join(f"`{name}` ({often} hot, {calls} in all)" for name, often, calls in self.unresolved)
            yield f"Unresolved calls, the most frequent first: {named}"
        yield from self.left_out()

    def left_out(self) -> Iterator[str]:
        """What is said of files that are not reported."""
        for path, lacking in self.unimportable:
            yield f"{path} cannot be imported, so nothing in it is reported: {lacking}"


def reach(program: Program) -> Reach:
    """Tests are left out: what they call says nothing of training."""
    counts: Counter[str] = Counter()
    for scope, _ in program.resolver.nesting.functions:
        if scope.path in program.resolver.tests or scope.function == MODULE or scope.function.startswith("<lambda"):
            continue
        heat = program.peak(scope)
        if heat >= Heat.STEP:
            counts["hot"] += 1
        elif heat > Heat.ONCE:
            counts["rare"] += 1
        else:
            is_known = scope in program.graph.incoming or scope in program.roots.functions
            counts["cold" if is_known else "unreached"] += 1
    imported = (target for summary in program.summaries.values() for target in summary.imports.values())
    uses_torch = any(target.partition(".")[0] == "torch" for target in imported)
    return Reach(
        counts["hot"],
        counts["rare"],
        counts["cold"],
        counts["unreached"],
        tuple(_unresolved(program)),
        uses_torch,
        tuple(sorted(program.unimportable.faults.items())),
    )


def _unresolved(program: Program) -> list[tuple[str, int, int]]:
    defined = program.resolver.nesting.by_name
    often: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for caller, unresolved in program.graph.unresolved.items():
        for call in unresolved if caller.path not in program.resolver.tests else ():
            name = last_name(call.func)
            if name in defined and not name.startswith("__"):
                calls[name] += 1
                often[name] += program.heat_at(caller, call.context) >= Heat.STEP
    names = sorted(calls, key=lambda name: (-often[name], -calls[name], name))
    return [(name, often[name], calls[name]) for name in names[:_MOST_NAMES]]


def hot_calls_that_may_run(program: Program, scope: Scope) -> Iterator[tuple[Scope, CallFacts, Scope]]:
    """Hot calls that could not be resolved, and would make a function hot: by its name, or by the name of what comes
    to call it. Each with its caller and the function that goes by the name.
    """
    hot: dict[str, list[tuple[Scope, CallFacts]]] = {}
    for caller, calls in program.graph.unresolved.items():
        for call in calls:
            if program.heat_at(caller, call.context) >= Heat.STEP:
                hot.setdefault(last_name(call.func), []).append((caller, call))
    seen, level = {scope}, [scope]
    for _ in range(_DEEPEST):
        for one in level:
            yield from ((caller, call, one) for caller, call in hot.get(program.function(one).name, ()))
        callers = [edge.caller for one in level for edge in program.graph.incoming.get(one, ())]
        level = [one for one in dict.fromkeys(callers) if one not in seen and one.function != MODULE]
        seen.update(level)
