"""What is looked up by a name that is written out: `getattr(config, "fast", False)`, `kwargs.get("fast")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.analysis.feasibility.lattice import BOTTOM, NO, SOMETHING, TOP, Possible, switched
from perflint.analysis.feasibility.options import OPTION_NAMES
from perflint.analysis.feasibility.worlds import KEEPING, Frame, World
from perflint.analysis.feasibility.written_dicts import WrittenDicts
from perflint.analysis.names.refs import EXTERNAL_INSTANCE, Scope
from perflint.ir.summary import Value
from perflint.torch_model import hardware

if TYPE_CHECKING:
    from perflint.analysis.feasibility.values import Values

#: Past so many calls what they pass is not asked.
MOST_CALLERS = 200


class LookedUp:
    """The entries and attributes of one program that its values look up."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._dicts = WrittenDicts(values.resolver, values.passing)

    def got(self, args: tuple[Value, ...], scope: Scope, world: World, frame: Frame | None) -> Possible:
        """`getattr(config, "name", default)`"""
        base, name = args[0], args[1]
        if type(base) is not str or not (type(name) is tuple and name[:2] == ("const", "str") and name[2]):
            return TOP
        dotted = f"{base}.{name[2]}"
        if world not in KEEPING or len(args) < 3 or self._is_told(dotted, scope):
            return self._values.path(dotted, scope, world)
        return (
            TOP
            if self._values.presence.is_set_anywhere(name[2])
            else switched(self._values.of(args[2], scope, world, frame))
        )

    def _is_told(self, dotted: str, scope: Scope) -> bool:
        """Whether anything but a default tells what an attribute is."""
        base, _, name = dotted.rpartition(".")
        if base in ("self", "cls") or hardware.value_of(dotted) is not None or self._values.resolver.refs(base, scope):
            return True
        return base.rpartition(".")[2] in OPTION_NAMES and bool(self._values.options.defaults(name, scope.path))

    def looked_up(
        self, base: str, args: tuple[Value, ...], scope: Scope, world: World, frame: Frame | None
    ) -> Possible:
        """`kwargs.get("name", default)` of what `**kwargs` takes."""
        facts = self._values.resolver.nesting.function(scope)
        key = args[0]
        is_text = type(key) is tuple and key[:2] == ("const", "str") and key[2]
        entry = self.entry(base, key[2], scope, world, args[1:] or (("const", "NoneType", None),)) if is_text else None
        if entry is not None:
            return entry
        if not is_text or all(param.name != f"**{base}" for param in facts.params) or base in facts.binds:
            return TOP
        default: Value = args[1] if len(args) > 1 else ("const", "NoneType", None)
        edges = [frame.edge] if frame is not None else self._values.passing.callers(scope)
        unseen = frame is None and (not edges or self._values.passing.is_called_unseen(scope))
        found = self._values.of(default, scope, world, frame) if unseen else BOTTOM
        if len(edges) > MOST_CALLERS or (unseen and self._values.is_free(scope, world)):
            return TOP
        for edge in edges:
            passed = self._values.passing.passed(edge, key[2])
            if passed.left_out:
                found |= self._values.of(default, scope, world, frame)
            elif passed.value is None:
                return TOP
            else:
                outer = frame.outer if frame is not None else None
                found |= self._values.any_of([(value, edge.caller) for value in passed.value], world, outer)
        return found

    def set_by(self, args: tuple[Value, ...], scope: Scope, world: World) -> Possible:
        """What a key of a configuration gives by default: what anything sets under that key, and its default there
        where no file does. `pinned=config.get("pinned")` hands it on under its own name.
        """
        name = args[0][2]
        default: Value = args[1] if len(args) > 1 else ("const", "NoneType", None)
        is_told = self._values.options.configured(name) is not None
        given = self._values.any_of(
            [*(() if is_told else [(default, scope)]), *self._values.options.settings(name)], world
        )
        return switched(given) | self._values.configs.by_words(name) if is_told else switched(given)

    def holds(self, base: str, key: str, scope: Scope) -> Possible:
        """`"pinned" in config`: by default not, where neither the program nor a file of it sets anything so called."""
        values = self._values
        if not values.configs.is_asked(base, (("const", "str", key),), scope):
            return TOP
        is_set = (
            values.options.configured(key) is not None
            or values.options.settings(key)
            or values.options.defaults(key, scope.path)
            or values.configs.given((key,))
            or values.presence.is_set_anywhere(key)
        )
        return TOP if is_set else NO

    def item(self, item: Value, scope: Scope, world: World) -> Possible:
        """An entry of a dict that is written out is what it is given there; one of a batch is something. That of a dict
        of options is the option: `vars(args)["fast"]`.
        """
        _, base, key = item
        if type(base) is tuple and base[0] == "call" and type(key) is int:
            return self._values.returned(base[1], key, scope, world)
        if type(base) is str and type(key) is str and world in KEEPING:
            refs = self._values.resolver.refs(base, scope)
            if any(ref.kind == EXTERNAL_INSTANCE and ref.name == "builtins.vars" for ref in refs):
                return self._values.parsed(key, scope, world)
        found = self.entry(base, key, scope, world) if type(base) is str and type(key) is str else None
        if found is not None:
            return found
        if type(base) is not str or "." in base:
            return TOP if type(key) is str else SOMETHING
        facts = self._values.resolver.nesting.function(scope)
        if any(base in loop.targets for loop in facts.loops) or type(key) is not str:
            return SOMETHING
        return TOP

    def entry(
        self, base: str, key: str, scope: Scope, world: World, default: tuple[Value, ...] = ()
    ) -> Possible | None:
        """An entry of a dict that is written out; None where that does not tell it. What a function makes for itself is
        so in any run, and any other is what users of the program set.
        """
        found = self._dicts.entries(base, key, scope)
        if found is None or (found.is_lacking and not default):
            return None
        if world not in KEEPING and not found.is_local:
            return TOP
        values = [*found.values, *((value, scope) for value in default if found.is_lacking)]
        asked = ("entry", base, key, scope, default, world)
        given = self._values.fixpoint.ask(asked, lambda: self._values.any_of(values, world))
        return given if found.is_local else self._values.configs.unless_set(switched(given), key)
