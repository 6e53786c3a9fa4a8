"""Public functions of a library that compute with tensors: nothing in the tree calls them, but its users do."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.callbacks import BY_CONTRACT, FunctionRoot
from perflint.analysis.evidence import is_for_host, is_metric, is_no_operand, phases_named, says_tensor
from perflint.analysis.frequency.library import is_public
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence, Heat
from perflint.ir.summary import FunctionFacts, Value
from perflint.torch_model import tensors
from perflint.torch_model.names import canonical

#: Libraries that work on the host: what calls them makes pictures, files or arrays.
_ON_HOST = frozenset("PIL cv2 imageio json librosa matplotlib numpy onnx os pandas pickle plotly scipy skimage".split())
#: Files of a tree that are run, and not imported.
_RUN = frozenset("benchmark benchmarks demo demos doc docs example examples script scripts tool tools".split())
#: Phases whose functions run seldom, or on the host, though they are given tensors.
_ASIDE = frozenset({"checkpoint", "benchmark", "serve", "data"})


def public_functions(resolver: Resolver, graph: CallGraph) -> Iterator[tuple[Scope, FunctionRoot]]:
    """The functions of a library that only its users can call, and that take tensors."""
    for scope, facts in resolver.nesting.functions:
        if (
            not facts.owner
            and facts.params
            and not facts.is_generator
            and is_public(scope)
            and scope.path not in resolver.tests
            and _RUN.isdisjoint(scope.path.split("/")[:-1])
            and not _is_called(scope, resolver, graph)
            and _computes(scope, facts, resolver)
        ):
            role = "metric" if is_metric(f"{scope.path}.{facts.name}") else "forward"
            text = f"{facts.name} (a public function of tensors, {BY_CONTRACT})"
            yield scope, FunctionRoot(Heat.STEP, role, text, Confidence.MEDIUM, last_resort=True)


def _is_called(scope: Scope, resolver: Resolver, graph: CallGraph) -> bool:
    callers = (edge.caller for edge in graph.incoming.get(scope, ()))
    return any(caller != scope and caller.path not in resolver.tests for caller in callers)


def _computes(scope: Scope, facts: FunctionFacts, resolver: Resolver) -> bool:
    """Whether a function takes tensors and nothing else that has work done on it, and leaves files and arrays alone."""
    if any(is_no_operand(param.annotation) for param in facts.params) or is_for_host(facts.returns_annotation):
        return False
    if facts.name.endswith("_") or not _ASIDE.isdisjoint(phases_named(facts.name, scope.path)):
        return False  # `trunc_normal_(weight)` fills what a model begins with
    imports = resolver.summaries[scope.path].imports
    called = {_library(call.func, imports) for call in facts.calls}
    if not _ON_HOST.isdisjoint(called) or any(call.func == "open" for call in facts.calls):
        return False
    if any(says_tensor(param.annotation) for param in facts.params):
        return True
    operands = {param.name.lstrip("=") for param in facts.params if not param.annotation}
    return bool(operands) and any(_operates_on(operands, value, imports) for value in _values(facts))


def _values(facts: FunctionFacts) -> Iterator[Value]:
    yield from facts.returns
    for values in facts.binds.values():
        yield from values


def _library(func: object, imports: dict[str, str]) -> str:
    first = func.partition(".")[0] if isinstance(func, str) else ""
    return imports.get(first, "").partition(".")[0]


def _operates_on(names: set[str], value: Value, imports: dict[str, str]) -> bool:
    """Whether an operation of torch in a value is done to one of these names, or to a part of it."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, tuple):
            continue
        if value[0] == "call":
            first = value[2][0] if value[2] else None
            first = first[1] if isinstance(first, tuple) and first[0] == "item" else first
            if first in names and _is_operation(value[1], imports):
                return True
            waiting += [value[1], *value[2], *(item for _, item in value[3])]
        elif value[0] in ("item", "attr"):
            waiting.append(value[1])
        elif value[0] in ("seq", "either"):
            waiting += value[1]
    return False


def _is_operation(func: object, imports: dict[str, str]) -> bool:
    first, dot, rest = func.partition(".") if isinstance(func, str) else ("", "", "")
    function = canonical(f"{imports.get(first, '')}{dot}{rest}")
    known = function in tensors.FUNCTIONS or function in tensors.TUPLE_FUNCTIONS
    return known or function.startswith(tensors.FUNCTIONAL_MODULES)
