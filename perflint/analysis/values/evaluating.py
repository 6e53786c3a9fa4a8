"""What the parts of the inference ask of the whole, of which they are made before it is complete."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perflint.analysis.names.refs import Refs, Scope
    from perflint.analysis.values.calls import Calls
    from perflint.analysis.values.classes import Classes
    from perflint.analysis.values.decided import Decided
    from perflint.analysis.values.frames import Frame
    from perflint.analysis.values.kind import Kind
    from perflint.analysis.values.linked import Linked
    from perflint.analysis.values.narrowing import Narrowing
    from perflint.analysis.values.parameters import Parameters
    from perflint.analysis.values.queries import Queries
    from perflint.syntax.bindings import Definition
    from perflint.syntax.flow import Flow
    from perflint.syntax.tree import Tree


class Evaluating(Protocol):
    """Expressions of one file: `perflint.analysis.values.inference.Inference`."""

    path: str
    tree: Tree
    flow: Flow
    program: Linked
    queries: Queries
    calls: Calls
    classes: Classes
    parameters: Parameters
    narrowing: Narrowing
    decided: Decided

    def of_module(self, name: str) -> Kind | None: ...

    def bound_in(self, qualname: str, key: str) -> Kind | None: ...

    def at(self, path: str) -> Evaluating | None: ...

    def eval(self, node: ast.expr, frame: Frame | None) -> Kind: ...

    def definition_kind(self, definition: Definition, frame: Frame | None = None) -> Kind: ...

    def annotated(self, node: ast.expr) -> Kind: ...

    def promised(self, text: str, scope: Scope) -> Kind: ...

    def promise(self, text: str, scope: Scope, depth: int) -> Kind: ...

    def member(self, base: Kind, name: str) -> Kind: ...

    def origins(self, node: ast.expr, depth: int = 8) -> list[ast.expr]: ...

    def iterate(self, kind: Kind) -> Kind: ...

    def of_refs(self, refs: Refs) -> Kind: ...
