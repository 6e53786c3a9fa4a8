"""What the program's own containers hold by a text: `boxes.add_field("labels", x)`, `boxes.get_field("labels")`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.names.refs import Scope
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import UNKNOWN, Kind, Place, Tag, join
from perflint.analysis.values.origin import Origin, Provenance
from perflint.finding import Confidence
from perflint.syntax.tree import FUNCTIONS, FunctionNode

#: More methods of one name are of anything, and more calls of one are not all looked at.
_MOST_CONTAINERS = 4
_MOST_CALLS = 128
_OF_DICTS = frozenset(dir(dict))
#: What an object of the program may be taken for.
_TAKEN_FOR = (Tag.UNKNOWN, Tag.TENSOR, Tag.BATCH, Tag.OUTPUT)


class KeyedFields:
    """Answers for the containers of one file, by the method that gives a field and the text."""

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference
        self._held: dict[tuple[str, str], Kind] = {}

    def given_by(self, base: Kind, method: str, key: str) -> Kind:
        """What `base.method(key)` gives, where each method of that name in the program looks a text up in a dictionary
        of its object, and all that the program is known to put there by this text are tensors. They are where the
        container was moved: it takes along what it holds.
        """
        is_own = base.tag is Tag.INSTANCE
        # What a loader gives is taken for a tensor or several, and no tensor has such a method.
        if not is_own and (base.tag not in _TAKEN_FOR or base.certainty is Confidence.HIGH or method in _OF_DICTS):
            return UNKNOWN
        scopes = self._inference.program.named(method)
        if not 0 < len(scopes) <= _MOST_CONTAINERS:
            return UNKNOWN
        others = [(self._inference.at(scope.path), scope.function) for scope in scopes]
        held = [UNKNOWN if other is None else other.calls.fields.held(name, key) for other, name in others]
        known = [kind for kind in held if kind.tag is not Tag.NEVER]
        if not known or not all(kind.is_tensor for kind in known):
            return UNKNOWN
        found = join(known).but(place=Place.UNKNOWN, device=None, fresh=False, origin=Origin(Provenance.USE))
        if base.on_accelerator:
            found = found.but(place=base.place, device=base.device, origin=base.origin)
        return found.at_most(Confidence.MEDIUM)

    def held(self, method: str, key: str) -> Kind:
        """What a container of this file holds by a text, told by the method that gives it."""
        known = self._held.get((method, key))
        if known is not None:
            return known
        return self._inference.queries.ask(
            ("field", self._inference.path, method, key), self._held, (method, key), self._stored, method, key
        )

    def _stored(self, method: str, key: str) -> Kind:
        node, owner = self._inference.classes.function_node(method), method.rpartition(".")[0]
        attribute = _looked_up_in(node) if isinstance(node, FUNCTIONS) else None
        if attribute is None:
            return UNKNOWN
        kinds = list[Kind]()
        for setter, place in self._setters(owner, attribute):
            kinds += self._put_by(setter, place, key)
        # What is not known is mostly what was taken from such a field before.
        known = [kind for kind in kinds if kind.known]
        return join(known) if all(kind.is_tensor for kind in known) else UNKNOWN

    def _setters(self, owner: str, attribute: str) -> Iterator[tuple[FunctionNode, int]]:
        """The methods that put what they are given under what they are given, and the place of the value."""
        around = self._inference.classes.class_node(owner)
        for part in around.body if around is not None else ():
            if isinstance(part, FUNCTIONS) and (place := _place_of_put(part, attribute)) is not None:
                yield part, place

    def _put_by(self, setter: FunctionNode, place: int, key: str) -> Iterator[Kind]:
        scope = Scope(self._inference.path, self._inference.tree.qualname(setter))
        for edge in self._inference.program.callers(scope)[:_MOST_CALLS]:
            if edge.callback or edge.index < 0:
                continue
            facts = self._inference.program.summaries[edge.caller.path].functions[edge.caller.function]
            if facts.calls[edge.index].args[:1] != (("const", "str", key),):
                continue
            other = self._inference.at(edge.caller.path)
            given = None if other is None else other.parameters.argument_at(edge, "", place)
            yield UNKNOWN if given is None else given


def _looked_up_in(node: FunctionNode) -> str | None:
    """`fields` of `def get_field(self, name): return self.fields[name]`."""
    last, names = node.body[-1], [item.arg for item in node.args.args]
    value = last.value if isinstance(last, ast.Return) else None
    if len(names) != 2 or not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Name):
        return None
    held = value.value
    is_own = isinstance(held, ast.Attribute) and isinstance(held.value, ast.Name) and held.value.id == names[0]
    return held.attr if is_own and value.slice.id == names[1] else None  # type: ignore[attr-defined]


def _place_of_put(node: FunctionNode, attribute: str) -> int | None:
    """Where in its call the value stands that a method puts by a text: `self.fields[name] = value`."""
    names = [item.arg for item in node.args.args]
    for part in node.body:
        target = part.targets[0] if isinstance(part, ast.Assign) and len(part.targets) == 1 else None
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Attribute):
            continue
        assert isinstance(part, ast.Assign)
        key, value = target.slice, part.value
        if target.value.attr == attribute and isinstance(key, ast.Name) and isinstance(value, ast.Name):
            if names[1:2] == [key.id] and value.id in names[2:]:
                return names.index(value.id) - 1
    return None
