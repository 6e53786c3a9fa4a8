"""What lists and mappings hold that are filled after they were made: by `append`, and item by item."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.analysis.values import promises
from perflint.analysis.values.displays import moves_items_where_it_can
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.keyed_stores import always_before, by_text
from perflint.analysis.values.kind import UNKNOWN, Kind, Place, Tag, by_key, join
from perflint.analysis.values.updated import with_updates
from perflint.finding import Confidence
from perflint.ir.calls import is_constant
from perflint.syntax.backwards import iterated_key
from perflint.syntax.bindings import Definition, key_of
from perflint.syntax.tree import FUNCTIONS
from perflint.syntax.walk import blocks_in

if TYPE_CHECKING:
    from perflint.analysis.values.inference import Inference

#: What may be a mapping of tensors: a part of a batch, an object of a class with items, something unknown.
_KEYED = (Tag.TENSOR, Tag.INSTANCE, Tag.UNKNOWN)
#: Methods that put something into a list, or take the order that its items came in.
_FILLS_LIST = frozenset({"append", "extend", "insert"})
_MOST_APPENDS = 4
_DICTS = ("dict", "OrderedDict", "collections.OrderedDict")
#: What holds a number under each key that nothing is stored under: it stands in until one is computed.
_OF_NUMBERS = ("defaultdict", "collections.defaultdict")


class Filling:
    """The contents of containers that the file fills, as far as it is plain to see."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference

    def with_appended(self, definition: Definition, kind: Kind, frame: Frame | None) -> Kind:
        """`rows = []` holds what `rows.append(...)` puts there, where nothing else in sight fills it."""
        value = definition.value
        if not isinstance(value, ast.List) or value.elts or definition.path:
            return kind
        text = self._inference.tree.source.text
        if f"{definition.name}.append(" not in text and f"{definition.name}.insert(" not in text:
            return kind
        added: list[ast.expr] = []
        for use in self._inference.flow.uses_of(definition):
            method = self._inference.tree.parent(use)
            if not isinstance(method, ast.Attribute) or method.attr not in _FILLS_LIST:
                continue
            call = self._inference.tree.parent(method)
            given = call.args if isinstance(call, ast.Call) else []
            if method.attr == "extend" or len(given) != (1 if method.attr == "append" else 2):
                return kind
            added.append(given[-1])
        if not added or len(added) > _MOST_APPENDS:
            return kind
        made = join(self._inference.eval(item, frame) for item in added)
        if not made.known:
            return kind if made.tag is Tag.NEVER else kind.but(element=kind.element or made, qualified="")
        made = promises.kept(made, kind.element or UNKNOWN).but(fresh=False)
        return kind.but(element=made.at_most(Confidence.MEDIUM), qualified="")

    def with_new_items(self, node: ast.Name, kind: Kind, frame: Frame | None, *, empty: bool) -> Kind:
        """`for k in batch: batch[k] = batch[k].to(device)` moves the whole batch. What was `empty` holds no more."""
        stores, through = self._inference.flow.item_stores(node)
        if not stores:
            return kind
        tree = self._inference.tree
        kinds = [(item, self._inference.definition_kind(item, frame)) for item in stores]
        told = by_text(kinds, self._inference.flow, tree) if kind.tag in (Tag.MAPPING, Tag.BATCH) else ()
        if through and not empty and not all(moves_items_where_it_can(item, node, tree) for item in stores):
            told = told if all(always_before(item, node, tree) for item in stores) else ()
            return _with_items(kind, told)
        made = join(held for _, held in kinds)
        if told and kind.tag is Tag.MAPPING:
            return _with_items(kind, told).but(element=made)
        before = kind
        if kind.tag in _KEYED:
            if not all(self._goes_through_keys(item, node.id) for item in stores):
                return kind
            if kind.tag is Tag.TENSOR:
                kind = kind.but(tag=Tag.BATCH)
            elif made.place is not Place.UNKNOWN:
                kind = Kind(Tag.BATCH, certainty=Confidence.MEDIUM)
        is_nothing = made.place is Place.UNKNOWN and not made.known if kind.tag is Tag.BATCH else not made.known
        if is_nothing or kind.tag in _KEYED:
            return before
        if kind.tag is Tag.BATCH:
            left_out = self._inference.flow.keys_left_out
            as_it_was = UNKNOWN if before.tag in (Tag.INSTANCE, Tag.UNKNOWN) else kind.but(items=())
            left = tuple((key, as_it_was) for item in stores for key in left_out(item))
            return kind.but(place=made.place, device=made.device, pinned=made.pinned, items=left, origin=made.origin)
        if empty:
            made = promises.kept(made, kind.element or UNKNOWN).at_most(Confidence.MEDIUM)
        if made.tag is Tag.MODULE and kind.items and all(held.tag is Tag.MODULE for _, held in kind.items):
            # `nets[key] = nets[key].to(device)`: each is what it was, wherever it is now.
            moved = {"place": made.place, "device": made.device, "origin": made.origin}
            return kind.but(element=made, items=tuple((key, held.but(**moved)) for key, held in kind.items))
        return kind.but(element=made, items=())

    def after_calls(self, node: ast.Name, kind: Kind, frame: Frame | None) -> Kind:
        """`move(batch, device)` moves the batch, where the function stores moved items into what it is given."""
        for call in self._calls_before(node):
            place = next(at for at, item in enumerate(call.args) if isinstance(item, ast.Name) and item.id == node.id)
            callee = self._inference.eval(call.func, frame)
            other = self._inference.at(callee.path) if callee.path and callee.tag is Tag.FUNCTION else None
            made = other.calls.stored(callee.qualified, place) if other is not None else UNKNOWN
            if made.on_accelerator:
                return kind.but(place=made.place, device=made.device, pinned=False, items=(), origin=made.origin)
        return kind

    def _calls_before(self, node: ast.Name) -> Iterator[ast.Call]:
        """Calls that stand alone, are given the name and have always run before the use, but for those before its last
        definition; the last ones first.
        """
        tree = self._inference.tree
        first = max((line_of(item.node) for item in self._inference.flow.definitions(node)), default=0)
        child, _ = tree.standing(node)
        for outer in tree.ancestors(child):
            for block in blocks_in(outer):
                if child in block:
                    for earlier in reversed(block[: block.index(child)]):
                        if earlier.lineno > first and _is_given(earlier, node.id):
                            yield earlier.value  # type: ignore[attr-defined]
            if isinstance(outer, (*FUNCTIONS, ast.Lambda)):
                return
            child = outer

    def with_keys(self, node: ast.Name, kind: Kind, frame: Frame | None) -> Kind:
        """`found = {}` with what `found["loss"] = loss` and `found.update(losses)` put into it, and a batch with what
        moves some of its parts.
        """
        kind = with_updates(node, kind, frame, self._inference) if kind.tag is Tag.MAPPING else kind
        stores = self._inference.flow.key_stores(node)
        if not stores or (kind.tag is not Tag.MAPPING and not all(isinstance(key, str) for key in stores)):
            return kind
        items = dict(kind.items)
        for key, each in stores.items():
            kinds = [self._inference.definition_kind(item, frame) for item in each]
            if any(made.is_tensor for made in kinds):
                kinds = [made for made in kinds if made.tag is not Tag.NUMBER]  # it stands in until one is computed
            items[key] = join(kinds).but(fresh=False)
        # What was told of all entries before goes for those under other keys.
        if kind.tag is not Tag.MAPPING:  # what is taken for a tensor of a loader has keys
            return kind.but(tag=Tag.BATCH, items=tuple(sorted(items.items(), key=by_key)))
        element = join(items[key] for key in stores) if kind.element is None else kind.element
        return kind.but(element=element, items=tuple(sorted(items.items(), key=by_key)))

    def with_attributes(self, node: ast.Name, kind: Kind, frame: Frame | None) -> Kind:
        """`result = Result()` with what `result.scores = scores` puts there, where the object is handed on whole."""
        if isinstance(self._inference.tree.parent(node), ast.Attribute):
            return kind
        stored = self._inference.flow.attribute_stores(node)
        items = dict(kind.items)
        for name, (stores, through) in stored.items():
            made = [self._inference.definition_kind(item, frame) for item in stores]
            before = items.pop(name, None)
            held = join([*made, before] if through and before is not None else made)
            if held.known and held.tag is not Tag.NEVER:
                items[name] = held.but(fresh=False).at_most(Confidence.MEDIUM)
        return kind.but(items=tuple(sorted(items.items(), key=by_key))) if stored else kind

    def _goes_through_keys(self, store: Definition, name: str) -> bool:
        """`for k, v in batch.items(): batch[k] = …`: what is taken for a tensor out of a loader is a mapping."""
        loops = (
            outer for outer in self._inference.tree.ancestors(store.node) if isinstance(outer, (ast.For, ast.AsyncFor))
        )
        return any(isinstance(loop.iter, ast.Call) and iterated_key(loop.iter) == name for loop in loops)


