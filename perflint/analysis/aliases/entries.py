"""What is done to the entries of a dict of tensors: replaced, removed, or written in place."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

_IN_PLACE = frozenset("copy_ add_ sub_ mul_ div_ zero_ fill_ lerp_ addcmul_ addcdiv_ normal_ uniform_ clamp_".split())


def only_rebinds_entries(name: str, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the function replaces or removes entries of the copy and never writes into one in place."""
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    rebinds = False
    for part in walk(function):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id == name:
            if isinstance(part.ctx, (ast.Store, ast.Del)):
                if isinstance(ctx.tree.parent(part), ast.AugAssign):
                    return False
                rebinds = True
            elif _may_be_written(part, ctx):
                return False
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == name:
            if part.attr == "pop":
                rebinds = True
            elif part.attr in ("values", "items"):
                return False  # tensors get names of their own, and may be written into under them
    return rebinds


def _may_be_written(entry: ast.expr, ctx: FileFacts) -> bool:
    """Whether a tensor is written into where it is read: by a method or function in place, through a view of it, or
    under a name that it is bound to.
    """
    child: ast.AST = entry
    for outer in ctx.tree.ancestors(entry):
        if isinstance(outer, ast.Attribute):
            if outer.attr in _IN_PLACE or outer.attr.endswith("_"):
                return True
        elif isinstance(outer, ast.Subscript):
            if child is not outer.value:
                return False
            if isinstance(outer.ctx, ast.Store):
                return True
        elif isinstance(outer, ast.Call):
            if child is not outer.func:
                return callee_name(outer).endswith("_") or isinstance(child, ast.keyword)
        elif isinstance(outer, (ast.Assign, ast.NamedExpr, ast.AnnAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            return not all(isinstance(target, ast.Subscript) for target in targets)
        elif isinstance(outer, ast.AugAssign):
            return child is outer.target
        elif not isinstance(outer, ast.keyword):
            return False
        child = outer
    return False


class ClonedEntries:
    """The entries of a dict made for loading: where they come from, and the calls that clone them."""

    def __init__(self, entries: ast.DictComp, source: ast.expr, clone: ast.Call) -> None:
        self.entries, self.source, self.clones = entries, source, (clone,)


def cloned_entries(given: ast.expr, load: ast.Call, ctx: FileFacts) -> ClonedEntries | None:
    """The comprehension that makes the dict, written in the call or bound right above it for the call alone."""
    if isinstance(given, ast.Name):
        given = _made_just_before(given, load, ctx) or given
    if isinstance(given, ast.Call) and len(given.args) == 1 and not given.keywords:
        if callee_name(given) in ("dict", "OrderedDict") and isinstance(given.args[0], ast.DictComp):
            given = given.args[0]
    if not isinstance(given, ast.DictComp) or len(given.generators) != 1:
        return None
    generator = given.generators[0]
    target, items = generator.target, generator.iter
    if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[1], ast.Name)):
        return None
    if not (isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute) and items.func.attr == "items"):
        return None
    clone = _clone_of(given.value, target.elts[1].id)
    return None if clone is None else ClonedEntries(given, items.func.value, clone)


def _made_just_before(name: ast.Name, load: ast.Call, ctx: FileFacts) -> ast.expr | None:
    definitions = ctx.inference.flow.definitions(name)
    if len(definitions) != 1 or not isinstance(definitions[0].node, ast.Assign):
        return None
    made = definitions[0].node
    if len(ctx.inference.flow.uses_of(definitions[0])) != 1 or len(made.targets) != 1:
        return None
    around = ctx.tree.parent(made)
    body = getattr(around, "body", [])
    if made not in body or body.index(made) + 1 >= len(body):
        return None
    return made.value if body[body.index(made) + 1] is ctx.tree.statement_of(load) else None


def _clone_of(value: ast.expr, name: str) -> ast.Call | None:
    """`v.clone()`, `v.detach().clone()` or `v.clone().detach()`: the `clone` call, where nothing else is done."""
    clone: ast.Call | None = None
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
        if value.keywords or value.func.attr not in ("clone", "detach"):
            return None
        if value.func.attr == "clone":
            clone = value
        value = value.func.value
    if isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    return clone if isinstance(value, ast.Name) and value.id == name else None


def value_cloned(clone: ast.Call) -> ast.expr:
    assert isinstance(clone.func, ast.Attribute)
    return clone.func.value
