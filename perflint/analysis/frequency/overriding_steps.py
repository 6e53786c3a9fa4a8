"""Steps of training that a class gives to a base which is not in sight, and which therefore nobody is seen to call."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.callbacks import FunctionRoot
from perflint.analysis.frequency.epochs import Loops
from perflint.analysis.names.refs import CLASS, EXTERNAL, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence, Heat
from perflint.ir.summary import FunctionFacts
from perflint.torch_model.frameworks import framework_of

#: Libraries whose classes call no step of training that a class derived from them has.
_PLAIN = frozenset({"torch", "numpy", "typing_extensions", *sys.stdlib_module_names})


def overriding_steps(
    training: Iterable[Scope], loops: Loops, resolver: Resolver, graph: CallGraph
) -> Iterator[tuple[Scope, FunctionRoot]]:
    """The methods that train on what they are given, once for each call, of classes with such a base: those of the
    `training` functions that nothing of the project calls, on whatever it may be.
    """
    for scope in sorted(training):
        facts = resolver.summaries[scope.path].functions[scope.function]
        base = _unseen_base(scope, facts, resolver)
        if not base or graph.incoming.get(scope) or any(resolver.nesting.calls_of({facts.name})):
            continue
        if len(facts.params) < 2 or any((scope, index) in loops for index in range(len(facts.loops))):
            continue
        text = f"{facts.name} (a step of training that a class gives to its base {base}, which is not in sight)"
        yield scope, FunctionRoot(Heat.STEP, "train", text, Confidence.MEDIUM)


def _unseen_base(scope: Scope, facts: FunctionFacts, resolver: Resolver) -> str:
    """The last name of a base of a method's class of which nothing is known but where it comes from."""
    if not facts.in_class or facts.name.startswith("_"):
        return ""
    for base in resolver.mro(Ref(CLASS, scope.path, facts.in_class)):
        top, dot, rest = base.name.partition(".")
        if base.kind == EXTERNAL and dot and top not in _PLAIN and framework_of(base.name) is None:
            return rest.rpartition(".")[2]
    return ""
