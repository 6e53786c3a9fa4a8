"""Whether a program is a library: nothing of it that is run trains, so that those who do call what it makes public."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.evidence import STARTING_CALLS, starts_training
from perflint.analysis.frequency.application import is_application
from perflint.analysis.frequency.epochs import Loops
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import MODULE, CallFacts
from perflint.torch_model.packages import is_installed


class Library:
    """What users of one program may call with what nobody sees."""

    def __init__(
        self, resolver: Resolver, graph: CallGraph, loops: Loops, configured: Callable[[], frozenset[str]]
    ) -> None:
        self._resolver = resolver
        self._configured = configured
        self._graph = graph
        self._loops = loops

    def is_open(self, scope: Scope) -> bool:
        """Whether users of the program may call a function, or make objects of its class."""
        return is_public(scope) and (self.is_library or scope.path.partition("/")[0] in self._packages)

    @cached_property
    def _packages(self) -> frozenset[str]:
        """The packages that anybody can install from a program, which do not train: those who do call what they make
        public, and the scripts beside them are the first of those.
        """
        training = {scope.path.partition("/")[0] for (scope, _), loop in self._loops.items() if loop.role == "train"}
        return self._installed - training

    @cached_property
    def _installed(self) -> frozenset[str]:
        summaries = self._resolver.summaries
        tops = [path for path in summaries if path.count("/") == 1 and path.endswith("/__init__.py")]
        if "setup.py" not in summaries:
            words = self._configured()
            tops = [path for path in tops if is_installed(path, words)]
        return frozenset(path.partition("/")[0] for path in tops if path not in self._resolver.tests)

    def is_installed(self, path: str) -> bool:
        """Whether a file is of a package that anybody can install: what its settings are, others write."""
        return path.partition("/")[0] in self._installed

    @cached_property
    def is_application(self) -> bool:
        """Whether nobody can install the program, and whoever has it runs what is in it."""
        return is_application(self._resolver, self._configured())

    @cached_property
    def is_library(self) -> bool:
        """Whether no function trains, and no method does that a file comes to when it is run; nor is it an application,
        which has its programs beside it.
        """
        training = {scope for (scope, _), loop in self._loops.items() if loop.role == "train"}
        if any(not self._resolver.summaries[scope.path].functions[scope.function].in_class for scope in training):
            return False
        seen = {Scope(path, MODULE) for path in self._resolver.summaries if path not in self._resolver.tests}
        waiting = list(seen)
        starting: dict[Scope, list[CallFacts]] = {}
        for _, scope, _, call in self._resolver.nesting.calls_of(STARTING_CALLS):
            starting.setdefault(scope, []).append(call)
        while waiting:
            scope = waiting.pop()
            calls = starting.get(scope, ())
            if scope in training or any(starts_training(call.func, self._resolver, scope) for call in calls):
                return False
            for edge in self._graph.outgoing.get(scope, ()):
                if edge.callee not in seen:
                    seen.add(edge.callee)
                    waiting.append(edge.callee)
        return not self.is_application


def is_public(scope: Scope) -> bool:
    """Whether no part of a function's name says that it is private."""
    names = scope.function.removesuffix(".__init__").split(".")
    return not any(name.startswith("_") and name != "__call__" for name in names)
