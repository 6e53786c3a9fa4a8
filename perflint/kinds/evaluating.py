"""What the parts of the inference ask of the whole, of which they are made before it is complete."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perflint.kinds.arguments import Arguments
    from perflint.kinds.frames import Frame
    from perflint.kinds.kind import Kind
    from perflint.kinds.linked import Linked
    from perflint.kinds.queries import Queries
    from perflint.program.refs import Ref, Refs, Scope
    from perflint.source.bindings import Definition
    from perflint.source.flow import Flow
    from perflint.source.tree import Tree


class Calling(Protocol):
    """Calls: `perflint.kinds.calls.Calls`."""

    def run(self, function: Ref, arguments: Arguments, receiver: Kind | None = None) -> Kind: ...

    def value(self, callee: Kind, arguments: Arguments) -> Kind: ...

    def method(self, base: Kind, name: str, arguments: Arguments, written: str = "") -> Kind: ...


class Evaluating(Protocol):
    """Expressions of one file: `perflint.kinds.inference.Inference`."""

    path: str
    tree: Tree
    flow: Flow
    program: Linked
    queries: Queries

    @property
    def calls(self) -> Calling: ...

    def eval(self, node: ast.expr, frame: Frame | None) -> Kind: ...

    def definition_kind(self, definition: Definition, frame: Frame | None = None) -> Kind: ...

    def annotated(self, node: ast.expr) -> Kind: ...

    def promised(self, text: str, scope: Scope) -> Kind: ...

    def member(self, base: Kind, name: str) -> Kind: ...

    def iterate(self, kind: Kind) -> Kind: ...

    def of_refs(self, refs: Refs) -> Kind: ...
