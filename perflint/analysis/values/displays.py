"""Kinds of the containers that are written out, item by item or by a comprehension."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeAlias

from perflint.analysis.naming.values import OF_MACHINE
from perflint.analysis.values import operations
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import UNKNOWN, Kind, Tag, join, mapping, sequence
from perflint.syntax.backwards import keys_where
from perflint.syntax.bindings import Binding, Definition, key_of
from perflint.syntax.reaching import Reaching
from perflint.syntax.tree import Tree
from perflint.syntax.walk import walk

_Eval: TypeAlias = "Callable[[ast.expr, Frame | None], Kind]"
_MOVES = ("to", "cuda")
_PLACES = (*_MOVES, "cpu")
#: What a test asks for a device by.


def kind_of(node: ast.expr, frame: Frame | None, evaluate: _Eval) -> Kind:
    """What a list, a mapping or a comprehension holds; unknown for anything else."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        starred = next((place for place, item in enumerate(node.elts) if isinstance(item, ast.Starred)), None)
        if starred is not None:
            whole = sequence(join(_element(item, frame, evaluate) for item in node.elts))
            first = () if isinstance(node, ast.Set) else tuple(evaluate(item, frame) for item in node.elts[:starred])
            return whole.but(items=tuple(enumerate(first)), longer=bool(first))
        items = [evaluate(item, frame) for item in node.elts]
        return sequence(items=items) if items else sequence(qualified="empty")
    if isinstance(node, ast.Dict):
        return _dict(node, frame, evaluate)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return sequence(evaluate(node.elt, frame))
    if isinstance(node, ast.DictComp):
        return mapping(evaluate(node.value, frame))
    return UNKNOWN


def arms(node: ast.IfExp) -> tuple[ast.expr, ...]:
    """The arms of a conditional that tell what it gives. Of `value.to(device) if torch.is_tensor(value) else value` it
    is the one that moves: what is left as it is has no values to wait for. So it is of `value if key == "meta" else
    value.cpu()`: what goes by that key is told apart (`Flow.keys_left_out`).
    """
    if isinstance(node.orelse, ast.Name):
        moved = _moved(node.body)
        if moved is not None and moved.id == node.orelse.id:
            return (node.body,)
    for left, other, truth in ((node.body, node.orelse, True), (node.orelse, node.body, False)):
        if isinstance(left, ast.Name) and _is_of_keys(node.test, truth=truth):
            moved = _moved(other, _PLACES)
            if moved is not None and moved.id == left.id:
                return (other,)
    return node.body, node.orelse


def _is_of_keys(test: ast.expr, *, truth: bool) -> bool:
    first = test.values[0] if isinstance(test, ast.BoolOp) else test
    asked = next((part for part in ast.walk(first) if isinstance(part, ast.Name)), None)
    return asked is not None and bool(keys_where(test, asked.id, truth=truth))


def telling(
    definitions: tuple[Definition, ...], flow: Reaching, tree: Tree, runs: Callable[[Definition], bool]
) -> tuple[Definition, ...]:
    """Definitions but for those that another one moves where there is a device: `if use_cuda: x = x.cuda()`, and for
    the other one where it never runs.
    """
    moving = [item for item in definitions if _moves_where_it_can(item, tree)]
    if not moving:
        return definitions
    dead = [item for item in moving if not runs(item)]
    moving = [item for item in moving if item not in dead]
    definitions = tuple(item for item in definitions if item not in dead)
    sources = [source for item in moving if (source := _moved_path(item.value)) is not None]
    left = [
        item
        for source in sources
        for item in (flow.definitions(source) if isinstance(source, ast.Name) else flow.definitions_of(source)[0])
    ]
    return tuple(item for item in definitions if item in moving or item not in left)


def telling_stores(
    use: ast.expr, flow: Reaching, tree: Tree, runs: Callable[[Definition], bool]
) -> tuple[tuple[Definition, ...], bool]:
    """The same of `self.images`: its stores in this function, and whether it may have the value from before them."""
    stores, through = flow.definitions_of(use)
    return (telling(stores, flow, tree, runs) if len(stores) > 1 else stores), through


def moves_items_where_it_can(store: Definition, use: ast.expr, tree: Tree) -> bool:
    """`if use_cuda: for i in range(len(data)): data[i] = data[i].cuda()`, and the same in a `try` that leaves what
    cannot be moved as it is. Not for a `use` in the loop over the parts: that may be of what is not moved yet.
    """
    value = store.value
    parts = next((outer for outer in tree.ancestors(store.node) if isinstance(outer, ast.For)), store.node)
    if parts in tree.ancestors(use) or tree.statement_of(use) is tree.statement_of(store.node):
        return False
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES):
        return False
    guarded, loops = False, 0
    for outer in tree.ancestors(store.node):
        loops += isinstance(outer, ast.For)
        if loops == 2 or isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):  # over the parts, over batches
            break
        if isinstance(outer, ast.If):
            if not _asks_for_machine(outer.test):
                return False
            guarded = True
        elif isinstance(outer, ast.Try):
            if not all(isinstance(item, ast.Pass) for handler in outer.handlers for item in handler.body):
                return False
            guarded = True
    return guarded


def _moves_where_it_can(definition: Definition, tree: Tree) -> bool:
    moved = _moved_path(definition.value) if definition.binding is Binding.ASSIGN else None
    if moved is None or key_of(moved) != definition.name:
        return False
    branch = tree.parent(definition.node)
    return isinstance(branch, ast.If) and _asks_for_machine(branch.test)


def _asks_for_machine(test: ast.expr) -> bool:
    return any(OF_MACHINE.search(getattr(part, "id", "") or getattr(part, "attr", "")) for part in walk(test))


def _moved(value: ast.expr | None, methods: tuple[str, ...] = _MOVES) -> ast.Name | None:
    """`x` of `x.cuda()` and `x.float().to(device)`."""
    moved = _moved_path(value, methods)
    return moved if isinstance(moved, ast.Name) else None


def _moved_path(value: ast.expr | None, methods: tuple[str, ...] = _MOVES) -> ast.Name | ast.Attribute | None:
    """The same, or `self.x` of `self.x.cuda()`."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in methods):
        return None
    moved: ast.expr = value
    while isinstance(moved, ast.Call) and isinstance(moved.func, ast.Attribute):
        moved = moved.func.value
    return moved if isinstance(moved, (ast.Name, ast.Attribute)) else None


def _element(item: ast.expr, frame: Frame | None, evaluate: _Eval) -> Kind:
    if isinstance(item, ast.Starred):
        return operations.iterate(evaluate(item.value, frame))
    return evaluate(item, frame)


def _dict(node: ast.Dict, frame: Frame | None, evaluate: _Eval) -> Kind:
    items: list[tuple[str, Kind]] = []
    rest: list[Kind] = []
    for key, value in zip(node.keys, node.values):
        kind = evaluate(value, frame)
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            items.append((key.value, kind))
        elif key is None:
            rest.append(kind.element or UNKNOWN if kind.tag is Tag.MAPPING else operations.index(kind, None))
        else:
            rest.append(kind)
    if not rest:
        return mapping(items=items)
    return mapping(join([*rest, *(kind for _, kind in items)])).but(items=tuple(items))
