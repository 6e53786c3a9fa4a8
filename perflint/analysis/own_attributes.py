"""How `self.x` is made, wherever it is set: by the class around, its bases or what derives from it, in any file, also
where a property hands it back. For what looks for how an attribute is made, and for where one is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from perflint.analysis.elsewhere import class_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, Ref
from perflint.finding import Heat
from perflint.ir.notation import last_name
from perflint.syntax.bindings import Definition
from perflint.syntax.walk import walk

if TYPE_CHECKING:
    from typing import TypeGuard

#: Methods that change what a container or an array holds.
_CHANGES = frozenset(
    "append appendleft extend insert add update setdefault pop popleft popitem remove clear sort reverse rotate fill "
    "copy_ fill_ zero_".split()
)
Facts = TypeVar("Facts", bound=FileFacts)


def stores_of(node: ast.expr, ctx: Facts) -> list[tuple[Definition, Facts]]:
    """What binds `self.x`: `self.x = ...` in methods, `x = ...` in bodies of classes. Of other expressions nothing."""
    return [
        (item, there)
        for cls, name, there in _holders(node, ctx)
        for item in there.inference.classes.attributes.stores(cls, name)
    ]


def values_of(node: ast.expr, ctx: Facts) -> list[tuple[ast.expr | None, Facts]]:
    """What `self.x` is given, by assignments and by `register_buffer`; None for what is not one expression."""
    stores = [(None if item.path else item.value, there) for item, there in stores_of(node, ctx)]
    buffers = [
        (there.inference.classes.attributes.buffers(cls)[name], there)
        for cls, name, there in _holders(node, ctx)
        if name in there.inference.classes.attributes.buffers(cls)
    ]
    return [*stores, *buffers]


def is_refilled(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether steps change what `self.x` holds: `self.cache[mode] = load()`, `self.turns[mode] += 1`,
    `self.rows.append(row)`.
    """
    return any(name in there.once(_refilled, cls) for cls, name, there in _holders(node, ctx))


def reads_of(target: ast.Attribute, ctx: Facts) -> Iterator[tuple[ast.Attribute, Facts]]:
    """Where what is stored as `self.x` is read: in its class and in those related to it, by properties as well."""
    cls = _class_around(target, ctx)
    for ref, name in ctx.program.whole.readers_of(cls, target.attr) if cls is not None else ():
        for node, there in class_of(ref, ctx):
            for part in (part for statement in there.tree.naming((name,), node) for part in there.tree.own(statement)):
                if is_own(part) and part.attr == name and isinstance(part.ctx, ast.Load):
                    if not _is_handed_back(part, there):
                        yield part, there


def is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """`self.x`"""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_handed_back(node: ast.Attribute, ctx: FileFacts) -> bool:
    """`return self._x` of a property, whose readers are found by its name."""
    outer, function = ctx.tree.parent(node), ctx.tree.function_of(node)
    if not isinstance(outer, ast.Return) or function is None or len(function.body) != 1:
        return False
    return any(last_name(item) in ("property", "cached_property") for item in function.decorator_list)


def _class_around(node: ast.Attribute, ctx: FileFacts) -> Ref | None:
    around = ctx.tree.class_of(node) if is_own(node) else None
    return Ref(CLASS, ctx.path, ctx.tree.qualname(around)) if around is not None else None


def _holders(node: ast.expr, ctx: Facts) -> Iterator[tuple[ast.ClassDef, str, Facts]]:
    cls = _class_around(node, ctx) if isinstance(node, ast.Attribute) else None
    if cls is None or not isinstance(node, ast.Attribute):
        return
    for ref, name in ctx.program.whole.setters_of(cls, node.attr) or ((cls, node.attr),):
        for found, there in class_of(ref, ctx):
            yield found, name, there


def _refilled(cls: ast.ClassDef, ctx: FileFacts) -> frozenset[str]:
    found: set[str] = set()
    for part in walk(cls):
        changed: ast.expr | None = None
        if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            changed = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGES:
            changed = part.func.value
        while isinstance(changed, ast.Subscript):
            changed = changed.value
        if changed is not None and is_own(changed) and ctx.heat(part) >= Heat.STEP:
            found.add(changed.attr)
    return frozenset(found)