def _with_items(kind: Kind, told: tuple[tuple[str, Kind], ...]) -> Kind:
    """A mapping or a batch, with what is told of some of its keys."""
    names = {key for key, _ in told}
    kept = tuple(item for item in kind.items if item[0] not in names)
    return kind.but(items=tuple(sorted((*kept, *told), key=by_key))) if told else kind


def _is_given(statement: ast.stmt, name: str) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return any(isinstance(item, ast.Name) and item.id == name for item in statement.value.args)


def line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def is_placeholder(definition: Definition) -> bool:
    """`rows = [None] * n`, `[None for _ in xs]`: a list whose places are filled one by one."""
    value = definition.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        value = value.left if isinstance(value.left, ast.List) else value.right
        return isinstance(value, ast.List) and bool(value.elts) and all(is_constant(item, None) for item in value.elts)
    return isinstance(value, ast.ListComp) and is_constant(value.elt, None)


def is_empty_dict(definition: Definition) -> bool:
    value = definition.value
    if isinstance(value, ast.Call):
        begins = value.args and key_of(value.func) in _OF_NUMBERS and key_of(value.args[0]) in ("float", "int")
        is_made = begins or (key_of(value.func) in _DICTS and not value.args)
        return bool(is_made) and not value.keywords and not definition.path
    return isinstance(value, ast.Dict) and not value.keys and not definition.path
