"""Which modules a program only evaluates: whoever has one made calls `eval()` of it, and nobody who trains does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from perflint.analysis.evidence import STARTING_CALLS
from perflint.analysis.frequency.heat import HeatMap
from perflint.analysis.names.refs import Scope
from perflint.ir.summary import CallFacts

#: Beyond so many callers of a constructor it is not told.
_MOST = 60


class OnlyEvaluated:
    """Answers for one program. `trains` says whether what calls a constructor may train."""

    def __init__(self, heat: HeatMap, trains: Callable[[Scope], bool]) -> None:
        self._heat = heat
        self._trains = trains
        self._known: dict[Scope, bool] = {}
        self._modes: dict[tuple[str, str], frozenset[str]] = {}

    def is_so(self, forward: Scope) -> bool:
        """Of the module whose method that is. A library's modules are trained by its users."""
        if self._heat.roots.library.is_library:
            return False
        owner = self._heat.resolver.summaries[forward.path].functions[forward.function].in_class
        made = Scope(forward.path, f"{owner}.__init__")
        known = self._known.get(made)
        if known is None:
            known = self._known[made] = bool(owner) and not self._trains(made) and self._is_evaluated(made)
        return known

    def _is_evaluated(self, made: Scope) -> bool:
        """Whether each way up from a constructor comes to what evaluates, and none to what trains."""
        seen, waiting = {made}, [made]
        while waiting:
            callers = list(self._callers(waiting.pop()))
            if not callers or len(seen) > _MOST:
                return False
            for caller in callers:
                modes = self._modes_around(caller)
                if "train" in modes:
                    return False
                if "eval" not in modes and caller not in seen:
                    seen.add(caller)
                    waiting.append(caller)
        return True

    def _callers(self, scope: Scope) -> Iterator[Scope]:
        roots, resolver = self._heat.roots, self._heat.resolver
        for edge in self._heat.graph.incoming.get(scope, ()):
            if edge.caller.path not in resolver.tests and edge.caller not in roots.unused:
                yield edge.caller

    def _modes_around(self, scope: Scope) -> frozenset[str]:
        """The modes that a function, or a method of its class, puts something into."""
        functions = self._heat.resolver.summaries[scope.path].functions
        owner = functions[scope.function].in_class
        key = scope.path, owner or scope.function
        known = self._modes.get(key)
        if known is None:
            around = [facts for facts in functions.values() if facts.in_class == owner] if owner else []
            calls = [call for facts in around or [functions[scope.function]] for call in facts.calls]
            known = self._modes[key] = frozenset(filter(None, map(_mode, calls)))
        return known


def _mode(call: CallFacts) -> str:
    """`net.eval()`, `net.train()`; with an argument, whichever that says."""
    last = call.func.rpartition(".")[2] if isinstance(call.func, str) and "." in call.func else ""
    if isinstance(call.func, tuple) and call.func[0] == "attr":
        last = call.func[2]
    if last != "train" and last in STARTING_CALLS:
        return "train"  # `trainer.fit(net)` of a framework
    if last == "train":
        off = ("const", "bool", False)
        return "eval" if call.args == (off,) or dict(call.keywords).get("mode") == off else "train"
    return "eval" if last == "eval" and not call.args else ""
