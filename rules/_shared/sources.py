"""Whether a tensor may be written into after it was read from: what an asynchronous copy must not meet."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from perflint.api import Context, Place, Tag, callee_name, last_name, tensors, walk

_BUILTINS = frozenset(
    "len print isinstance type repr str id hasattr float int bool list tuple dict zip enumerate".split()
)
_SHARING = (
    tensors.VIEW_METHODS
    | tensors.TUPLE_METHODS
    | tensors.CAST_METHODS
    | {"to", "cpu", "numpy", "pin_memory", "get", "pop", "items"}
)


#: What is made of others anew: nobody else has its memory.
_MADE = frozenset(f"torch.{name}" for name in "cat concat concatenate stack hstack vstack tensor where".split())
#: What makes a tensor of an array, in the same memory.
_WRAPPERS = frozenset({"from_numpy", "as_tensor"})


class _Shared(NamedTuple):
    """The names that may share memory with a value, and the one that it is a part of, with its key there."""

    names: set[str]
    root: str
    key: Hashable | None

    def has(self, value: ast.expr) -> bool:
        """Whether a value may be in that memory."""
        root = _root(value)
        if root is None or root.id not in self.names:
            return False
        return root.id != self.root or self.key is None or not _is_another(_key(value, root), {self.key})


class _Binding(NamedTuple):
    """A name that is bound to what another one holds, or to a part of it: to the one of this `key`, where that can be
    told. Parts of two keys are two objects.
    """

    name: str
    source: str
    key: Hashable | None
    line: int
    #: Whether a loop binds it: who goes through something fills nothing.
    by_loop: bool = False


def changes_later(value: ast.expr, node: ast.AST, ctx: Context) -> bool:
    """Whether the memory of `value` may be written into, in place, after `node` has begun to read it.

    Looks at the function: writes through its name, through names of its views and of what it is part of, and calls
    that cannot be seen and are given one of them.
    """
    root = _root(value)
    if root is None:
        return not _is_new(value, ctx)
    if _is_of_lambda(root, ctx):
        return True  # what is handed to it cannot be seen
    replaced = _is_replaced(value, root, node, ctx)
    shared = _sharing(value, root, node, ctx, replaced=replaced)
    later = shared._replace(names=shared.names - {root.id}) if replaced else shared
    own = {id(part) for part in walk(ctx.tree.statement_of(node))}
    writes = [part for part in _function(node, ctx) if _is_write(part, shared if id(part) in own else later, ctx)]
    return any(_may_follow(part, value, root, node, ctx) for part in writes)


def _is_of_lambda(root: ast.Name, ctx: Context) -> bool:
    """`map(lambda part: part.cuda(), batch)`."""
    lambdas = (outer for outer in ctx.tree.ancestors(root) if isinstance(outer, ast.Lambda))
    return any(item.arg == root.id for outer in lambdas for item in walk(outer.args) if isinstance(item, ast.arg))


def _is_new(value: ast.expr, ctx: Context) -> bool:
    """`torch.cat(parts).view(-1)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if ctx.target(value.func) in _MADE:
            return not any(item.arg in ("out", None) for item in value.keywords)
        value = value.func.value
    return False


def is_written_in(value: ast.expr, region: ast.AST, ctx: Context) -> bool:
    """Whether the memory of `value` is plain to see written into in a region, by its name or by one that shares it."""
    root = _root(value)
    if root is None:
        return False
    if root.id == "self":
        own = ".".join(ctx.text(value).partition("[")[0].split(".")[:2])  # `self.buffer`, whatever is read of it
        return any(_is_write_to(part, own, ctx) for part in walk(region))
    shared = _sharing(value, root, value, ctx)
    return any(
        not (isinstance(part, ast.Call) and not _is_in_place(part, shared)) and _is_write(part, shared, ctx)
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


def _is_in_place(call: ast.Call, shared: _Shared) -> bool:
    """Whether a call says that it writes: `x.add_(1)`, `torch.add(a, b, out=x)`, `nn.init.zeros_(x)`."""
    own = isinstance(call.func, ast.Attribute) and shared.has(call.func.value)
    return own or callee_name(call).endswith("_") or any(item.arg == "out" for item in call.keywords)


def _is_replaced(value: ast.expr, root: ast.Name, node: ast.AST, ctx: Context) -> bool:
    """`x = x.cuda()`, `batch["x"] = batch["x"].cuda()`: what is reached by that from then on is the copy."""
    statement = ctx.tree.statement_of(node)
    if not isinstance(statement, ast.Assign):
        return False
    inside = {id(part) for part in walk(node)}
    pairs = [pair for bound in statement.targets for pair in _pairs(bound, statement.value)]
    for target, made in pairs:
        if not inside.isdisjoint(map(id, walk(made))):
            if isinstance(target, ast.Name) and target.id == root.id:
                arms = (made.body, made.orelse) if isinstance(made, ast.IfExp) else (made,)
                taken = [arm for arm in arms if not inside.isdisjoint(map(id, walk(arm)))]
                return not any(_names_besides(arm, root.id, inside) for arm in taken)
            if ctx.text(target) == ctx.text(value):
                return True
    return False


def _names_besides(made: ast.expr, name: str, inside: set[int]) -> bool:
    """`x = [x.cuda(), x]` holds the source as well."""
    return any(isinstance(part, ast.Name) and part.id == name and id(part) not in inside for part in walk(made))


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment binds to what: `a, b = c, d`."""
    displays = (ast.Tuple, ast.List)
    if not isinstance(target, displays):
        yield target, value
    elif isinstance(value, displays) and len(value.elts) == len(target.elts) and not _has_star(target):
        for one, other in zip(target.elts, value.elts):
            yield from _pairs(one, other)
    else:
        for item in target.elts:
            yield from _pairs(item, value)


def _has_star(display: ast.Tuple | ast.List) -> bool:
    return any(isinstance(item, ast.Starred) for item in display.elts)


def _key(value: ast.expr, root: ast.Name) -> Hashable | None:
    """The key of the part of `root` that `value` is, or is a part of: `"x"` for `batch["x"][0]`."""
    found: Hashable | None = None
    whole: ast.expr | None = value
    while whole is not None and whole is not root:
        found = None
        if isinstance(whole, ast.Subscript) and isinstance(whole.slice, ast.Constant):
            found = whole.slice.value if type(whole.slice.value) in (int, str) else None
        whole = _whole(whole)
    return found


def _root(value: ast.expr) -> ast.Name | None:
    """`batch` for `batch["x"][0].view(-1)`."""
    while (whole := _whole(value)) is not None:
        value = whole
    return value if isinstance(value, ast.Name) else None


def _whole(value: ast.expr) -> ast.expr | None:
    """What a value is a part or a view of, as it is written: `batch["x"]` for `batch["x"].view(-1)`."""
    if isinstance(value, (ast.Subscript, ast.Attribute, ast.Starred)):
        return value.value
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute) and value.func.attr in _SHARING:
        return value.func.value
    return value.args[0] if len(value.args) == 1 and last_name(value.func) in _WRAPPERS else None


def _function(node: ast.AST, ctx: Context) -> list[ast.AST]:
    return list(walk(ctx.tree.function_of(node) or ctx.tree.module))


def _sharing(value: ast.expr, root: ast.Name, node: ast.AST, ctx: Context, *, replaced: bool = False) -> _Shared:
    """What may share memory with a value: what is bound to a part or view of it, what it was taken from, and all that
    is bound to these, but for other parts of what it is one part of. Where it is `replaced` by a copy, what is bound
    to it below has the copy.
    """
    below, key = getattr(ctx.tree.statement_of(node), "lineno", 0), _key(value, root)
    bindings = [
        item
        for item in _bindings(root.id, node, ctx)
        if not (replaced and item.source == root.id and item.line > below and (key is None or item.key in (None, key)))
    ]
    held = _held_by(root.id, key, bindings)
    names, filled = set(held), _filled(bindings, node, ctx)
    for item in bindings:
        if item.source in held and (item.source in filled or not _is_another(item.key, held[item.source])):
            names.add(item.name)
    while more := {item.name for item in bindings if item.source in names - set(held)} - names:
        names |= more
    return _Shared(names, root.id, None if root.id in filled else key)


_FILLING = frozenset("update setdefault append extend insert add".split())


def _filled(bindings: list[_Binding], node: ast.AST, ctx: Context) -> set[str]:
    """The names that the function itself puts something into, or binds to a part of something: two of their keys may
    lead to one memory.
    """
    filled = {item.name for item in bindings if not item.by_loop and item.name != item.source}
    for part in _function(node, ctx):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _FILLING:
            if (root := _root(part.func.value)) is not None:
                filled.add(root.id)
        elif isinstance(part, ast.Assign):
            filled |= {
                root.id
                for target, made in (pair for bound in part.targets for pair in _pairs(bound, part.value))
                if isinstance(target, ast.Subscript)
                and (root := _root(target)) is not None
                and ctx.text(target) not in ctx.text(made)
            }
    return filled


def _is_another(key: Hashable | None, keys: set[Hashable | None]) -> bool:
    """Whether the part under a key is surely none of those under `keys`: of one thing all have one type."""
    return bool(keys) and key is not None and all(type(item) is type(key) and item != key for item in keys)


def _held_by(name: str, key: Hashable | None, bindings: list[_Binding]) -> dict[str, set[Hashable | None]]:
    """What a name, or its part of this key, was taken from, whatever lies between, with the keys under which that
    holds it.
    """
    held: dict[str, set[Hashable | None]] = {name: set() if key is None else {key}}
    new = [name]
    while new:
        inner = new.pop()
        for item in bindings:
            if item.name == inner and item.source != name:
                if item.source not in held:
                    new.append(item.source)
                held.setdefault(item.source, set()).add(item.key)
    return held


def _bindings(name: str, node: ast.AST, ctx: Context) -> list[_Binding]:
    found: list[_Binding] = []
    for part in _function(node, ctx):
        if isinstance(part, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and part.value is not None:
            for target in part.targets if isinstance(part, ast.Assign) else [part.target]:
                found += _bound(target, part.value, part.value.lineno, ctx)
        elif isinstance(part, (ast.For, ast.comprehension)):
            targets = [item.id for item in walk(part.target) if isinstance(item, ast.Name)]
            # A loop over a loader binds something else on each turn; a comprehension goes through one batch.
            if name not in targets or isinstance(part, ast.comprehension):
                found += [
                    _Binding(target, root.id, None, part.target.lineno, by_loop=True)
                    for target in targets
                    for root, _ in _roots(part.iter, ctx)
                ]
    return found


def _bound(target: ast.expr, value: ast.expr, line: int, ctx: Context) -> Iterator[_Binding]:
    """What an assignment binds: `images, labels = batch`, `images, labels = batch["image"], batch["label"]`."""
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, ast.Name) and not _has_star(target):
        for number, item in enumerate(target.elts):
            yield from (_Binding(name.id, value.id, number, line) for name in _names(item))
        return
    for one, made in _pairs(target, value):
        for root, key in _roots(made, ctx):
            yield from (_Binding(name.id, root.id, key, line) for name in _names(one))


def _names(target: ast.expr) -> list[ast.Name]:
    """What an assignment binds or puts something into: `masks`, and not `i`, for `masks[i] = other`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for item in target.elts for name in _names(item)]
    root = _root(target)
    return [] if root is None else [root]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: Functions that hand out parts of what they are given.
_WALKING = frozenset("zip enumerate reversed iter list tuple".split())


def _roots(value: ast.expr, ctx: Context) -> Iterator[tuple[ast.Name, Hashable | None]]:
    """The names whose memory a value may share, itself or by what it holds: `(images, labels)`, `images.chunk(2)`; and
    the key of the part of each, where it is one.
    """
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
            yield from ((root, None) for root, _ in _roots(item, ctx))
    elif (root := _root(value)) is not None and not _moves(value, ctx):
        yield root, _key(value, root)


def _moves(value: ast.expr, ctx: Context) -> bool:
    """Whether a value is a copy on the device: it shares nothing with where it came from."""
    return ctx.kind(value).on_accelerator


def _is_write(part: ast.AST, shared: _Shared, ctx: Context) -> bool:
    """Whether a node may write into the memory of one of the names, or hand it out to who may."""
    if isinstance(part, (ast.Yield, ast.Return)) and part.value is not None:
        given = part.value.elts if isinstance(part.value, (ast.Tuple, ast.List)) else [part.value]
        return any(shared.has(item) and _is_on_host(item, ctx) for item in given)
    if isinstance(part, ast.AugAssign):
        return shared.has(part.target)
    if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
        # An entry of a mapping is bound anew; an element of a tensor is written.
        text = isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, str)
        return not text and shared.has(part.value)
    if not isinstance(part, ast.Call):
        return False
    func = part.func
    if isinstance(func, ast.Attribute) and shared.has(func.value):
        if func.attr in tensors.IN_PLACE_METHODS or (func.attr.endswith("_") and not func.attr.endswith("__")):
            return not func.attr.startswith("requires_grad")
    target = ctx.target(func) or ""
    if target.startswith("torch.") and not target.endswith("_"):
        return any(item.arg == "out" and shared.has(item.value) for item in part.keywords)
    if (isinstance(func, ast.Name) and func.id in _BUILTINS) or (
        isinstance(func, ast.Attribute) and func.attr in _SHARING
    ):
        return False
    given = [*part.args, *(item.value for item in part.keywords)]
    return any(shared.has(item) and _is_on_host(item, ctx) for item in given)


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
