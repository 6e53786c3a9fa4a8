"""Loops that hand batches to workers in other processes, which train: what such a loop holds itself is on the host."""

from __future__ import annotations

from perflint.program.epochs import Loops
from perflint.program.resolver import Resolver
from perflint.pytorch import frameworks


def mark_drivers(loops: Loops, resolver: Resolver) -> None:
    """Change the loops over batches that are a driver's: of a file that speaks to workers and trains nothing itself."""
    trains = {scope.path for (scope, _), loop in loops.items() if loop.role == "train"}
    for key, loop in loops.items():
        path = key[0].path
        if loop.role == "batches" and path not in trains and _speaks_to_workers(path, resolver):
            loops[key] = loop._replace(role="driver")


def _speaks_to_workers(path: str, resolver: Resolver) -> bool:
    return not frameworks.WORKER_MODULES.isdisjoint(resolver.summaries[path].imports.values())
