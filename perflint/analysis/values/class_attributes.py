"""Attributes of the classes of one file: what their methods store, their bodies declare and modules register."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.values.appended import Put, with_appended
from perflint.analysis.values.class_stores import ClassStores
from perflint.analysis.values.displays import telling
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import UNKNOWN, Device, Kind, Place, Tag, join
from perflint.analysis.values.object_attributes import ObjectAttributes
from perflint.analysis.values.origin import Origin, Provenance
from perflint.analysis.values.outside_stores import stored_from_outside
from perflint.analysis.values.swept_attributes import swept
from perflint.ir.notation import last_name
from perflint.ir.summary import MODULE
from perflint.syntax.bindings import Binding, Definition
from perflint.torch_model import frameworks
from perflint.torch_model.names import last

if TYPE_CHECKING:
    from perflint.analysis.values.classes import Classes

#: What is filled after it was made: `self.layers = []`, `self.masks = {}`.
_CONTAINERS = (Tag.MODULE, Tag.SEQUENCE, Tag.MAPPING)
_PREPARER_NAMES = frozenset(last(name) for name in frameworks.PREPARERS)


class ClassAttributes:
    """Answers for one file's classes."""

    def __init__(self, inference: Evaluating, classes: Classes) -> None:
        self._inference = inference
        self._classes = classes
        self._stores = ClassStores(inference)
        self.of_objects = ObjectAttributes(inference, self._stores)
        #: By method, what it puts into containers.
        self._put: dict[int, Put] = {}

    def here(self, owner: Ref, name: str) -> Kind | None:
        """What an attribute of a class of this file holds by what the class stores or declares; None where neither."""
        node = self._classes.class_node(owner.name)
        if node is None:
            return None
        buffers = self._stores.buffers_of(node)
        definitions = _stored(self._stores.lasting(node, name), is_registered=name in buffers)
        if len(definitions) > 1:
            inference = self._inference
            definitions = list(telling(tuple(definitions), inference.flow, inference.tree, inference.decided.runs))
        kinds = []
        for definition in definitions:
            kind = self._inference.definition_kind(definition)
            if kind.device is not None and kind.device.may_be_cuda and not isinstance(definition.target, ast.Attribute):
                # A default in the body of a class (a dataclass's field) is there to be overridden.
                kind = kind.but(device=Device.MAYBE)
            if definition.binding is Binding.AUGMENTED and not kind.holds_tensors:
                continue
            if kind.tag is Tag.TENSOR and self._is_parameter(definition):
                kind = kind.but(place=Place.MODULE, device=None)
            if kind.tag in _CONTAINERS and kind.element is None and not kind.items:
                kind = with_appended(kind, name, self._stores.methods_of(node), self._inference, self._put)
            kinds.append(kind)
            if kind is UNKNOWN and name not in buffers:
                break  # whatever the others are
        if name in buffers:
            value = buffers[name]
            given = self._inference.eval(value, None) if value is not None else UNKNOWN
            if given.tag is not Tag.NONE or not kinds:
                place = Place.HOST if self._is_trainer(node) else Place.MODULE
                buffer = Kind(Tag.TENSOR, place, rank=given.rank, dtype=given.dtype, requires_grad=False)
                kinds.append(buffer.but(origin=Origin(Provenance.BUFFER)))
            kinds = [kind for kind in kinds if kind.tag in (Tag.TENSOR, Tag.NONE)]
        found = join(kinds) if kinds else None
        if found is not UNKNOWN:
            outside = list(stored_from_outside(owner, name, found, self._inference))
            found = join([*kinds, *outside]) if outside else found
        if (found is None or not found.known) and (promised := self._annotated_here(node, owner, name)) is not None:
            return promised
        return found if found is None else swept(found, self._stores.methods_of(node), self._inference)

    def _annotated_here(self, node: ast.ClassDef, owner: Ref, name: str) -> Kind | None:
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                if statement.target.id == name:
                    return self._inference.annotated(statement.annotation)
        summary = self._inference.program.summaries.get(owner.path)
        facts = summary.classes.get(owner.name) if summary is not None else None
        if facts is not None and name in facts.annotations:
            return self._inference.promised(facts.annotations[name], Scope(owner.path, MODULE))
        return None

    @staticmethod
    def _is_parameter(definition: Definition) -> bool:
        """`self.w = nn.Parameter(...)` goes where the module goes."""
        value = definition.value
        if not isinstance(value, ast.Call):
            return False
        name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return name in ("Parameter", "Buffer", "UninitializedParameter")

    def stores(self, node: ast.ClassDef, name: str) -> tuple[Definition, ...]:
        """The stores to `self.name` in a class of this file."""
        return tuple(self._stores.of(node, name))

    def buffers(self, node: ast.ClassDef) -> dict[str, ast.expr | None]:
        """The first values of the buffers and parameters that a class of this file registers, by name."""
        return self._stores.buffers_of(node)

    def item_stores(self, node: ast.Subscript, key: str) -> tuple[Definition, ...]:
        """`self.drawn["order"]`: what the methods of the class around, and of its bases here, put there by that key."""
        held, around = node.value, self._inference.tree.class_of(node)
        if not isinstance(held, ast.Attribute) or not isinstance(held.value, ast.Name) or around is None:
            return ()
        found: list[Definition] = []
        for owner in self._classes.mro(Ref(CLASS, self._inference.path, self._inference.tree.qualname(around))):
            cls = self._classes.class_node(owner.name) if owner.path == self._inference.path else None
            for method, text in self._stores.methods_of(cls) if cls is not None else ():
                if held.attr in text and key in text and method.args.args[0].arg == held.value.id:
                    found += self._inference.flow.bindings(method).by_key.get(
                        f"{held.value.id}.{held.attr}[{key!r}]", ()
                    )
        return tuple(found)

    def definitions(self, base: Kind, name: str) -> tuple[Definition, ...]:
        """The stores to `self.name` in the class of `base`, when it is of this file."""
        node = self._classes.class_node(base.qualified) if base.path == self._inference.path else None
        return tuple(self._stores.of(node, name)) if node is not None else ()

    def _is_trainer(self, node: ast.ClassDef) -> bool:
        """Whether a module holds what prepares others for a device and is not moved itself: it counts in buffers."""
        if not any(name in self._inference.tree.source.text for name in _PREPARER_NAMES):
            return False
        calls = [part.func for part in self._inference.tree.walk(node) if isinstance(part, ast.Call)]
        if not any(last_name(func) in _PREPARER_NAMES for func in calls):
            return False
        moves = (func for func in calls if isinstance(func, ast.Attribute) and func.attr in ("to", "cuda", "prepare"))
        return not any(isinstance(func.value, ast.Name) and func.value.id == "self" for func in moves)


def _stored(definitions: list[Definition], *, is_registered: bool) -> list[Definition]:
    """Without `self.table: Tensor`, which stores nothing, where something else tells what is stored."""
    made = [item for item in definitions if item.value is not None or not isinstance(item.node, ast.AnnAssign)]
    return made if made or is_registered else definitions
