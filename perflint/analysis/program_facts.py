"""What is asked of all files at once, with one answer each.

A rule that goes through the summaries of all files itself has its findings hang on all that these say, so that its file
is inspected again after any change of any other. Here it hangs on the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from perflint.analysis.call_graph.compiled import COMPILING_NAMES, compiles_anything
from perflint.analysis.call_graph.host_programs import HostPrograms
from perflint.analysis.call_graph.process_defaults import SETTERS, files_on_card
from perflint.analysis.call_graph.starting import files_starting_anew
from perflint.analysis.effects.lasting import Lasting
from perflint.analysis.frequency.left_to_users import LeftToUsers
from perflint.analysis.gradients.differentiating import differentiating
from perflint.analysis.gradients.parameter_counts import ParameterCounts
from perflint.analysis.gradients.processes import process_groups, reduces_on_gpus
from perflint.analysis.names.holders import Holder, Holders
from perflint.analysis.names.module_writes import ModuleWrites
from perflint.analysis.names.refs import CLASS, EXTERNAL, Ref, Scope
from perflint.finding import Heat
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, CallFacts, Summary, Value
from perflint.torch_model import loaders
from perflint.torch_model.modules import GENERATE_METHODS
from perflint.torch_model.names import canonical

#: What registers a hook that sees what a module gives.
#: Data sets whose samples are in memory, and that are not those of another one; the ends of their names.
_IN_MEMORY = loaders.IN_MEMORY_DATASETS - loaders.PASSING_ON
_IN_MEMORY_NAMES = frozenset(name.rpartition(".")[2] for name in _IN_MEMORY)
#: The parameters of a loader before the number of its workers.
_BEFORE_WORKERS = 5
_HOOKS = ("register_forward_hook", "register_module_forward_hook")
#: False, as summaries write it.
_OFF = ("const", "bool", False)

if TYPE_CHECKING:
    from perflint.analysis.program import Program


class Whole:
    """Questions about a whole program. Nothing is worked out before somebody asks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._starting: dict[tuple[str, ...], set[str]] = {}
        self._left_to_users = LeftToUsers(program)

    @cached_property
    def has_training(self) -> bool:
        """Whether the program trains anything: a loop with a backward pass, or a framework's training step."""
        return any(loop.role == "train" for loop in self._program.roots.loops.values()) or any(
            root.role == "train" and not root.by_name for root in self._program.roots.functions.values()
        )

    def is_installed(self, path: str) -> bool:
        """Whether a file is of a package that anybody can install, and whose settings others write."""
        return self._program.roots.library.is_installed(path)

    def is_for_users(self, scope: Scope, context: int, callee: Scope) -> bool:
        """Whether a call stands in a loop that only users of a library run, who may call the `callee` as well."""
        return self._left_to_users.holds(scope, context, callee)

    def names_class(self, called: Value, scope: Scope) -> bool:
        """Whether what is called is a class that settings name: `find(conf.get_string("model"))`."""
        return self._program.resolver.results.named_classes.is_named(called, scope)

    @cached_property
    def has_hot_loops(self) -> bool:
        """Whether anything in the program runs per step."""
        return self.has_training or self.has_step_loops

    @cached_property
    def has_step_loops(self) -> bool:
        """Whether the program itself loops over batches or steps; a library leaves that to its users."""
        return any(loop.heat >= Heat.STEP for loop in self._program.roots.loops.values())

    @cached_property
    def switches_gradients(self) -> bool:
        """Whether some code switches gradients off for whatever it calls: `torch.set_grad_enabled(False)`."""
        if not self._program.mentions(("set_grad_enabled",)):
            return False
        functions = self._program.resolver.nesting.functions
        calls = [call for _, facts in functions for call in facts.calls if call.args == (_OFF,)]
        return any(isinstance(call.func, str) and call.func.endswith("set_grad_enabled") for call in calls)

    def turns_off(self, names: tuple[str, ...]) -> bool:
        """Whether some code calls one of these switches with False, or with what an option says: not with what a
        function of the project, which is such a switch itself, is given. Or it sets one of that name on a library's
        class: `Distribution._validate_args = False`.
        """
        if not self._program.mentions(names):
            return False
        functions = list(self._program.resolver.nesting.functions)
        calls = [call for _, facts in functions for call in facts.calls if last_name(call.func) in names]
        given = [value for call in calls for value in (*call.args, *(item for _, item in call.keywords))]
        if any(not (type(item) is str and "." not in item) and item != ("const", "bool", True) for item in given):
            return True
        return any(
            last_name(name) in names and _OFF in values and self._is_class_of_library(name, scope)
            for scope, facts in functions
            for name, values in facts.binds.items()
        )

    def _is_class_of_library(self, dotted: str, scope: Scope) -> bool:
        """Whether what stands before the last name of a dotted one is a class that no file of the program has."""
        base = dotted.rpartition(".")[0]
        refs = self._program.resolver.refs(base, scope) if base else ()
        return any(ref.kind == EXTERNAL and last_name(ref.name)[:1].isupper() for ref in refs)

    @cached_property
    def compiles(self) -> bool:
        """Whether anything in the program is compiled."""
        return self._program.mentions(COMPILING_NAMES) or compiles_anything(self._program.resolver)

    @cached_property
    def may_generate(self) -> bool:
        """Whether anything of the program may generate: by a loop of its own, or by a name that libraries have for it
        and that it writes anywhere. Told of most programs without what their functions do.
        """
        program = self._program
        if any(loop.role == "decode" for loop in program.roots.loops.values()) or program.mentions(GENERATE_METHODS):
            return True
        texts = (f" {summary.texts} " for summary in program.summaries.values())
        return any(f" {name} " in text for text in texts for name in GENERATE_METHODS)

    @cached_property
    def process_groups(self) -> int:
        """How many calls, outside tests, set up a group of processes."""
        return process_groups(self._program)

    @cached_property
    def reduces_on_gpus(self) -> bool:
        """Whether a module is wrapped for the device of each process."""
        return reduces_on_gpus(self._program)

    def passes(self, names: tuple[str, ...]) -> bool:
        """Whether any call of the program passes one of these keywords, other than as False or None."""
        return any(
            key in names and not _is_off(value)
            for summary in self._program.summaries.values()
            for facts in summary.functions.values()
            for call in facts.calls
            for key, value in call.keywords
        )

    def is_set_elsewhere(self, attribute: str, made: Scope) -> bool:
        """Whether an attribute may be set by others than the class whose constructor is `made`: by who has an object of
        it, or by a class that derives from it.
        """
        if attribute in self._set_from_outside:
            return True
        below = self._program.resolver.hierarchy.below(Ref(CLASS, made.path, made.function.rpartition(".")[0]))
        return any(attribute in self._program.summaries[ref.path].classes[ref.name].attributes for ref in below)

    def is_set_anywhere(self, attribute: str) -> bool:
        """Whether anything has an attribute or a method of that name, or is given it as text: `register_buffer` is."""
        return self._program.constants.presence.is_set_anywhere(attribute)

    def is_attribute(self, name: str) -> bool:
        """Whether any object is given an attribute of that name, other than by a `def` in a class."""
        classes = (item for summary in self._program.summaries.values() for item in summary.classes.values())
        return name in self._set_from_outside or any(name in item.attributes for item in classes)

    @cached_property
    def _set_from_outside(self) -> set[str]:
        """The attributes that are set on something else than `self`."""
        bound = (name for names in self._program.resolver.nesting.dotted.values() for name in names)
        return {name.rpartition(".")[2] for name in bound if not name.startswith("self.") or name.count(".") > 1}

    def writes_to_module(self, path: str, name: str) -> tuple[tuple[Scope, str], ...]:
        """The functions of other files that set a name of a module, each with what stands before the `=` there."""
        return self._module_writes.to(path, name)

    @cached_property
    def _module_writes(self) -> ModuleWrites:
        return ModuleWrites(self._program.resolver)

    def writes_to_attribute(self, name: str) -> tuple[tuple[Scope, str], ...]:
        """The functions that set an attribute of what is not their own object, each with what stands before the `=`."""
        return tuple(self._attribute_writes.get(name, ()))

    @cached_property
    def _attribute_writes(self) -> dict[str, list[tuple[Scope, str]]]:
        found: dict[str, list[tuple[Scope, str]]] = {}
        for scope, facts in self._program.resolver.nesting.functions:
            own = facts.params[0].name if facts.in_class and facts.params else ""
            for dotted in dict.fromkeys((*facts.binds, *facts.unclear)):
                base, _, name = dotted.rpartition(".")
                if base and base != own:
                    found.setdefault(name, []).append((scope, dotted))
        return found

    def has_derived(self, name: str) -> bool:
        """Whether any class has a base of that last name."""
        return name in self._bases

    @cached_property
    def _parameters(self) -> ParameterCounts:
        return ParameterCounts(self._program.resolver)

    def most_parameters(self, path: str, name: str) -> int | None:
        """How many parameters an object of a class of a file holds at most; None where nobody knows."""
        return self._parameters.of_class(Ref(CLASS, path, name))

    def most_parameters_kept(self, attribute: str) -> int | None:
        """The same of what any class keeps under a name."""
        return self._parameters.of_attribute(attribute)

    def has_class(self, name: str) -> bool:
        """Whether any file defines a class of that name at its top."""
        return any(name in summary.classes for summary in self._program.summaries.values())

    def derived_from(self, path: str, name: str) -> tuple[tuple[str, str], ...]:
        """The classes below a class of a file, each by its file."""
        below = self._program.resolver.hierarchy.below(Ref(CLASS, path, name))
        return tuple((ref.path, ref.name) for ref in below)

    def classes_called(self, prefix: str) -> tuple[tuple[str, str], ...]:
        """The classes of the program whose names begin so, each by its file."""
        summaries = self._program.summaries.items()
        return tuple((path, name) for path, summary in summaries for name in summary.classes if name.startswith(prefix))

    @cached_property
    def data_sets(self) -> tuple[tuple[str, str], ...]:
        """The classes of data sets that the program has, each by its file, but for tests and what others build upon."""
        resolver = self._program.resolver
        found = [
            Ref(CLASS, path, name)
            for path, summary in self._program.summaries.items()
            if not summary.holds_tests
            for name in summary.classes
            if any(loaders.is_dataset(base) for base in resolver.base_names(Ref(CLASS, path, name)))
        ]
        built_upon = {base for cls in found for base in resolver.mro(cls)[1:]}
        return tuple((cls.path, cls.name) for cls in found if cls not in built_upon)

    @cached_property
    def makes_data_sets_in_memory(self) -> bool:
        """Whether anything but tests makes a library's data set whose samples are in memory: of tensors, say."""
        resolver = self._program.resolver
        return any(
            canonical(ref.name) in _IN_MEMORY
            for scope, facts in resolver.nesting.functions
            if scope.path not in resolver.tests
            for call in facts.calls
            if type(call.func) is str and call.func.rpartition(".")[2] in _IN_MEMORY_NAMES
            for ref in resolver.refs(call.func, scope)
        )

    @cached_property
    def _bases(self) -> set[str]:
        summaries = self._program.summaries.values()
        return {last_name(base) for summary in summaries for item in summary.classes.values() for base in item.bases}

    def differentiates_in(self, scope: Scope) -> bool:
        """Whether a function takes gradients of what it computes, itself or in what it calls."""
        return scope in self._differentiating

    @cached_property
    def differentiates(self) -> bool:
        """Whether any `forward` asks for gradients, as models of energies do for their forces."""
        found = differentiating(self._program, passes=False)
        return any(
            facts.in_class and scope in found
            for scope, facts in self._program.resolver.nesting.by_name.get("forward", ())
        )

    @cached_property
    def differentiates_inputs(self) -> bool:
        """Whether any class with a `forward` comes from there, or in another method, to code that asks for gradients
        at what it is given, as fields of distances do for their normals.
        """
        found = differentiating(self._program, inputs=True)
        functions = self._program.resolver.nesting.functions
        return any(
            facts.in_class
            and scope in found
            and f"{facts.in_class}.forward" in self._program.summaries[scope.path].functions
            and (scope.function.endswith(".forward") or any(last_name(call.func) == "grad" for call in facts.calls))
            for scope, facts in functions
        )

    @cached_property
    def _differentiating(self) -> frozenset[Scope]:
        return differentiating(self._program)

    @cached_property
    def files_of_modules(self) -> tuple[str, ...]:
        """The files with classes of modules, but for tests."""
        is_module = self._program.is_module
        return tuple(
            path
            for path, summary in self._program.summaries.items()
            if not summary.holds_tests and any(is_module(Ref(CLASS, path, name)) for name in summary.classes)
        )

    def is_used_outside(self, name: str, path: str) -> bool:
        """Whether another file than `path` uses a name, beyond importing it; a package's `__init__.py` gives it out."""
        return any(
            name in summary.used() or (other.endswith("__init__.py") and name in summary.words())
            for other, summary in self._program.summaries.items()
            if other != path and self._program.mentions((name,), (other,))
        )

    def setters_of(self, cls: Ref, attribute: str) -> tuple[Holder, ...]:
        """The classes that set an attribute of the objects of a class, nearest first, with its name there."""
        return self._holders.setters_of(cls, attribute)

    def readers_of(self, cls: Ref, attribute: str) -> tuple[Holder, ...]:
        """The classes whose methods may read an attribute that a class sets, once for each name they read it by."""
        return self._holders.readers_of(cls, attribute)

    def setters_below(self, cls: Ref, attribute: str) -> tuple[Ref, ...]:
        """The classes that derive from a class and set an attribute of their objects."""
        return self._holders.setters_below(cls, attribute)

    @cached_property
    def _holders(self) -> Holders:
        return Holders(self._program.summaries, self._program.resolver.hierarchy)

    def is_hooked(self, attribute: str) -> bool:
        """Whether a forward hook is registered on what goes by that name: `block.attention.register_forward_hook`."""
        return attribute in self._hooked

    @cached_property
    def _hooked(self) -> frozenset[str]:
        """The last names of what forward hooks are registered on."""
        functions = self._program.resolver.nesting.functions if self._program.mentions(_HOOKS) else ()
        calls = (str(call.func).split(".") for _, facts in functions for call in facts.calls)
        return frozenset(names[-2] for names in calls if names[-1] in _HOOKS and len(names) > 1)

    def starts_anew(self, path: str, setters: tuple[str, ...]) -> bool:
        """Whether workers of a file's process are spawned, for a call of one of `setters` says so."""
        known = self._starting.get(setters)
        if known is None:
            program = self._program
            found = (
                files_starting_anew(setters, program.summaries, program.modules) if program.mentions(setters) else set()
            )
            known = self._starting[setters] = found
        return path in known

    def runs_on_host(self, path: str) -> bool:
        """Whether a file that loops over steps itself is a program of which no file could move a tensor to a device."""
        return path in self._files_with_steps and self._host_programs.is_alone(path)

    @cached_property
    def _files_with_steps(self) -> set[str]:
        """Those of the programs: what runs when the file is run comes to such a loop, or calls what the file has."""
        found = {scope for (scope, *_), loop in self._program.roots.loops.items() if loop.heat >= Heat.STEP}
        return {scope.path for scope in found if self._is_run(scope.path) or scope.function == MODULE}

    def _is_run(self, path: str) -> bool:
        return any(edge.callee.path == path for edge in self._program.graph.outgoing.get(Scope(path, MODULE), ()))

    @cached_property
    def _host_programs(self) -> HostPrograms:
        program = self._program
        return HostPrograms(program.summaries, program.modules, program.mentions)

    def makes_on_card(self, path: str) -> str:
        """By which function the program that a file is part of has new tensors made on a graphics card, if any."""
        return self._files_on_card.get(path, "")

    @cached_property
    def _files_on_card(self) -> dict[str, str]:
        program = self._program
        if not program.mentions(SETTERS):
            return {}
        return files_on_card(program.summaries, program.modules, program.graph.incoming)

    def outlasting(self, started: tuple[tuple[str, str, str], ...]) -> str:
        """What there may be that outlives a run of classes and functions, given as their refs: a word of
        `program.lasting`, empty when surely nothing.
        """
        return self._lasting.fault(started)

    @cached_property
    def loads_without_workers(self) -> bool:
        """Whether the program makes loaders, all of them with what is written out, and none with workers."""
        calls = [item.call for item in self._program.resolver.nesting.calls_of(("DataLoader",))]
        return bool(calls) and not any(
            len(call.args) > _BEFORE_WORKERS or any(key in ("num_workers", "") for key, _ in call.keywords)
            for call in calls
        )

    @cached_property
    def pins_itself(self) -> bool:
        """Whether the program has pinned memory other than that of its loaders' batches, which is new each time."""
        return any(
            last_name(call.func) == "pin_memory"
            or (not last_name(call.func).endswith("Loader") and any(_pins(*item) for item in call.keywords))
            for _, facts in self._program.resolver.nesting.functions
            for call in facts.calls
            if last_name(call.func) == "pin_memory" or str(call.func).startswith("torch.")
        )

    @cached_property
    def data_asks(self) -> bool:
        """Whether what hands out data, or what it calls, asks for gradients or whether there are any."""
        return self._lasting.data_asks()

    @cached_property
    def _lasting(self) -> Lasting:
        return Lasting(self._program)

    def is_method_called_without_grad(self, name: str) -> bool:
        """Whether anything calls a method of that name on something, with gradients off."""
        return any(
            last_name(call.func) == name and call.func != name and self._program.grad_off(scope, call.context)
            for path, summary in self._program.summaries.items()
            if self._program.mentions((name,), (path,))
            for scope, call in _calls(path, summary)
        )

    def given(self, name: str) -> tuple[Value, ...]:
        """What parameters of that name have as a default, and what is passed for keywords of that name; a `_` around
        either makes no difference.
        """
        return tuple(self._given.get(name, ()))

    @cached_property
    def _given(self) -> dict[str, list[Value]]:
        """By name, what `given` says."""
        #: By name as it is written: most are in many places.
        found: defaultdict[str, list[Value]] = defaultdict(list)
        for _, facts in self._program.resolver.nesting.functions:
            for item in facts.params:
                found[item.name].append(item.default)
            for call in facts.calls:
                for word, value in call.keywords:
                    found[word].append(value)
        bare: dict[str, list[Value]] = {}
        for name, values in found.items():
            bare.setdefault(name.strip("_="), []).extend(values)
        return bare

    def option_defaults(self, name: str, path: str) -> tuple[object, ...]:
        """What options called `name`, on the command line or as fields of dataclasses, are unless told otherwise: those
        of one file where it has any, else those of all files; and what the commands of the tree give them. None is for
        what is not written as a literal.
        """
        found = self._option_defaults.get(name, {})
        shown = self._program.configs.options.shown(name, path) if found else None
        defaults = found.get(path) or [default for defaults in found.values() for default in defaults]
        return (*defaults, *map(_literal, shown or ()))

    @cached_property
    def _option_defaults(self) -> dict[str, dict[str, list[object]]]:
        """By option and file."""
        found: dict[str, dict[str, list[object]]] = {}
        for path, summary in self._program.summaries.items():
            for name, default in _options_of(summary):
                found.setdefault(name, {}).setdefault(path, []).append(default)
        return found


