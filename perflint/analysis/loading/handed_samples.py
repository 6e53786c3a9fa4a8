"""Which data sets of the program a `__getitem__` asks for the sample that it changes and hands on."""

from __future__ import annotations

import ast

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import INSTANCE, Ref, Scope
from perflint.syntax.walk import walk


def asked_data_sets(scope: Scope, ctx: FileFacts) -> list[Ref]:
    """`self.inner[index]`: what is kept in an attribute and has a `__getitem__` of the project."""
    found = definition_of(scope, ctx)
    if found is None:
        return []
    node, there = found
    asked: dict[Ref, None] = {}
    for part in walk(node):
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and isinstance(part.value, ast.Attribute):
            for ref in there.refs(part.value):
                if ref.kind == INSTANCE and ctx.program.resolver.method(ref, "__getitem__") is not None:
                    asked[ref] = None
    return list(asked)
