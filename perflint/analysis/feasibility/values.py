"""What the names, attributes and parameters of a program may be: its constants, followed to where they are written.

A value is told of a world: of any run, or of runs by default. What a user may set (options, parameters that others may
pass) may be anything in any run, and is its default by default. Between the two is what is offered: options of a
command line may be anything, and what only an edit would change is its default.
"""

from __future__ import annotations

from collections.abc import Iterable

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.feasibility.attribute_values import begun, receiver_of, values_of
from perflint.analysis.feasibility.configs import Configs
from perflint.analysis.feasibility.constant_functions import ConstantFunctions
from perflint.analysis.feasibility.elements import Elements
from perflint.analysis.feasibility.enumerations import member_of
from perflint.analysis.feasibility.evaluate import HOLDS, builtin, evaluate, parts_of
from perflint.analysis.feasibility.fixpoint import Fixpoint
from perflint.analysis.feasibility.lattice import (
    BOTTOM,
    NO,
    NONE,
    OBJECT,
    SOMETHING,
    TOP,
    YES,
    Possible,
    chosen,
    joined,
    of,
    switched,
)
from perflint.analysis.feasibility.looked_up import MOST_CALLERS, LookedUp
from perflint.analysis.feasibility.options import (
    LOADS,
    field_place,
    given_for_field,
    is_command_line,
    is_configuration,
    typer_default,
)
from perflint.analysis.feasibility.parameters import Passed, Passing
from perflint.analysis.feasibility.presence import Presence
from perflint.analysis.feasibility.raising import Raising
from perflint.analysis.feasibility.receivers import Receivers
from perflint.analysis.feasibility.types import A_TENSOR, GIVING_TENSORS, TENSOR_TYPES, Types
from perflint.analysis.feasibility.uncalled import Uncalled
from perflint.analysis.feasibility.unseen_makers import UnseenMakers
from perflint.analysis.feasibility.worlds import KEEPING, Frame, World
from perflint.analysis.frequency.roots import RootFinder
from perflint.analysis.names.declared import is_property
from perflint.analysis.names.refs import (
    CLASS,
    EXTERNAL,
    EXTERNAL_INSTANCE,
    FUNCTION,
    INSTANCE,
    MODULE_REF,
    Ref,
    Refs,
    Scope,
)
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.computed import written
from perflint.ir.summary import MODULE, FunctionFacts, Param, Value
from perflint.torch_model import environment, hardware

#: Library calls that may give None. All others are taken to give something.
_MAY_BE_NONE = frozenset(
    "get pop getattr match search fullmatch next find setdefault getenv first one_or_none get_extra_state poll".split()
)
#: A name that options go by.
_ANY_OPTIONS = "args"
#: What `self.training` is.
_OF_A_MODE = {World.TRAINING: YES, World.EVALUATING: NO}


