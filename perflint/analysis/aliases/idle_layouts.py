"""Copies that only put a slice in order, `x[:, :, :-n].contiguous()`, for operations that take any order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import is_constant, keyword
from perflint.syntax.tree import FUNCTIONS
from perflint.torch_model.modules import ELEMENTWISE_MODULES
from perflint.torch_model.names import canonical
from perflint.torch_model.tensors import ELEMENTWISE_FUNCTIONS


def is_idle_layout(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether `.contiguous()` copies a slice for nothing: all that reads it goes element by element, and gives what is
    contiguous whatever it was given.
    """
    assert isinstance(call.func, ast.Attribute)
    return _is_cut(call.func.value) and all(_takes_any_layout(use, ctx) for use in _uses(call, ctx))


def _is_cut(node: ast.expr) -> bool:
    """`x[:, :, :-n]` and `x[..., a:b]`, which skip some of each row; `x[a:]` is contiguous as `x` is."""
    parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
    if not parts or not all(isinstance(part, ast.Slice) or _is_rest(part) for part in parts):
        return False
    return any(isinstance(part, ast.Slice) and (part.lower or part.upper) is not None for part in parts[1:])


def _is_rest(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is ...


def _uses(node: ast.expr, ctx: FileFacts) -> list[ast.expr]:
    """Where a value is read: by its name, if it has one; itself, where it has none."""
    statement = ctx.tree.parent(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return [node]
    made = (
        ctx.inference.flow.definition_at(statement.targets[0]) if isinstance(statement.targets[0], ast.Name) else None
    )
    return list(ctx.inference.flow.uses_of(made)) or [node] if made is not None else [node]


def _takes_any_layout(use: ast.expr, ctx: FileFacts) -> bool:
    parent = ctx.tree.parent(use)
    if isinstance(parent, ast.Call) and parent.args[:1] == [use]:
        return _is_elementwise(parent, ctx)
    if not isinstance(parent, ast.Return):
        return False
    function, cls = ctx.tree.function_of(use), ctx.tree.class_of(use)
    if function is None or cls is None or function.name != "forward":
        return False
    returns = [part for part in ctx.walk(function) if isinstance(part, ast.Return)]
    following = list(_following(cls, ctx))
    return len(returns) == 1 and bool(following) and all(_is_made_elementwise(item, ctx) for item in following)


def _is_elementwise(call: ast.Call, ctx: FileFacts) -> bool:
    if (ctx.target(call.func) or "") in ELEMENTWISE_FUNCTIONS:
        return len(call.args) == 1 and not call.keywords
    return _is_made_elementwise(call.func, ctx)


def _is_made_elementwise(module: ast.expr | None, ctx: FileFacts) -> bool:
    """Whether a layer writes what is contiguous: one that works in place leaves the slice what it is."""
    if module is None or canonical(ctx.kind(module).qualified) not in ELEMENTWISE_MODULES:
        return False
    made: list[ast.expr | None] = [module]
    cls = ctx.tree.class_of(module)
    if isinstance(module, ast.Attribute) and cls is not None:
        made = [item.value for item in ctx.inference.classes.attributes.stores(cls, module.attr)]
    return all(isinstance(item, ast.Call) and not _works_in_place(item) for item in made)


def _works_in_place(made: ast.Call) -> bool:
    return keyword(made, "inplace") is not None or any(is_constant(item, value=True) for item in made.args)


def _following(cls: ast.ClassDef, ctx: FileFacts) -> Iterator[ast.expr | None]:
    """What runs behind each object of a class, which stands in a sequence of layers; None where that is not told."""
    for made in ctx.tree.walk(ctx.tree.module):
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == cls.name:
            yield from _behind(made, ctx)


def _behind(made: ast.Call, ctx: FileFacts) -> Iterator[ast.expr | None]:
    outer = ctx.tree.parent(made)
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1:
        function = ctx.tree.function_of(made)
        name = ctx.text(outer.targets[0])
        reads = [
            part
            for part in (ctx.walk(function) if isinstance(function, FUNCTIONS) else ())
            if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Load) and ctx.text(part) == name
        ]
        yield from (_next_in_sequence(read, ctx) for read in reads)
        if not reads:
            yield None
    else:
        yield _next_in_sequence(made, ctx)


def _next_in_sequence(item: ast.expr, ctx: FileFacts) -> ast.expr | None:
    sequence = ctx.tree.parent(item)
    if not isinstance(sequence, ast.Call) or not ctx.is_call_of(sequence, "torch.nn.Sequential"):
        return None
    places = [index for index, part in enumerate(sequence.args) if part is item]
    return sequence.args[places[0] + 1] if places and places[0] + 1 < len(sequence.args) else None
