"""Files that hand batches to workers in other processes, which have the devices: what such a file holds is on the host.

A driver speaks to workers (Ray), itself or through a module that it imports, and trains nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.frequency.epochs import Loops
from perflint.analysis.names.refs import CLASS, FUNCTION, MODULE_REF
from perflint.analysis.names.resolver import Resolver
from perflint.finding import Confidence
from perflint.torch_model import frameworks

#: Of what a file that only imports a driver's module says, if it means to use a device itself.
_DEVICE_WORDS = frozenset({"cuda", "device", "non_blocking", "backward"})


def find_drivers(loops: Loops, resolver: Resolver, graph: CallGraph) -> frozenset[str]:
    """The files of a program that are drivers."""
    speaking = {path for path, summary in resolver.summaries.items() if _imports_workers(summary.imports.values())}
    if not speaking:
        return frozenset()
    training = {scope: None for (scope, _), loop in loops.items() if loop.role == "train"}
    # What a training calls itself runs in its process.
    run = [edge for scope in training for edge in graph.outgoing.get(scope, ()) if edge.confidence is Confidence.HIGH]
    trains = {scope.path for scope in (*training, *(edge.callee for edge in run))}
    return frozenset(
        path
        for path, summary in resolver.summaries.items()
        if path not in trains
        and (path in speaking or (_asks(path, speaking, resolver) and _DEVICE_WORDS.isdisjoint(summary.words())))
    )


def mark_drivers(loops: Loops, drivers: frozenset[str]) -> None:
    """Change the loops over batches that are a driver's."""
    for key, loop in loops.items():
        if loop.role == "batches" and key[0].path in drivers:
            loops[key] = loop._replace(role="driver")


def _imports_workers(imported: Iterable[str]) -> bool:
    return not frameworks.WORKER_MODULES.isdisjoint(imported)


def _asks(path: str, speaking: set[str], resolver: Resolver) -> bool:
    """Whether a file imports something of one that speaks to workers."""
    return any(
        ref.path in speaking
        for target in resolver.summaries[path].imports.values()
        for ref in resolver.imported(target, path)
        if ref.kind in (MODULE_REF, CLASS, FUNCTION)
    )
