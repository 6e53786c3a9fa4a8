"""What a definition gives its name: an assignment, a loop, a parameter, an import, a `with`."""

from __future__ import annotations

import ast

from perflint.analysis.values import library, operations, promises
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.imported import imported
from perflint.analysis.values.kind import NEVER, UNKNOWN, Kind, Tag, join
from perflint.syntax.bindings import Binding, Definition
from perflint.syntax.tree import FUNCTIONS


class Definitions:
    """Answers for one file's inference, which remembers them."""

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference

    def kind(self, definition: Definition, inner: Frame | None) -> Kind:
        """The value that a definition gives its name, in one call of its function where a frame says which."""
        binding, value = definition.binding, definition.value
        if binding in (Binding.ASSIGN, Binding.WALRUS, Binding.MATCH):
            return self._assigned(definition, inner)
        if binding in (Binding.FOR, Binding.COMPREHENSION) and value is not None:
            found = operations.unpack(self._inference.iterate(self._inference.eval(value, inner)), definition.path)
            return self._as_declared(found, definition)
        if binding is Binding.AUGMENTED:
            return self._augmented(definition, inner)
        if binding is Binding.PARAM:
            return self._param(definition, inner)
        if binding is Binding.IMPORT:
            return self._import(definition)
        if binding in (Binding.FUNCTION, Binding.CLASS):
            return self._defined(definition.node)
        if binding is Binding.WITH and value is not None:
            return self._entered(value, definition, inner)
        return NEVER if binding is Binding.DELETE else UNKNOWN

    def _assigned(self, definition: Definition, frame: Frame | None) -> Kind:
        found = UNKNOWN
        if definition.value is not None:
            found = operations.unpack(self._inference.eval(definition.value, frame), definition.path)
        return self._as_declared(found, definition)

    def _as_declared(self, found: Kind, definition: Definition) -> Kind:
        if definition.annotation is None:
            return found
        return promises.kept(found, self._inference.annotated(definition.annotation))

    def _augmented(self, definition: Definition, frame: Frame | None) -> Kind:
        node = definition.node
        assert isinstance(node, ast.AugAssign)
        earlier, through = self._inference.flow.definitions_before(definition.name, node)
        kinds = [self._inference.definition_kind(item, frame) for item in earlier]
        if through and not isinstance(definition.target, ast.Name) and definition.target is not None:
            kinds.append(self._load_of(definition.target, frame))
        if any(kind.is_tensor for kind in kinds):
            kinds = [kind for kind in kinds if kind.tag is not Tag.NUMBER]  # `total = 0` before the first iteration
        before = join(kinds) if kinds else UNKNOWN
        added = self._inference.eval(node.value, frame)
        if before.tag is Tag.SEQUENCE and added.tag is Tag.SEQUENCE:
            return before.but(element=join((before.element or NEVER, added.element or NEVER)), items=(), qualified="")
        return operations.binary(before, node.op, added)

    def _load_of(self, target: ast.expr, frame: Frame | None) -> Kind:
        """What a target of `+=` was before, when nothing in this function gave it a value."""
        if isinstance(target, ast.Attribute):
            return self._inference.member(self._inference.eval(target.value, frame), target.attr)
        return UNKNOWN

    def _param(self, definition: Definition, frame: Frame | None) -> Kind:
        if frame is not None and definition.name in frame.params:
            if self._inference.flow.bindings(frame.function).params.get(definition.name) is definition:
                return frame.params[definition.name]
        return self._inference.parameters.kind(definition)

    def _import(self, definition: Definition) -> Kind:
        if self._inference.path in self._inference.program.summaries:
            found = imported(definition.imported, self._inference)
            if found is not None:
                return found
        return library.named(definition.imported)

    def _defined(self, node: ast.AST) -> Kind:
        if isinstance(node, ast.ClassDef):
            return Kind(Tag.CLASS, qualified=self._inference.tree.qualname(node), path=self._inference.path)
        assert isinstance(node, FUNCTIONS)
        return Kind(Tag.FUNCTION, qualified=self._inference.tree.qualname(node), path=self._inference.path)

    def _entered(self, value: ast.expr, definition: Definition, frame: Frame | None) -> Kind:
        """What `with value as x` binds. Progress bars and wrappers hand themselves back; a generator function of the
        project is a context manager here, and binds what it yields.
        """
        entered = self._inference.eval(value, frame)
        if isinstance(value, ast.Call) and self._inference.eval(value.func, frame).path and entered.tag is Tag.SEQUENCE:
            return operations.unpack(entered.element or UNKNOWN, definition.path)
        if entered.tag in (Tag.LOADER, Tag.SEQUENCE, Tag.INSTANCE, Tag.MODULE) and not definition.path:
            return entered if not entered.path else UNKNOWN
        return UNKNOWN
