"""What a file's names mean in other files: the `def` of a function of the program, the binding of an imported name."""

from __future__ import annotations

import ast
from typing import TypeVar

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import MODULE_REF, Ref, Scope
from perflint.syntax.bindings import Binding, Definition
from perflint.syntax.tree import FUNCTIONS

Facts = TypeVar("Facts", bound=FileFacts)


def definition_of(scope: Scope, ctx: Facts) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, Facts] | None:
    """The `def` of a function of the program, and what may be asked in its file."""
    there = ctx.at(scope.path)
    node = there.inference.classes.function_node(scope.function) if there is not None else None
    return (node, there) if there is not None and isinstance(node, FUNCTIONS) else None


def class_of(ref: Ref, ctx: Facts) -> list[tuple[ast.ClassDef, Facts]]:
    """The `class` statement of a class of the program, and what may be asked in its file; empty without its text."""
    there = ctx.at(ref.path)
    node = there.inference.classes.class_node(ref.name) if there is not None else None
    return [(node, there)] if there is not None and node is not None else []


def bound(name: ast.Name, ctx: Facts) -> tuple[tuple[Definition, ...], Facts]:
    """What binds a name, and what may be asked there: an imported one is followed to the module that binds it."""
    found = ctx.inference.flow.definitions(name)
    word, seen = name.id, {ctx.path}
    while True:
        targets = [item.imported for item in found if item.binding is Binding.IMPORT and item.imported]
        if found and len(targets) < len(found):
            return found, ctx
        stars = [f"{star}.{word}" for star in ctx.summary.stars] if not found else []
        homes = [home for target in targets or stars for home in _homes(target, ctx)]
        further = [
            (there, there.inference.flow.bindings(there.tree.module).by_key.get(last, ())) for there, last in homes
        ]
        told = [(there, tuple(items)) for there, items in further if items and there.path not in seen]
        if len(told) != 1:
            return found, ctx
        (ctx, found), word = told[0], (targets or [word])[0].rpartition(".")[2]
        seen.add(ctx.path)


def _homes(target: str, ctx: Facts) -> list[tuple[Facts, str]]:
    """The file that `from module import name`, given as `module.name`, takes a name from, and the name."""
    module, _, last = target.rpartition(".")
    refs = ctx.program.resolver.imported(module, ctx.path) if module.strip(".") else ()
    found = [ctx.at(ref.path) for ref in refs if ref.kind == MODULE_REF]
    return [(there, last) for there in found if there is not None]
