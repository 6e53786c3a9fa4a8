"""What calling a container of modules runs: the `forward` of what an `nn.Sequential` holds, and the like."""

from __future__ import annotations

from perflint.analysis.call_graph.overriding import methods_of
from perflint.analysis.names.refs import INSTANCE, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import Value
from perflint.torch_model import wrappers
from perflint.torch_model.step_frameworks import CONTAINERS_OF_CALLED


def sequences_of(func: Value, scope: Scope, resolver: Resolver) -> list[Scope]:
    """Calling an `nn.Sequential` runs the `forward` of what it holds, a `MetricCollection` the `update`."""
    if not isinstance(func, str):
        return []
    found = []
    for definition, where in resolver.written.definitions(func, scope):
        value = _unchained(definition)
        if not isinstance(value, tuple) or value[0] != "call":
            continue
        maker = last_name(value[1])
        method = "forward" if maker.endswith("Sequential") else CONTAINERS_OF_CALLED.get(maker)
        whole = value[2][0] if maker in CONTAINERS_OF_CALLED and value[2] else value
        held = resolver.elements(whole, where) if method is not None else ()
        found += [item for ref in held if ref.kind == INSTANCE for item in methods_of(resolver, ref, (method or "",))]
    return found


def _unchained(value: Value) -> Value:
    """`nn.Sequential(...)` of `nn.Sequential(...).to(device).train()`."""
    while isinstance(value, tuple) and value[0] == "call" and isinstance(value[1], tuple) and value[1][0] == "attr":
        if value[1][2] not in wrappers.MODULE_CHAIN:
            break
        value = value[1][1]
    return value
