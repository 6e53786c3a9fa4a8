"""What a method of the program stores in one object, computed of what its constructor was given: `self.turns =
iter(self.batches)`, where other objects of the class go through lists.
"""

from __future__ import annotations

import ast

from perflint.analysis.names.refs import Ref
from perflint.analysis.values.class_stores import ClassStores
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import UNKNOWN, Kind, Place, Tag
from perflint.syntax.tree import FUNCTIONS
from perflint.syntax.walk import walk


def is_open(found: Kind) -> bool:
    """Whether one object of a class may tell more of an attribute than all of them together."""
    if found.holds_tensors:
        return found.place is Place.UNKNOWN
    if found.tag in (Tag.SEQUENCE, Tag.MAPPING):
        return found.element is None or not found.element.known
    return not found.known


class ObjectAttributes:
    """Answers for the classes of one file, by class, name and object."""

    def __init__(self, inference: Evaluating, stores: ClassStores) -> None:
        self._inference = inference
        self._stores = stores
        self._known: dict[tuple[Ref, str, Kind], Kind] = {}

    def of(self, owner: Ref, name: str, base: Kind) -> Kind:
        """What the one store of an attribute gives in an object whose constructor is known to have been given some of
        its others; nothing where it reads none of them.
        """
        key = owner, name, base
        known = self._known.get(key)
        if known is not None:
            return known
        query = ("attribute of", self._inference.path, *key)
        return self._inference.queries.ask(query, self._known, key, self._stored, owner, name, base)

    def _stored(self, owner: Ref, name: str, base: Kind) -> Kind:
        node = self._inference.classes.class_node(owner.name)
        stores = self._stores.lasting(node, name) if node is not None else []
        if len(stores) != 1 or stores[0].value is None:
            return UNKNOWN
        method = self._inference.tree.function_of(stores[0].value)
        if not isinstance(method, FUNCTIONS) or not method.args.args:
            return UNKNOWN
        first, given = method.args.args[0].arg, {str(field) for field, _ in base.items}
        reads = any(
            isinstance(part, ast.Attribute)
            and part.attr in given
            and isinstance(part.value, ast.Name)
            and part.value.id == first
            for part in walk(stores[0].value)
        )
        return self._inference.definition_kind(stores[0], Frame(method, {first: base})) if reads else UNKNOWN
