"""What kinds need to know of other files: the part of `Program` they use, and a program of one file."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import Ref, Refs, Scope
from perflint.ir.summary import Summary, Value
from perflint.syntax.flow import Flow

if TYPE_CHECKING:
    from perflint.analysis.names.results import Results
    from perflint.analysis.values.siblings import Siblings


class Names(Protocol):
    """Names across files: `perflint.analysis.names.resolver.Resolver`."""

    @property
    def results(self) -> Results: ...

    def refs(self, value: Value, scope: Scope) -> Refs: ...

    def imported(self, target: str, importer: str) -> Refs: ...

    def attribute(self, ref: Ref, name: str) -> Refs: ...

    def mro(self, cls: Ref) -> tuple[Ref, ...]: ...

    def method(self, instance: Ref, name: str) -> Ref | None: ...

    def offered(self, path: str) -> Refs: ...

    def below(self, cls: Ref) -> Refs: ...


class AllFiles(Protocol):
    """What is asked of all files at once: `perflint.analysis.program_facts.Whole`."""

    def writes_to_module(self, path: str, name: str) -> tuple[tuple[Scope, str], ...]: ...

    def writes_to_attribute(self, name: str) -> tuple[tuple[Scope, str], ...]: ...

    def setters_below(self, cls: Ref, attribute: str) -> tuple[Ref, ...]: ...

    def makes_on_card(self, path: str) -> str: ...

    def names_class(self, called: Value, scope: Scope) -> bool: ...

    def is_for_users(self, scope: Scope, context: int, callee: Scope) -> bool: ...


class Linked(Protocol):
    """A linked project: `perflint.analysis.program.Program`."""

    @property
    def summaries(self) -> Mapping[str, Summary]: ...

    @property
    def resolver(self) -> Names: ...

    @property
    def whole(self) -> AllFiles: ...

    def callers(self, scope: Scope) -> Sequence[Edge]: ...

    def named(self, name: str) -> Sequence[Scope]: ...

    def argument(self, edge: Edge, name: str) -> Value: ...

    def decided(self, value: Value, scope: Scope) -> bool | None: ...

    siblings: Siblings | None

    def flow(self, path: str) -> Flow | None: ...

    def is_step_of_engine(self, scope: Scope) -> bool: ...

    def role(self, scope: Scope, context: int) -> str: ...

    def mentions(self, names: Iterable[str]) -> bool: ...


def program_of(path: str, module: ast.Module, lines: list[str]) -> Linked:
    """A program of one file, for files that are looked at by themselves."""
    from perflint.analysis.program import Program
    from perflint.ir.survey import survey

    return Program({path: survey(module, lines)})
