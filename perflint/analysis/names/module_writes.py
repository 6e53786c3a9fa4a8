"""Who sets the names of a module from outside: `config.device = "cuda:1"` in the file that imports `config`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from perflint.analysis.names.refs import MODULE_REF, Scope
from perflint.analysis.names.resolver import Resolver


class ModuleWrites:
    """The stores to attributes of modules, and of anything else than `self`, by the attribute."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def to(self, path: str, name: str) -> tuple[tuple[Scope, str], ...]:
        """The functions that set `name` of the module at `path`, each with what stands before the `=` there."""
        return tuple(
            (scope, f"{owner}.{name}")
            for scope, owner in self._stores.get(name, ())
            if any(ref.kind == MODULE_REF and ref.path == path for ref in self._resolver.refs(owner, scope))
        )

    def from_outside(self, name: str) -> bool:
        """Whether anybody sets an attribute of this name on something else than `self`."""
        return name in self._stores

    @cached_property
    def _stores(self) -> dict[str, list[tuple[Scope, str]]]:
        """By attribute, the functions that set it on something else than `self`, and on what."""
        found: dict[str, list[tuple[Scope, str]]] = {}
        for scope, dotted in self._dotted():
            owner, _, name = dotted.rpartition(".")
            if owner and owner.partition(".")[0] != "self":
                found.setdefault(name, []).append((scope, owner))
        return found

    def _dotted(self) -> Iterator[tuple[Scope, str]]:
        for scope, facts in self._resolver.nesting.functions:
            if scope.path not in self._resolver.tests:
                names = {**facts.binds, **facts.computed, **dict.fromkeys(facts.unclear)}
                yield from ((scope, name) for name in names if "." in name and not name.startswith("#"))
