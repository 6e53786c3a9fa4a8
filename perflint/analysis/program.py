"""`Program`: the linked project, read-only. It answers what rules and kinds may ask across files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.callbacks import BY_CONTRACT, NO_TRAINING, STEP_OF_ENGINE, FunctionRoot
from perflint.analysis.call_graph.compiled import always_compiled, compiled_scopes
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.sample_hooks import own_collate
from perflint.analysis.device_queue.functions import FunctionQueues, Start
from perflint.analysis.device_queue.transfer import Transfer
from perflint.analysis.effects.compose import Composer
from perflint.analysis.effects.summary import Effects
from perflint.analysis.effects.wrappers import names_by_effect
from perflint.analysis.evidence import BACKWARD_CALLS, STEP_CALLS, looks_like_loader
from perflint.analysis.feasibility.configs import Configs
from perflint.analysis.feasibility.constants import Constants
from perflint.analysis.feasibility.feasible import Conditions, Feasibility, Paths
from perflint.analysis.feasibility.makings import Makings
from perflint.analysis.feasibility.paths import Ways
from perflint.analysis.feasibility.through_calls import ThroughCalls
from perflint.analysis.feasibility.values import Values
from perflint.analysis.feasibility.worlds import World
from perflint.analysis.frequency.grad_switches import grad_switch
from perflint.analysis.frequency.guards import Guarding, with_room
from perflint.analysis.frequency.heat import HeatMap
from perflint.analysis.frequency.per_parameter import runs_for_each_parameter
from perflint.analysis.frequency.repetition import Repetition
from perflint.analysis.frequency.roots import RootFinder
from perflint.analysis.frequency.routes import route_to
from perflint.analysis.linking import Together
from perflint.analysis.names.module_names import ModuleTable
from perflint.analysis.names.refs import BATCH, CLASS, EXTERNAL, INSTANCE, Ref, Refs, Scope
from perflint.analysis.names.resolver import Resolver, is_loader
from perflint.analysis.names.unimportable import Unimportable
from perflint.analysis.phases.phase import PhaseOf, Phases
from perflint.analysis.program_facts import Whole
from perflint.finding import Confidence, Heat, Hop
from perflint.ir.summary import MODULE, FunctionFacts, Summary, Value
from perflint.syntax.beside import NOTHING, Beside
from perflint.syntax.flow import Flow

if TYPE_CHECKING:
    from perflint.analysis.values.siblings import Siblings

Version = tuple[int, int]


class Program:
    """All summaries of a project, linked.

    Paths are those of the summaries, relative to the folder `base`: the working directory, where nothing is said.
    """

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        torch_version: Version | None = None,
        pinned_torch: Version | None = None,
        together: Together | None = None,
        *,
        base: str | None = None,
        torch_in: Mapping[str, tuple[Version | None, Version | None]] | None = None,
        configured: Callable[[], frozenset[str]] = frozenset,
        beside: Beside = NOTHING,
    ) -> None:
        self.summaries = with_room(summaries)
        #: Gives the definitions and uses of a file, whose text it reads; None where it cannot be had.
        self.flow: Callable[[str], Flow | None] = _no_flow
        #: The inferences of its files, once somebody has asked for one.
        self.siblings: Siblings | None = None
        self.torch_version = torch_version
        self.pinned_torch = pinned_torch
        #: By folder, as files are shown, where another torch is required: the lowest and the newest.
        self.torch_in = dict(torch_in or {})
        #: The identifiers of the files that were asked about last; whether any file has one of some.
        self._identifiers: dict[str, set[str]] = {}
        self._texts: dict[str, str] = {}
        self._mentioned: dict[frozenset[str], bool] = {}
        #: The words of the project's configurations.
        self.configured = configured
        self.base = Path.cwd().as_posix() if base is None else base
        self.modules = ModuleTable(self.summaries, self.base)
        self.beside = beside
        self.unimportable = Unimportable(self.summaries, self.modules, beside, configured)
        self.unimportable.set_aside()
        self.resolver = Resolver(self.summaries, self.modules, is_loader, configured)
        self.graph = CallGraph(self.resolver, configured)
        self.graph.build(together)
        #: What its configurations set.
        self.configs = Configs(self.resolver, configured)
        thinned = Guarding(self.resolver, self.graph, self.configs).settle()
        self.roots = RootFinder(self.resolver, self.graph, configured)
        self.roots.find()
        self.heatmap = HeatMap(self.resolver, self.graph, self.roots, configured, thinned)
        self.heatmap.flow()
        self.whole = Whole(self)

    def abandon(self) -> None:
        """After an error in the middle of an answer: whatever leans on it is worked out anew when it is asked again."""
        self.resolver.abandon()
        self.graph.abandon()

    def torch_of(self, path: str) -> tuple[Version | None, Version | None]:
        """The lowest and the newest torch (major, minor) that the part of the project around a file requires."""
        return self.torch_in.get(path.rpartition("/")[0], (self.torch_version, self.pinned_torch))

    # Names and values.

    def refs(self, value: Value, scope: Scope) -> Refs:
        """What a value of the summary notation may be; empty where it is not plain to see."""
        return self.resolver.refs(value, scope)

    def elements(self, value: Value, scope: Scope, index: object = None) -> Refs:
        """What iterating or indexing a value gives."""
        return self.resolver.elements(value, scope, index)

    def is_subclass(self, ref: Ref, *dotted: str) -> bool:
        """Whether a class or instance derives from a library class, named in full or by its last name."""
        return self.resolver.hierarchy.derives(ref, *dotted)

    def is_module(self, cls: Ref) -> bool:
        """Whether a class of the project is a module's."""
        return self.resolver.hierarchy.is_module(cls)

    def is_step_of_engine(self, scope: Scope) -> bool:
        """Whether an engine of ignite runs the function for each batch: `Engine(update)`."""
        root = self.roots.functions.get(scope)
        return root is not None and root.text.endswith(STEP_OF_ENGINE)

    def is_loader(self, ref: Ref) -> bool:
        return self.resolver.is_loader(ref)

    def looks_like_loader(self, dotted: str) -> bool:
        return looks_like_loader(dotted)

    def function(self, scope: Scope) -> FunctionFacts:
        return self.summaries[scope.path].functions[scope.function]

    def callers(self, scope: Scope) -> list[Edge]:
        """The calls of a function; reading a property is none."""
        return [edge for edge in self.graph.incoming.get(scope, ()) if edge.index >= 0]

    def argument(self, edge: Edge, name: str) -> Value:
        """What the call of `edge` passes for a parameter, in the notation of summaries, written in `edge.caller`."""
        return self.graph.argument(edge, name)

    # Heat.

    def heat(self, scope: Scope) -> Heat:
        """How often a function is called."""
        return self.heatmap.reason(scope).heat

    def peak(self, scope: Scope) -> Heat:
        """The hottest any line of a function is."""
        return self.range(scope)[1]

    def range(self, scope: Scope) -> tuple[Heat, Heat]:
        """How hot the coldest and the hottest line of a function are."""
        base, facts = self.heat(scope), self.function(scope)
        if not facts.contexts:
            return base, base
        heats = self.heatmap.contexts(scope, facts, base)
        return min(base, *heats), max(base, *heats)

    def hottest_call(self, scope: Scope) -> Edge | None:
        """The call that a function has its heat from; None for what frameworks call, and what nobody does."""
        return self.heatmap.reason(scope).edge

    def heat_at(self, scope: Scope, context: int) -> Heat:
        facts = self.function(scope)
        base = self.heat(scope)
        return self.heatmap.contexts(scope, facts, base)[context] if context >= 0 else base

    def route(self, scope: Scope, context: int) -> tuple[Heat, tuple[Hop, ...], Confidence]:
        heat, hops, sure = route_to(self.heatmap, scope, context)
        if hops and BY_CONTRACT in hops[0].text and self._is_built_aside(scope, context):
            hops = (replace(hops[0], text=hops[0].text.replace(BY_CONTRACT, NO_TRAINING)), *hops[1:])
        return heat, hops, sure

    def feasible(
        self, scope: Scope, context: int, conditions: Conditions, heat: Heat, place: tuple[int, int]
    ) -> Feasibility:
        """Whether any run takes a path on which code of a function, at a line and column and under these conditions, is
        as hot as that.
        """
        return self._paths.along(scope, context, conditions, heat, place)

    def is_reached_in_training(self, scope: Scope, context: int, conditions: Conditions, heat: Heat) -> bool:
        """Whether modules in training mode, and not only those in evaluation mode, take such a path."""
        return self._paths.in_training(scope, context, conditions, heat)

    def is_float16(self, conditions: Conditions, scope: Scope) -> bool:
        """Whether conditions hold for float16 values only."""
        return self._paths.in_float16(conditions, scope)

    def is_off_by_default(self, value: Value, scope: Scope) -> bool:
        """Whether a value is false in every run in which no user has changed an option, nor a configuration file."""
        return self.constants.of(value, scope, World.BY_DEFAULT).truth is False

    def decided(self, value: Value, scope: Scope) -> bool | None:
        """What a test written in `scope` comes to in every run, None where it may come to either."""
        return self.constants.of(value, scope, World.ANY).truth

    def literals(self, value: Value, scope: Scope) -> tuple[Value, ...] | None:
        """The literals, as `("const", type, value)`, that a value written in `scope` is by what is written down; None
        where any of them is not known. Defaults count where nobody passes something else.
        """
        return self._written.of(value, scope)

    @cached_property
    def _written(self) -> Constants:
        return Constants(self.resolver, self.graph, self.configs)

    @cached_property
    def constants(self) -> Values:
        """What names, attributes and parameters may be, as far as constants tell."""
        return Values(self.resolver, self.graph, self.roots, self.torch_version, self.configs)

    @cached_property
    def _paths(self) -> Paths:
        makings = Makings(self.resolver, self.constants.options, self.configured)
        ways = Ways(self.heatmap, self.constants.passing.callers, self._is_built_to_train)
        return Paths(self.constants, ways, makings)

    def role(self, scope: Scope, context: int = -1) -> str:
        """What the hot code a line belongs to is for: "train", "batches", "driver", "eval", "data", "decode", "hook",
        "".
        """
        origin = self.origin(scope, context)
        if isinstance(origin, FunctionRoot):
            return origin.role
        if origin is None:
            return ""
        role = self.roots.loops[origin].role
        return "driver" if role == "batches" and self.drives(scope.path) else role

    def phase(self, scope: Scope, context: int = -1) -> PhaseOf:
        """What part of the program a context of a function belongs to."""
        return self._phases.of(scope, context)

    def is_in_training(self, scope: Scope) -> bool:
        """Whether a function runs on the steps of a training as well, whatever else runs it."""
        return self._phases.is_in_training(scope)

    def is_in_forward(self, scope: Scope) -> bool:
        """Whether the forward of some module runs a function, whatever else runs it."""
        return self._phases.is_in_forward(scope)

    @cached_property
    def _phases(self) -> Phases:
        return Phases(self)

    def is_run_by_framework(self, scope: Scope, context: int = -1) -> bool:
        """Whether a line has its heat from a framework that trains, and so brings models and batches to the device."""
        origin = self.origin(scope, context)
        return (
            isinstance(origin, FunctionRoot) and origin.role == "train" and not (origin.by_name or origin.last_resort)
        )

    def step_loop(self, scope: Scope, context: int = -1) -> tuple[Scope, int] | None:
        """The hot loop that makes a line hot: the function it stands in, and its place among that one's loops."""
        origin = self.origin(scope, context)
        return None if isinstance(origin, FunctionRoot) else origin

    def origin(self, scope: Scope, context: int) -> FunctionRoot | tuple[Scope, int] | None:
        """Where the heat of a line comes from: a framework that calls a function, or a loop."""
        for _ in range(40):
            facts = self.function(scope)
            reason = self.heatmap.reason(scope)
            while context >= 0:
                item = facts.contexts[context]
                if item.kind == "loop":
                    key = (scope, int(item.detail))
                    loop = self.roots.loops.get(key)
                    if loop is not None and loop.heat >= Heat.STEP:
                        return key
                context = item.parent
            if reason.root is not None:
                return reason.root
            if reason.edge is None:
                return None
            scope, context = reason.edge.caller, reason.edge.context
        return None

    def is_only_promised(self, scope: Scope, context: int) -> bool:
        """Whether a line is hot by the contract of a module or a function alone: nothing in the program runs it, or
        builds the module where something is trained.
        """
        made = self._promised(scope, context)
        return made is not None and (not made.function or not self._is_built_to_train(made))

    def _is_built_aside(self, scope: Scope, context: int) -> bool:
        """Whether a line is hot by the contract of a module alone that the program builds, while it is seen to train
        something else.
        """
        made = self._promised(scope, context)
        if made is None or not made.function or not self._training or self._is_built_to_train(made):
            return False
        return any(edge.caller.path not in self.resolver.tests for edge in self.callers(made))

    def _promised(self, scope: Scope, context: int) -> Scope | None:
        """The constructor of the module by whose contract a line is hot, without a name for that of a function."""
        origin = self.origin(scope, context)
        if not isinstance(origin, FunctionRoot) or not origin.last_resort or origin.role != "forward":
            return None
        seen = {scope}
        while (edge := self.hottest_call(scope)) is not None and edge.caller not in seen:
            scope = edge.caller
            seen.add(scope)
        owner = self.function(scope).in_class
        return Scope(scope.path, f"{owner}.__init__" if owner else "")

    def _is_built_to_train(self, constructor: Scope) -> bool:
        """Whether a way up the calls of a constructor leads to a function that trains. Sure where it has no own one."""
        return (
            constructor.function not in self.summaries[constructor.path].functions
            or constructor in self._called_to_train
        )

    @cached_property
    def _called_to_train(self) -> set[Scope]:
        """What functions that train call, and what that calls in turn. A guess is no way."""
        found: set[Scope] = set()
        waiting = list(self._training)
        while waiting:
            for edge in self.graph.outgoing.get(waiting.pop(), ()):
                if edge.index >= 0 and edge.confidence is not Confidence.LOW and edge.callee not in found:
                    found.add(edge.callee)
                    waiting.append(edge.callee)
        return found

    def drives(self, path: str) -> bool:
        """Whether a file hands batches to workers in other processes, and so has its own on the host."""
        return path in self.roots.drivers

    def grad_off(self, scope: Scope, context: int = -1) -> bool:
        """Whether gradients are certainly off: here, in the whole function, or on every known way into it."""
        switch = grad_switch(self.function(scope), context)
        return switch == "no_grad" or (switch == "" and self.heatmap.without_grad(scope))

    def own_collate(self, cls: Ref) -> Scope | None:
        """The function with which a class of loaders makes its batches, where its constructor sets one."""
        found = own_collate(cls, self.resolver)
        return found[0] if len(found) == 1 else None

    def never_runs(self, scope: Scope) -> bool:
        """Whether no program of the project calls a function: only tests, or nothing."""
        return scope in self.roots.unused or scope.path in self.resolver.tests

    def trains(self, scope: Scope) -> bool:
        """Whether a function runs a backward pass or an optimizer step, itself or in what it calls."""
        return scope in self._training

    def trains_through(self, edge: Edge) -> bool:
        """Whether a function may do so where one call runs it, by the constants that this call passes."""
        return self._through_calls.trains((edge,))

    def reaches(self, edge: Edge, conditions: Conditions) -> bool:
        """Whether one call of a function lets it come to code under these conditions."""
        return self._through_calls.reaches((edge,), conditions)

    @cached_property
    def _through_calls(self) -> ThroughCalls:
        return ThroughCalls(self.constants, self.graph, self.roots, self._training)

    def effects(self, scope: Scope) -> Effects:
        """What running a function does beside giving a value, with all that it calls."""
        return self._effects.of(scope)

    def call_effects(self, scope: Scope, index: int) -> Effects:
        """What the call at a place among the calls of a function does; its parameters are those of what is called."""
        return self._effects.of_call(scope, index)

    def queue_at_start(self, scope: Scope) -> Start:
        """What a function's callers leave in the device's queue, on the steps that run it."""
        return self._queues.start(scope)

    def queue_change(self, scope: Scope, index: int) -> Transfer:
        """What the call at a place among the calls of a function does to the device's queue."""
        return self._queues.of_call(scope, index)

    @cached_property
    def _queues(self) -> FunctionQueues:
        return FunctionQueues(self)

    @cached_property
    def names_by_effect(self) -> Mapping[str, frozenset[str]]:
        """By effect, the names of the project's own functions that have it."""
        return names_by_effect(self)

    @cached_property
    def _effects(self) -> Composer:
        return Composer(self)

    def runs_several_times(self, scope: Scope) -> bool:
        """Whether a function runs more than once in a step that runs it: in each layer, in an inner loop."""
        return self._repetition.runs_several_times(scope)

    def runs_for_each_parameter(self, scope: Scope) -> bool:
        """Whether a step runs a function for each parameter of a model, by a loop around a call that leads to it."""
        return runs_for_each_parameter(scope, self)

    @cached_property
    def _repetition(self) -> Repetition:
        return Repetition(self)

    def may_be_own(self, attribute: str) -> bool:
        """Whether anything of the project goes by the name of an attribute."""
        return attribute in self.graph.names

    def named(self, name: str) -> tuple[Scope, ...]:
        """All functions of that name, methods among them, by path."""
        return tuple([scope for scope, _ in self.resolver.nesting.by_name.get(name, ())])

    @cached_property
    def compiled(self) -> Mapping[Scope, Hop]:
        """Functions that `torch.compile` traces, each with the place where what holds it is compiled."""
        return compiled_scopes(self.resolver, self.graph)

    def is_always_compiled(self, scope: Scope) -> bool:
        """Whether `torch.compile` traces a function whatever runs it."""
        return scope in self._always_compiled

    @cached_property
    def _always_compiled(self) -> frozenset[Scope]:
        return always_compiled(self.resolver, self.graph, self.compiled)

    @cached_property
    def _training(self) -> set[Scope]:
        found: set[Scope] = set()
        waiting: list[Scope] = []
        for _, scope, _, call in self.resolver.nesting.calls_of(STEP_CALLS | BACKWARD_CALLS):
            if scope not in found and self.roots.is_training_call(call.func, call.args, scope):
                found.add(scope)
                waiting.append(scope)
        while waiting:
            for edge in self.graph.incoming.get(waiting.pop(), ()):
                if edge.caller not in found and edge.confidence == Confidence.HIGH:
                    found.add(edge.caller)
                    waiting.append(edge.caller)
        return found

    def mentions(self, names: Iterable[str], paths: Iterable[str] | None = None) -> bool:
        """Whether any file of the program uses one of the identifiers."""
        wanted = frozenset(names)
        if paths is not None:
            return any(self._names_one(path, wanted) for path in paths)
        known = self._mentioned.get(wanted)
        if known is None:
            # Told by texts: few such questions are asked, and to take all texts apart would cost more than they do.
            framed, texts = [f" {name} " for name in wanted], map(self.identifiers, self.summaries)
            known = self._mentioned[wanted] = any(name in text for text in texts for name in framed)
        return known

    def _names_one(self, path: str, wanted: frozenset[str]) -> bool:
        """Whether a file uses one of the identifiers. For a few of them its text need not be taken apart."""
        if len(wanted) > _FEW_NAMES or path in self._identifiers:
            return not wanted.isdisjoint(self._words(path))
        text = self.identifiers(path)
        return any(f" {name} " in text for name in wanted)

    def identifiers(self, path: str) -> str:
        """Those of a file, each between blanks."""
        known = self._texts.get(path)
        if known is None:
            known = self.summaries[path].identifiers()
            if len(self.summaries) <= _FEW_FILES:
                self._texts[path] = known
        return known

    def _words(self, path: str) -> set[str]:
        """The identifiers of a file. Rules ask for those of the file at hand again and again."""
        known = self._identifiers.get(path)
        if known is None:
            if len(self._identifiers) >= _MOST_FILES_OF_WORDS:
                self._identifiers.clear()
            known = self._identifiers[path] = set(self.identifiers(path).split())
        return known


def _no_flow(_: str) -> Flow | None:
    return None


#: So many names are found sooner in a text than the text is taken apart.
_FEW_NAMES = 8
#: Files whose identifiers are kept at hand.
_MOST_FILES_OF_WORDS = 64
#: Of no more files all identifiers are kept as texts: a project that is larger has no room for it.
_FEW_FILES = 1000


__all__ = ["BATCH", "CLASS", "EXTERNAL", "INSTANCE", "MODULE", "Edge", "Program", "Ref", "Scope"]