class Values:
    """The constants of one program."""

    def __init__(
        self,
        resolver: Resolver,
        graph: CallGraph,
        roots: RootFinder,
        torch: tuple[int, int] | None,
        configs: Configs,
    ) -> None:
        self.resolver = resolver
        self._torch = torch
        self.configs = configs
        self.options = configs.options
        self.passing = Passing(resolver, graph, roots)
        self._makers = UnseenMakers(resolver, graph, self.options, self.passing)
        self.receivers = Receivers(resolver)
        self.presence = Presence(resolver, self.options)
        self.raising = Raising(resolver, graph, self.presence)
        self._types = Types(resolver)
        self._elements = Elements(resolver, self.passing)
        self.fixpoint = Fixpoint()
        self._looked = LookedUp(self)
        self._uncalled = Uncalled(resolver, self.passing)
        self._functions = ConstantFunctions(resolver, self.passing.is_open)

    def of(self, value: Value, scope: Scope, world: World, frame: Frame | None = None) -> Possible:
        """What an expression written in `scope` may be, where its function runs through `frame`."""
        return evaluate(value, lambda leaf: self._leaf(leaf, scope, world, frame))

    def any_of(
        self, values: Iterable[tuple[Value, Scope]], world: World, frame: Frame | None = None, start: Possible = BOTTOM
    ) -> Possible:
        found = start
        for value, scope in values:
            if found == TOP:
                break
            found |= self.of(value, scope, world, frame)
        return found

    def _leaf(self, leaf: Value, scope: Scope, world: World, frame: Frame | None) -> Possible:
        if type(leaf) is str:
            return self.path(leaf, scope, world) if "." in leaf else self._name(leaf, scope, world, frame)
        form = leaf[0]
        if form == "call":
            return self._call(leaf, scope, world, frame)
        if form == "item":
            if self._is_tensor(leaf[1], scope, world, frame):
                return A_TENSOR
            found = self._looked.item(leaf, scope, world)
            return found if found != TOP else self._setting(leaf, scope, world)
        if form == HOLDS and world is World.BY_DEFAULT:
            return self._looked.holds(leaf[1], leaf[2], scope)
        return TOP

    def refs(self, value: Value, scope: Scope) -> Refs:
        return self.resolver.refs(value, scope)

    def class_around(self, scope: Scope) -> Ref | None:
        """The class that a method stands in."""
        cls = self.resolver.nesting.enclosing_class(scope)
        return cls if cls.name else None

    def parameter_of(self, name: str, scope: Scope) -> Scope | None:
        """The function around that a name is a parameter of, and nothing else."""
        nesting = self.resolver.nesting
        for where, facts in nesting.scopes(scope):
            bound = name in facts.binds or name in facts.computed or name in facts.unclear
            if name in nesting.positions(facts):
                return None if bound else where
            if bound:
                return None
        return None

    # Names.

    def _name(self, name: str, scope: Scope, world: World, frame: Frame | None) -> Possible:
        nesting = self.resolver.nesting
        for where, facts in nesting.scopes(scope):
            inside = frame if where == scope else None
            is_parameter = name in nesting.positions(facts)
            if is_parameter or name in facts.binds or name in facts.computed:
                key = ("name", where, name, world, inside)
                return self.fixpoint.ask(key, lambda: self._held(name, where, facts, world, inside))  # noqa: B023
            if name in nesting.holders[where.path].get(where.function, ()):
                return OBJECT
            if any(name in loop.targets for loop in facts.loops):
                return SOMETHING
        return self._global(name, scope.path, world)

    def _held(self, name: str, scope: Scope, facts: FunctionFacts, world: World, frame: Frame | None) -> Possible:
        """What a name of a function, or of a module, is given there."""
        values = written(facts.binds.get(name, ()), facts.computed.get(name, ()))
        turns, iterated = self._elements.of_turns(name, scope, facts)
        found = self.any_of([(begun(value), scope) for value in values if value not in iterated], world, frame)
        if (name in facts.unclear and name not in facts.computed) or turns is None:
            found |= SOMETHING
        found |= self.any_of(turns or (), world)
        if scope.function == MODULE:
            found |= self._imported(name, scope.path, world)
            return found | self._from_outside(name, world)
        index = self.resolver.nesting.positions(facts).get(name)
        return (
            found if index is None else found | self._parameter(facts.params[index], index, scope, facts, world, frame)
        )

    def _global(self, name: str, path: str, world: World) -> Possible:
        summary = self.resolver.summaries[path]
        if name in summary.functions or name in summary.classes:
            return OBJECT
        if name in summary.imports:
            return self._imported(name, path, world)
        return SOMETHING

    def _imported(self, name: str, path: str, world: World) -> Possible:
        """What a name is imported as; nothing where it is not."""
        target = self.resolver.summaries[path].imports.get(name)
        if target is None:
            return BOTTOM
        modules = self.resolver.modules
        module, _, last = modules.absolute(target, path).rpartition(".")
        other = modules.find(module, path) if module else None
        if other is None or other == path:
            return OBJECT
        facts = self.resolver.summaries[other].functions[MODULE]
        if last in facts.binds or last in facts.computed:
            return self._name(last, Scope(other, MODULE), world, None)
        return OBJECT

    def _from_outside(self, name: str, world: World) -> Possible:
        """What an attribute is given by whoever has the object."""
        given = self.options.set_from_outside.get(name)
        if given is None:
            return BOTTOM
        return self.fixpoint.ask(("outside", name, world), lambda: self.any_of(given, world))

    # Parameters.

    def _parameter(
        self, param: Param, index: int, scope: Scope, facts: FunctionFacts, world: World, frame: Frame | None
    ) -> Possible:
        if index == 0 and facts.in_class and "staticmethod" not in facts.decorators:
            return OBJECT
        if param.name.startswith("*"):
            return SOMETHING
        name = param.name.lstrip("=")
        if frame is not None:
            passed = self.passing.passed(frame.edge, name)
            return self._passed(passed, param, scope, facts, world, frame.edge.caller, frame.outer)
        callers = self.passing.callers(scope)
        if len(callers) > MOST_CALLERS:
            return TOP
        is_unseen = not callers or self.passing.is_called_unseen(scope) or self.configs.make(facts)
        if not callers and param.default is not None and self._makers.never_pass(scope, facts, name):
            return self._default(param, scope, facts, world)
        found = self._unseen(param, scope, facts, world) if is_unseen else BOTTOM
        if world is World.OFFERED:
            found |= self._in_files(name)
        for edge in callers:
            if found == TOP:
                break
            found |= self._passed(self.passing.passed(edge, name), param, scope, facts, world, edge.caller, None)
        return found

    def _passed(
        self,
        passed: Passed,
        param: Param,
        scope: Scope,
        facts: FunctionFacts,
        world: World,
        caller: Scope,
        frame: Frame | None,
    ) -> Possible:
        if passed.value is not None:
            return self.any_of([(value, caller) for value in passed.value], world, frame)
        if passed.spread and world in KEEPING:
            return self._spread(param, scope, facts, world, caller)
        return self._default(param, scope, facts, world) if passed.left_out else TOP

    def _spread(self, param: Param, scope: Scope, facts: FunctionFacts, world: World, caller: Scope) -> Possible:
        """What a mapping may hold for a parameter that comes from elsewhere, `Net(**config)`: by default nothing, or
        what the program, its files and its commands give under the same name.
        """
        name = param.name.lstrip("=")
        found = self._default(param, scope, facts, world)
        if found != TOP:
            found |= self.any_of(self.options.spread(name), world)
        if found != TOP and self.options.defaults(name, caller.path):
            found |= self.parsed(name, caller, world)
        return self.configs.unless_set(switched(found), name)

    def _default(self, param: Param, scope: Scope, facts: FunctionFacts, world: World) -> Possible:
        option = self.options.decorated(facts, param.name) or typer_default(param.default)
        if option is not None:
            return TOP if world is not World.BY_DEFAULT else switched(self.of(option, Scope(scope.path, MODULE), world))
        if param.default is None:
            return TOP
        return self.of(param.default, Scope(scope.path, facts.owner or MODULE), world)

    def _unseen(self, param: Param, scope: Scope, facts: FunctionFacts, world: World) -> Possible:
        """What a parameter is where nobody sees the call."""
        if self.is_free(scope, world):
            return TOP
        made, leaves_out = self.configs.constructed(facts, param.name.lstrip("="))
        found = self._default(param, scope, facts, world) if leaves_out or not made else BOTTOM
        found |= SOMETHING if found == of(None) and self.passing.may_be_given(scope, facts, param.name) else BOTTOM
        return switched(joined([found, *(TOP if value is None else self.of(value, scope, world) for value in made)]))

    def _in_files(self, name: str) -> Possible:
        """What files of the tree set under the name of a parameter, which may be what makes it be given."""
        given = self.configs.named(name)
        return joined([TOP if value is None else self.of(value, scope, World.OFFERED) for value, scope in given])

    def is_free(self, scope: Scope, world: World) -> bool:
        """Whether calls that nobody sees may pass anything to a function, in the runs that are told of."""
        return world not in KEEPING or (world is World.OFFERED and self.passing.is_of_package(scope))

    # Attributes.

    def path(self, dotted: str, scope: Scope, world: World) -> Possible:
        known = hardware.value_of(dotted)
        if known is not None:
            return of(known)
        base, _, name = dotted.rpartition(".")
        if dotted == "self.training" and world in _OF_A_MODE:
            return _OF_A_MODE[world]
        if base in ("self", "cls"):
            cls = self.resolver.nesting.enclosing_class(scope)
            return self._attribute(cls, name, world) if cls.name else TOP
        # What a file gives under the name of options are those of an earlier run.
        refs = [ref for ref in self.resolver.refs(base, scope) if ref.name not in LOADS]
        if not refs:
            return self._option(name, base, scope, world)
        found = joined([self._of_ref(ref, name, scope, world) for ref in refs])
        if found == TOP:
            found = self._setting(dotted, scope, world)
        if found == TOP and world in KEEPING:
            entry = self._looked.entry(base, name, scope, world)
            return found if entry is None else entry | self._from_outside(name, world)
        return found

    def _of_ref(self, ref: Ref, name: str, scope: Scope, world: World) -> Possible:
        if ref.kind in (INSTANCE, CLASS) and ref.path:
            member = member_of(ref, name, self.resolver)
            return member or self._attribute(Ref(CLASS, ref.path, ref.name), name, world)
        if ref.kind == MODULE_REF:
            facts = self.resolver.summaries[ref.path].functions[MODULE]
            held = name in facts.binds or name in facts.computed
            return self._name(name, Scope(ref.path, MODULE), world, None) if held else TOP
        if ref.kind == EXTERNAL:
            return SOMETHING if ref.name.startswith("torch") else TOP
        if ref.kind == EXTERNAL_INSTANCE and is_command_line(ref.name):
            return self.parsed(name, scope, world)
        return TOP

    def _option(self, name: str, base: str, scope: Scope, world: World) -> Possible:
        """An attribute of what nobody can tell, or of what a command line gives."""
        if self.options.holds(base, scope):
            return self.parsed(name, scope, world)
        found = self._setting(f"{base}.{name}", scope, world)
        is_told = found != TOP or world not in KEEPING or not is_configuration(base)
        return found if is_told else self.configs.by_words(name)

    def _setting(self, value: Value, scope: Scope, world: World) -> Possible:
        """What is read of a configuration: what the program, its files and its commands give it."""
        path = self.configs.path(value, scope) if world in KEEPING else ()
        given = self.configs.given(path) if path else ()
        if not given or any(value is None for value, _ in given):
            return TOP
        told = chosen if self.configs.is_filed(path) else switched
        return self.fixpoint.ask(("setting", path, world), lambda: told(self.any_of(given, world)))

    def parsed(self, name: str, scope: Scope, world: World) -> Possible:
        """An option of a command line."""
        defaults = self.options.defaults(name, scope.path) if world in KEEPING else ()
        if defaults and world is World.OFFERED:
            return TOP
        if not defaults:
            return self._setting(f"{_ANY_OPTIONS}.{name}", scope, world)
        shown = self.options.shown(name, scope.path)
        values = [*defaults, *((value, scope) for value in shown or ())]
        if any(value is None for value, _ in values):
            return TOP
        found = (chosen if shown else switched)(self.any_of(values, world)) | self._from_outside(name, world)
        return self.configs.unless_set(found, name) if shown is None else self.configs.unless_filed(found, name)

    def _attribute(self, cls: Ref, name: str, world: World) -> Possible:
        """An attribute of a class of the project."""
        return self.fixpoint.ask(("attribute", cls, name, world), lambda: self._of_class(cls, name, world))

    def _of_class(self, cls: Ref, name: str, world: World) -> Possible:
        hierarchy, found = self.resolver.hierarchy, BOTTOM
        declared, given, name = False, False, hierarchy.stored_as(cls, name)
        for owner in (*self.resolver.mro(cls), *hierarchy.below(cls)):
            facts = hierarchy.facts(owner)
            if facts is None:
                continue
            method = self.resolver.summaries[owner.path].functions.get(f"{owner.name}.{name}")
            if method is not None:
                return self._of_method(Ref(FUNCTION, owner.path, method.qualname), method, world)
            declared = declared or name in facts.annotations
            values = values_of(facts, owner, name)
            if world in KEEPING:
                values = [item for item in values if not self._uncalled.is_never_called(item[1])]
            found |= self.any_of(values, world)
            if name in facts.unclear:
                found |= SOMETHING
            registered = list(self._types.registered(owner, name))
            found = joined([found, *registered])
            given = given or bool(values) or name in facts.unclear or bool(registered)
        if declared and self.options.is_record(cls):
            known = switched(found) if given else None
            return TOP if world is not World.BY_DEFAULT else self._field(cls, name, world, known)
        if not given or (world not in KEEPING and self.presence.is_set_unseen(cls)):
            return TOP
        if world is World.OFFERED and self.presence.is_open_ended(cls):
            return TOP
        return found | self._from_outside(name, world)

    def _of_method(self, ref: Ref, facts: FunctionFacts, world: World) -> Possible:
        if not is_property(facts):
            return OBJECT
        constant = self._functions.of((ref,), by_default=world is World.BY_DEFAULT)
        return TOP if constant is None else constant

    def _field(self, cls: Ref, name: str, world: World, default: Possible | None) -> Possible:
        """A field of a record: its default, where it has one, and what the program makes of it elsewhere."""
        owner = self.resolver.hierarchy.facts(cls)
        place = field_place(owner, name) if owner is not None else None
        values = [
            (value, scope)
            for scope, index, call in self.options.makings(cls)
            for value in given_for_field(self.passing.facts(scope), index, call, name, place)
        ]
        if default is None and not values:
            return TOP
        given = self.any_of(values, world, start=default or BOTTOM) | self._from_outside(name, world)
        return self.configs.unless_set(given, name)

    # Calls and items.

    def _call(self, call: Value, scope: Scope, world: World, frame: Frame | None) -> Possible:
        _, func, args, _keywords = call
        name = last_name(func)
        if type(func) is str:
            known = hardware.answer(func, args, self._torch)
            if known is not None:
                return of(known)
            if func.endswith(environment.READS):
                return self._of_environment(args, scope, world)
            if func == "hasattr" and len(args) == 2:
                return self.presence.of_attribute(args[0], args[1], scope)
            if func == "isinstance" and len(args) == 2:
                return self._types.is_instance(self.of(args[0], scope, world, frame), args[1], scope)
            if func == "getattr" and len(args) > 1:
                return self._looked.got(args, scope, world, frame)
            if "." not in func:
                found = builtin(func, args, lambda leaf: self._leaf(leaf, scope, world, frame))
                if found is not None:
                    return found
            elif name in ("get", "pop") and args:
                base = func.rpartition(".")[0]
                # A function that hands its options on to itself looks them up in its own.
                if world in KEEPING and self.configs.is_asked(base, args, scope):
                    key = ("set", args, scope, world)
                    return self.fixpoint.ask(key, lambda: self._looked.set_by(args, scope, world))
                asked = ("looked up", base, args, scope, world, frame)
                return self.fixpoint.ask(asked, lambda: self._looked.looked_up(base, args, scope, world, frame))
        if name in GIVING_TENSORS and self._is_tensor(receiver_of(func), scope, world, frame):
            return A_TENSOR
        return TOP if name in _MAY_BE_NONE else self.returned(func, None, scope, world)

    def _of_environment(self, args: tuple[Value, ...], scope: Scope, world: World) -> Possible:
        """A variable that a user may set for a run."""
        if world is not World.BY_DEFAULT or not args or environment.may_be_set(args[0]):
            return TOP
        found = self.of(args[1], scope, world) if len(args) > 1 else of(None)
        is_off = found.literals is not None and all(item.value in environment.OFF for item in found.literals)
        return found if is_off else switched(found)

    def _is_tensor(self, value: Value, scope: Scope, world: World, frame: Frame | None) -> bool:
        if type(value) is str and value.endswith(".saved_tensors"):
            return True  # of what autograd keeps, each is one
        types = self.of(value, scope, world, frame).types if value is not None else None
        return types is not None and types <= TENSOR_TYPES

    def returned(self, func: Value, part: int | None, scope: Scope, world: World) -> Possible:
        """What calling a function of the project gives, or a part of it, is told by its returns, as far as they may be
        None.
        """
        refs = self.resolver.refs(func, scope)
        constant = self._functions.of(refs, by_default=world is World.BY_DEFAULT) if part is None else None
        if constant is not None:
            return constant
        for ref in refs:
            if ref.kind == FUNCTION:
                facts = self.resolver.summaries[ref.path].functions[ref.name]
                given = facts.returns if part is None else parts_of(facts.returns, part)
                if part is None and (not given or facts.is_generator or ("const", "NoneType", None) in given):
                    return TOP
                where = Scope(ref.path, ref.name)
                key = ("returned", where, part, world)
                values = [(value, where) for value in given]
                if NONE in self.fixpoint.ask(key, lambda: self.any_of(values, world)).sorts:  # noqa: B023
                    return TOP
            elif ref.kind == INSTANCE:
                is_module = part is not None and type(func) is str and not func.endswith(".forward")
                return self.returned(f"{func}.forward", part, scope, world) if is_module else SOMETHING
        return self._types.made(refs) if part is None else SOMETHING
