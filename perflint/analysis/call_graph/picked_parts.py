"""Methods that are called on modules which a program picks out of a model: `for gate in self.gates: gate.draw()`.

Whatever test picks them, they are modules, and what no module of torch has is the method of a class of the project.
"""

from __future__ import annotations

from perflint.analysis.names.refs import CLASS, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts, Value
from perflint.torch_model.modules import METHODS_OF_MODULES

_WALKS = frozenset("modules children named_modules named_children".split())
_WRAPPERS = frozenset("list tuple set reversed enumerate iter".split())
_DEEPEST = 8


class PickedParts:
    """Answers for one program."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._known: dict[tuple[Value, Scope], bool] = {}

    def targets(self, call: CallFacts, scope: Scope, facts: FunctionFacts) -> list[Scope]:
        """The method of the only class of modules that has it, called on one of a model's modules. A method that hands
        itself on, `for gate in self.gates: gate.draw()` in `draw`, is another one.
        """
        owner, _, name = call.func.rpartition(".") if isinstance(call.func, str) else ("", "", "")
        if not owner or "." in owner or name in METHODS_OF_MODULES or name.startswith("__"):
            return []
        methods = [
            item
            for item, found in self._resolver.nesting.by_name.get(name, ())
            if item != scope and found.in_class and self._is_module(item, found)
        ]
        if len(methods) != 1:
            return []
        loops = (facts.loops[index] for index in facts.loops_around(call.context))
        is_part = any(owner in loop.targets and self._gives_modules(loop.iterable, scope, _DEEPEST) for loop in loops)
        return methods if is_part else []

    def _is_module(self, scope: Scope, facts: FunctionFacts) -> bool:
        return self._resolver.hierarchy.is_module(Ref(CLASS, scope.path, facts.in_class))

    def _gives_modules(self, value: Value, scope: Scope, depth: int) -> bool:
        """Whether all that a value is known to hold are modules of a model, picked or not."""
        key = (value, scope)
        known = self._known.get(key)
        if known is None:
            self._known[key] = False
            known = self._known[key] = depth > 0 and self._holds(value, scope, depth - 1)
        return known

    def _holds(self, value: Value, scope: Scope, depth: int) -> bool:
        if isinstance(value, str):
            return self._is_filled(value, scope, depth) or self._is_given(value, scope, depth)
        if not isinstance(value, tuple):
            return False
        if value[0] == "each":
            return isinstance(value[1], str) and value[2] is not None and self._gives_modules(value[2], scope, depth)
        if value[0] != "call":
            return False
        name = last_name(value[1])
        if name in _WALKS and not value[2]:
            return True
        if name in _WRAPPERS and value[2]:
            return self._gives_modules(value[2][0], scope, depth)
        given = [ref for ref in self._resolver.refs(value[1], scope) if ref.kind == FUNCTION]
        return bool(given) and all(self._hands_out(ref, depth) for ref in given)

    def _is_given(self, name: str, scope: Scope, depth: int) -> bool:
        """Whether a name, an attribute or a property is given modules, wherever it is given anything."""
        base, _, attribute = name.rpartition(".")
        if base:
            found = [self._resolver.method(ref, attribute) for ref in self._resolver.refs(base, scope)
                     if ref.kind == INSTANCE]  # fmt: skip
            properties = [ref for ref in found if ref is not None]
            if properties:
                return all(self._hands_out(ref, depth) for ref in properties)
        made = [item for item in self._resolver.written.definitions(name, scope) if not _is_nothing(item[0])]
        return bool(made) and all(self._gives_modules(item, where, depth) for item, where in made)

    def _hands_out(self, ref: Ref, depth: int) -> bool:
        scope = Scope(ref.path, ref.name)
        facts = self._resolver.facts(scope)
        if facts.is_generator:
            yielded = [self._is_turn(value, scope, depth) for value, _ in facts.yields]
            return bool(yielded) and all(yielded)
        returned = [value for value in facts.returns if not _is_nothing(value)]
        return bool(returned) and all(self._gives_modules(value, scope, depth) for value in returned)

    def _is_filled(self, name: str, scope: Scope, depth: int) -> bool:
        """Whether a function makes an empty list by a name and adds modules to it, and nothing else."""
        added = [value for value in self._resolver.facts(scope).binds.get(name, ()) if value != ("seq", ())]
        return bool(added) and all(_is_added(value) and self._is_turn(value[1], scope, depth) for value in added)

    def _is_turn(self, value: Value, scope: Scope, depth: int) -> bool:
        """Whether a name is bound by loops over modules alone."""
        bound = self._resolver.facts(scope).binds.get(value, ()) if isinstance(value, str) else ()
        return bool(bound) and all(self._is_module_of(item, scope, depth) for item in bound)

    def _is_module_of(self, value: Value, scope: Scope, depth: int) -> bool:
        while isinstance(value, tuple) and value[0] == "item" and isinstance(value[1], tuple) and value[1][0] == "item":
            value = value[1]
        return isinstance(value, tuple) and value[0] == "item" and self._gives_modules(value[1], scope, depth)


def _is_added(value: Value) -> bool:
    """What `parts.append(part)` leaves in what `parts` stands for."""
    return isinstance(value, tuple) and value[0] == "each" and value[2] is None


def _is_nothing(value: Value) -> bool:
    return isinstance(value, tuple) and value[0] == "const" and value[1] == "NoneType"
