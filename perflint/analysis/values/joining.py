"""The value of a name that several definitions may have bound."""

from __future__ import annotations

import ast
import re

from perflint.analysis.values import displays
from perflint.analysis.values.decided import is_of_cuda
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import NONE, UNKNOWN, Kind, Tag, join
from perflint.finding import Confidence
from perflint.syntax.bindings import Binding, Definition, key_of
from perflint.system.patterns import pattern

_EXECUTES = pattern(r"^\s*exec\(|\bglobals\(\)", re.MULTILINE)


class Joining:
    """Answers for one file's inference."""

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference
        self._flow = inference.flow
        self._tree = inference.tree
        self._loads_files = "torch.load" in inference.tree.source.text

    def of(self, definitions: tuple[Definition, ...], frame: Frame | None) -> Kind:
        if len(definitions) > 1:
            definitions = displays.telling(definitions, self._flow, self._tree, self._inference.decided.runs)
        if len(definitions) > 1 and self._loads_files:
            made = tuple(item for item in definitions if item.value is None or not self._is_restored(item.value))
            if all(item.binding is Binding.IMPORT for item in made):
                made = ()  # a module by that name, `import model`: what is loaded is no such thing
            if made and len(made) < len(definitions):
                return self.of(made, frame).at_most(Confidence.MEDIUM)
        if len(definitions) == 1:
            return self._inference.definition_kind(definitions[0], frame)
        kinds: list[Kind] = []
        for definition in definitions:
            kinds.append(self._inference.definition_kind(definition, frame))
            if kinds[-1] is UNKNOWN:
                return UNKNOWN  # whatever the others are
        if len({kind.place for kind in kinds}) > 1:
            runs = self._inference.decided.runs
            run = tuple(item for item, kind in zip(definitions, kinds) if not is_of_cuda(kind) or runs(item))
            if run and len(run) < len(definitions):
                return self.of(run, frame)
        # `total = 0` before `total += loss`: after the first turn it is a tensor, and that is what matters.
        if any(definition.binding is Binding.AUGMENTED or self._feeds_itself(definition) for definition in definitions):
            if any(kind.tag is Tag.TENSOR for kind in kinds):
                kept = [kind for kind in kinds if kind.tag is not Tag.NUMBER]
                return join(kept).at_most(Confidence.MEDIUM if len(kept) < len(kinds) else Confidence.HIGH)
        if len(kinds) > 1 and any(kind.is_tensor for kind in kinds):
            # `norm = -1`, and a tensor where it is computed: the number only stands in.
            kept = [kind for kind, item in zip(kinds, definitions) if not (_is_placeholder(item) and kind is not NONE)]
            if kept:
                return join(kept).at_most(Confidence.MEDIUM if len(kept) < len(kinds) else Confidence.HIGH)
        return join(kinds)

    def _is_restored(self, value: ast.expr) -> bool:
        """Whether a value comes out of a checkpoint: it is what was saved, such as the same name holds elsewhere."""
        while isinstance(value, ast.Subscript):
            value = value.value
        if isinstance(value, ast.Name):
            given = self._flow.definitions(value)
            return bool(given) and all(item.value is not None and _is_load(item.value) for item in given)
        return _is_load(value)

    def may_be_replaced(self, definitions: tuple[Definition, ...]) -> bool:
        """Module-level settings that `exec` or `globals()` may replace, as configuration by script does."""
        if not _EXECUTES.search(self._tree.source.text):
            return False
        scope = self._flow.bindings(self._tree.module)
        return any(item in scope.by_key.get(item.name, ()) for item in definitions)

    @staticmethod
    def _feeds_itself(definition: Definition) -> bool:
        """`total = total + loss`."""
        value = definition.value
        if definition.binding is not Binding.ASSIGN or not isinstance(value, ast.BinOp):
            return False
        return definition.name in (key_of(value.left), key_of(value.right))


def _is_load(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and key_of(value.func) == "torch.load"


def _is_placeholder(definition: Definition) -> bool:
    """Whether a name is bound to a literal number."""
    value = definition.value
    if definition.binding is not Binding.ASSIGN or definition.path:
        return False
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        value = value.operand
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