def _options_of(summary: Summary) -> Iterator[tuple[str, object]]:
    """The options of a file, by name, with what they are by default: first fields of dataclasses of settings."""
    for cls in summary.classes.values():
        for name in cls.annotations if cls.decorators else ():
            yield from ((name, value[2] if value[0] == "const" else None) for value, _ in cls.attributes.get(name, ()))
    for facts in summary.functions.values():
        for call in facts.calls:
            if not (isinstance(call.func, str) and call.func.endswith("add_argument")):
                continue
            given = dict(call.keywords).get("default")
            texts = [item[2] for item in call.args if isinstance(item, tuple) and item[0] == "const"]
            for name in {item.lstrip("-").replace("-", "_") for item in texts if isinstance(item, str)}:
                yield name, _literal(given)


def _literal(value: Value) -> object:
    """What is written as a literal, or as a tuple or list of such; None for anything else."""
    if not isinstance(value, tuple):
        return None
    if value[0] == "seq":
        return tuple(_literal(item) for item in value[1])
    return value[2] if value[0] == "const" else None


def _calls(path: str, summary: Summary) -> Iterator[tuple[Scope, CallFacts]]:
    for qualname, facts in summary.functions.items():
        for call in facts.calls:
            yield Scope(path, qualname), call


def _pins(name: str, value: Value) -> bool:
    return name == "pin_memory" and not _is_off(value)


def _is_off(value: Value) -> bool:
    return isinstance(value, tuple) and value[0] == "const" and (value[1] == "NoneType" or value[2:] == (False,))
