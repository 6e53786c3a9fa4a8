"""Whether a tensor may be written into after it was read from: what an asynchronous copy must not meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Context, Place, Tag, callee_name, tensors, walk

_BUILTINS = frozenset(
    "len print isinstance type repr str id hasattr float int bool list tuple dict zip enumerate".split()
)
_SHARING = (
    tensors.VIEW_METHODS
    | tensors.TUPLE_METHODS
    | tensors.CAST_METHODS
    | {"to", "cpu", "numpy", "pin_memory", "get", "pop", "items"}
)


def changes_later(value: ast.expr, node: ast.AST, ctx: Context) -> bool:
    """Whether the memory of `value` may be written into, in place, after `node` has begun to read it.

    Looks at the function: writes through its name, through names of its views and of what it is part of, and calls
    that cannot be seen and are given one of them.
    """
    root = _root(value)
    if root is None:
        return True
    names = _sharing(root.id, node, ctx)
    if _is_replaced(value, node, ctx):
        names -= {root.id}
    writes = [part for part in _function(node, ctx) if _is_write(part, names, ctx)]
    return any(_may_follow(part, value, root, node, ctx) for part in writes)


def is_written_in(value: ast.expr, region: ast.AST, ctx: Context) -> bool:
    """Whether the memory of `value` is plain to see written into in a region, by its name or by one that shares it."""
    root = _root(value)
    if root is None:
        return False
    if root.id == "self":
        own = ".".join(ctx.text(value).partition("[")[0].split(".")[:2])  # `self.buffer`, whatever is read of it
        return any(_is_write_to(part, own, ctx) for part in walk(region))
    names = _sharing(root.id, value, ctx)
    return any(
        not (isinstance(part, ast.Call) and not _is_in_place(part, names)) and _is_write(part, names, ctx)
        for part in walk(region)
    )


def _is_write_to(part: ast.AST, own: str, ctx: Context) -> bool:
    if isinstance(part, ast.AugAssign):
        return ctx.text(part.target).startswith(own)
    if isinstance(part, ast.Subscript):
        return isinstance(part.ctx, ast.Store) and ctx.text(part.value).startswith(own)
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
        return False
    return part.func.attr.endswith("_") and ctx.text(part.func.value).startswith(own)


def _is_in_place(call: ast.Call, names: set[str]) -> bool:
    """Whether a call says that it writes: `x.add_(1)`, `torch.add(a, b, out=x)`, `nn.init.zeros_(x)`."""
    own = isinstance(call.func, ast.Attribute) and _is_one(call.func.value, names)
    return own or callee_name(call).endswith("_") or any(item.arg == "out" for item in call.keywords)


def _is_replaced(value: ast.expr, node: ast.AST, ctx: Context) -> bool:
    """`batch["x"] = batch["x"].cuda()`: what is reached through the batch from then on is the copy."""
    statement = ctx.tree.parent(node)
    if isinstance(value, ast.Name) or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    return ctx.text(statement.targets[0]) == ctx.text(value)


def _root(value: ast.expr) -> ast.Name | None:
    """`batch` for `batch["x"][0].view(-1)`."""
    while True:
        if isinstance(value, (ast.Subscript, ast.Attribute, ast.Starred)):
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SHARING:
            value = value.func.value
        else:
            return value if isinstance(value, ast.Name) else None


def _function(node: ast.AST, ctx: Context) -> list[ast.AST]:
    return list(walk(ctx.tree.function_of(node) or ctx.tree.module))


def _sharing(name: str, node: ast.AST, ctx: Context) -> set[str]:
    """Names that may share memory with `name`: bound to a part or view of it, or what it was taken from."""
    names = {name}
    bindings = [
        (target.id, root)
        for part in _function(node, ctx)
        if isinstance(part, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and part.value is not None
        for root in _roots(part.value, ctx)
        for target in _targets(part)
    ]
    bindings += [
        (target, root)
        for part in _function(node, ctx)
        if isinstance(part, (ast.For, ast.comprehension))
        for target in [item.id for item in walk(part.target) if isinstance(item, ast.Name)]
        if name not in [item.id for item in walk(part.target) if isinstance(item, ast.Name)]
        for root in _roots(part.iter, ctx)
    ]
    while True:
        more = {pair[1 - side] for pair in bindings for side in (0, 1) if pair[side] in names} - names
        if not more:
            return names
        names |= more


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: Functions that hand out parts of what they are given.
_WALKING = frozenset("zip enumerate reversed iter list tuple".split())


def _roots(value: ast.expr, ctx: Context) -> Iterator[str]:
    """The names whose memory a value may share, itself or by what it holds: `(images, labels)`, `images.chunk(2)`."""
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        for item in value.elts:
            yield from _roots(item, ctx)
    elif isinstance(value, ast.Dict):
        for item in value.values:
            yield from _roots(item, ctx)
    elif isinstance(value, ast.IfExp):
        yield from _roots(value.body, ctx)
        yield from _roots(value.orelse, ctx)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _WALKING:
        for item in value.args:
            yield from _roots(item, ctx)
    elif (root := _root(value)) is not None and not _moves(value, ctx):
        yield root.id


def _moves(value: ast.expr, ctx: Context) -> bool:
    """Whether a value is a copy on the device: it shares nothing with where it came from."""
    return ctx.kind(value).on_accelerator


def _targets(part: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> list[ast.Name]:
    targets = part.targets if isinstance(part, ast.Assign) else [part.target]
    return [name for target in targets for name in walk(target) if isinstance(name, ast.Name)]


def _is_write(part: ast.AST, names: set[str], ctx: Context) -> bool:
    """Whether a node may write into the memory of one of the names, or hand it out to who may."""
    if isinstance(part, (ast.Yield, ast.Return)) and part.value is not None:
        given = part.value.elts if isinstance(part.value, (ast.Tuple, ast.List)) else [part.value]
        return any(_is_one(item, names) and _is_on_host(item, ctx) for item in given)
    if isinstance(part, ast.AugAssign):
        return _is_one(part.target, names)
    if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
        # An entry of a mapping is bound anew; an element of a tensor is written.
        text = isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, str)
        return not text and _is_one(part.value, names)
    if not isinstance(part, ast.Call):
        return False
    func = part.func
    if isinstance(func, ast.Attribute) and _is_one(func.value, names):
        if func.attr in tensors.IN_PLACE_METHODS or (func.attr.endswith("_") and not func.attr.endswith("__")):
            return not func.attr.startswith("requires_grad")
    target = ctx.target(func) or ""
    if target.startswith("torch.") and not target.endswith("_"):
        return any(item.arg == "out" and _is_one(item.value, names) for item in part.keywords)
    if (isinstance(func, ast.Name) and func.id in _BUILTINS) or (
        isinstance(func, ast.Attribute) and func.attr in _SHARING
    ):
        return False
    given = [*part.args, *(item.value for item in part.keywords)]
    return any(_is_one(item, names) and _is_on_host(item, ctx) for item in given)


def _is_one(value: ast.expr, names: set[str]) -> bool:
    root = _root(value)
    return root is not None and root.id in names


def _is_on_host(value: ast.expr, ctx: Context) -> bool:
    """Whether a value given to a call may still be what lies on the host."""
    kind = ctx.kind(value)
    return kind.place is not Place.DEVICE and kind.tag not in (Tag.NUMBER, Tag.STRING, Tag.SHAPE, Tag.DTYPE, Tag.NONE)


def _may_follow(part: ast.AST, value: ast.expr, root: ast.Name, node: ast.AST, ctx: Context) -> bool:
    """Whether `part` may run after `node` and still concern what `root` was bound to there."""
    if any(inner is node for inner in walk(part)):
        return False
    flow = ctx.inference.flow
    ours = {id(item) for item in flow.definitions(root)}
    carried = not any(_is_bound_in(item.node, loop) for loop in ctx.loops(node)[:1] for item in flow.definitions(root))
    inside = bool(ctx.loops(node)) and any(inner is part for inner in walk(ctx.loops(node)[-1]))
    end = (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    behind = (part.lineno, part.col_offset) >= end or getattr(part, "lineno", 0) > node.lineno  # type: ignore[attr-defined]
    around = set(ctx.tree.ancestors(node))
    inner = [outer for outer in ctx.tree.ancestors(part) if isinstance(outer, _FUNCTIONS) and outer not in around]
    if inner:  # it runs whenever the function that it stands in is called, unless that has a name of its own there
        own = {item.arg for item in walk(inner[-1]) if isinstance(item, ast.arg)}
        own |= {item.id for item in walk(inner[-1]) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
        return root.id not in own
    if not behind and not (carried and inside):
        return False
    for name in walk(part):
        if isinstance(name, ast.Name) and name.id == root.id:
            if isinstance(name.ctx, ast.Load):
                return bool(ours & {id(item) for item in flow.definitions(name)}) and not _is_moved(value, part, ctx)
            if isinstance(part, ast.AugAssign):
                return bool(ours & {id(item) for item in flow.definitions_before(name.id, part)[0]})
    return True


def _is_moved(value: ast.expr, part: ast.AST, ctx: Context) -> bool:
    """Whether a part of a batch that `part` names has been put on the device by then: `batch["x"].add_(1)`."""
    same = [item for item in walk(part) if isinstance(item, ast.expr) and ast.dump(item) == ast.dump(value)]
    return not isinstance(value, ast.Name) and bool(same) and all(ctx.kind(item).on_accelerator for item in same)


def _is_bound_in(definition: ast.AST, loop: ast.AST) -> bool:
    return any(part is definition for part in walk(loop))
