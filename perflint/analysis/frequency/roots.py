"""Roots of heat: the loops and functions that make code hot. A loop is not hot for being a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.callbacks import REGISTERING, CallbackFinder, FunctionRoot
from perflint.analysis.call_graph.drivers import find_drivers, mark_drivers
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.generators import mark_generators
from perflint.analysis.call_graph.producers import mark_producers
from perflint.analysis.call_graph.shared_generators import mark_sharing
from perflint.analysis.call_graph.unrun_forwards import unrun_forwards
from perflint.analysis.call_graph.unused import Unused
from perflint.analysis.evidence import (
    BACKWARDS,
    BISECTION,
    DECODE_LIMIT,
    EPOCH_NAME,
    EVAL_STEPS,
    RUNNERS,
    SAMPLING,
    SETTING_NAME,
    TELLING,
    TOKENIZERS,
    TRAIN_STEPS,
    is_backward,
    is_denoising,
    is_literal,
    is_look_at_one,
    is_optimizer_step,
    is_range,
    is_whole_run,
)
from perflint.analysis.frequency.batch_sources import BatchSources
from perflint.analysis.frequency.callers_of import CallersOf
from perflint.analysis.frequency.epochs import LoopHeat, mark_epochs
from perflint.analysis.frequency.gathered import is_gathered
from perflint.analysis.frequency.library import Library
from perflint.analysis.frequency.overriding_steps import overriding_steps
from perflint.analysis.frequency.public import public_functions
from perflint.analysis.frequency.refined_inputs import refines_input
from perflint.analysis.frequency.repeating import Repeating, mark_repeating
from perflint.analysis.names.refs import Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.names.used_as import opens_stream
from perflint.finding import Confidence, Heat
from perflint.ir import guards
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts, LoopFacts, Value
from perflint.torch_model import frameworks
from perflint.torch_model.hooks import Hook


def _is_guess(edge: Edge) -> bool:
    return edge.confidence == Confidence.MEDIUM and not edge.callback


def _less_sure(found: LoopHeat | None) -> LoopHeat | None:
    return found and found._replace(confidence=min(found.confidence, Confidence.MEDIUM))


def _refining(facts: FunctionFacts, backward: set[int], steps: set[int]) -> set[int]:
    return backward if backward and not steps and refines_input(facts, backward) else set()


def _is_seldom(facts: FunctionFacts, context: int) -> bool:
    """Whether a test makes a context rarer than the innermost loop around it."""
    while context >= 0 and facts.contexts[context].kind != "loop":
        if facts.contexts[context].kind == "guard" and facts.contexts[context].detail != guards.ACCUMULATION:
            return True
        context = facts.contexts[context].parent
    return False


def _is_sure(loop: LoopFacts, facts: FunctionFacts) -> bool:
    """Whether a function goes through a loop whenever it is called."""
    return loop.kind != "comprehension" and not facts.is_generator and facts.is_sure(loop.line, loop.column)


def _in_small_loops(facts: FunctionFacts, context: int) -> bool:
    """Whether the loops around a context are comprehensions, or go over a handful that is written out."""
    loops = (facts.loops[index] for index in facts.loops_around(context))
    return all(loop.kind == "comprehension" or is_literal(loop.iterable) for loop in loops)


def _is_given_data(names: frozenset[str], call: CallFacts, _: Scope) -> bool:
    """Whether one of the names is called with something: `platform.processor()` reads no text."""
    return last_name(call.func) in names and bool(call.args or call.keywords)


class RootFinder:
    """Finds the hot loops and hot functions of a linked program."""

    def __init__(
        self, resolver: Resolver, graph: CallGraph, configured: Callable[[], frozenset[str]] = frozenset
    ) -> None:
        self.resolver = resolver
        self._configured = configured
        self.graph = graph
        self._taking: set[Scope] = set()
        self._reading: set[Scope] = set()
        #: Of each function, the calls that may say what its loops are for, or hand a function to who calls it often:
        #: few of many, told by their last names and keywords.
        self._telling: dict[Scope, list[CallFacts]] = {}
        self._callers = CallersOf(graph, self._telling)
        self._batches = BatchSources(resolver)
        self._runs: set[tuple[Scope, int]] = set()
        self._steps: set[tuple[Scope, int]] = set()
        #: Loops that take a batch on each turn, as often as they count.
        self._counted: set[tuple[Scope, int]] = set()
        #: Loops that walk back to what their function is given.
        self._refining: set[tuple[Scope, int]] = set()
        #: Functions that go through all batches of a loader whenever they run: what they do beside that is done once
        #: for each pass, however often they seem to be called.
        self.whole_passes: set[Scope] = set()
        self.loops: dict[tuple[Scope, int], LoopHeat] = {}
        #: Of the loops, those that run a model on its own output, on requests or on data.
        self.repeating = Repeating()
        #: Files that hand batches to workers elsewhere.
        self.drivers: frozenset[str] = frozenset()
        self.library = Library(resolver, graph, self.loops, configured)
        self._callbacks = CallbackFinder(resolver, graph)
        self.functions = self._callbacks.functions
        #: Loops over batches that the program has gathered in lists.
        self.gathered: set[tuple[Scope, int]] = set()
        #: Functions that no run of the program comes to.
        self.unused: frozenset[Scope] = frozenset()

    def hook_of(self, scope: Scope, facts: FunctionFacts) -> tuple[str, Hook] | None:
        """As the finder of callbacks has it: the method of a framework that a method is, however seldom that runs."""
        return self._callbacks.hook_of(scope, facts)

    def find(self) -> None:
        """Fill `loops` and `functions`."""
        self._telling.update(_telling_calls(self.resolver))
        training = self._training_functions()
        self._taking = self._batch_taking_functions()
        self._reading = self._text_reading_functions()
        for scope, facts in self.resolver.nesting.functions:
            if facts.in_class:
                self._callbacks.note_method(scope, facts)
            if facts.loops:
                self._classify_loops(scope, facts, training)
        self._callbacks.note_registered(self._telling)
        for scope, root in overriding_steps(training, self.loops, self.resolver, self.graph):
            self.functions.setdefault(scope, root)
        self._named_steps(training)
        mark_sharing(self.loops, self.resolver)
        mark_epochs(self.loops, self._runs, self._steps, self._counted, self._refining, self.graph, self.resolver)
        mark_generators(self.loops, self.resolver)
        mark_producers(self.loops, self.resolver)
        self.repeating = mark_repeating(self.loops, self.resolver, self.graph, training, self._hot_functions())
        self.drivers = find_drivers(self.loops, self.resolver, self.graph)
        mark_drivers(self.loops, self.drivers)
        if self.library.is_library:
            for scope, root in public_functions(self.resolver, self.graph):
                self.functions.setdefault(scope, root)
        else:
            self._leave_out_unused()
        self._telling.clear()
        self._callers.forget()

    def _leave_out_unused(self) -> None:
        """Nothing makes code hot that no run of the program comes to, nor a contract with those who train where who
        trains does not come to it.
        """
        training = [scope for (scope, _), loop in self.loops.items() if loop.role == "train"]
        training += [scope for scope, root in self.functions.items() if root.role == "train" and not root.by_name]
        if not training and not self.library.is_application:
            return
        driving = [scope for scope, _ in self.loops]
        driving += [scope for scope, root in self.functions.items() if not root.last_resort]
        is_whole = not training  # an application that trains nothing is all that there is to run
        unused = Unused(self.resolver, training, driving, self.functions, self._configured, is_whole=is_whole)
        self.unused = frozenset([scope for scope, _ in self.resolver.nesting.functions if unused.is_unused(scope)])
        forwards = [
            scope
            for scope, root in self.functions.items()
            if root.last_resort and root.role == "forward" and not self.library.is_installed(scope.path)
        ]
        self.unused |= unrun_forwards(forwards, self.resolver, self.graph)
        for place in [place for place in self.loops if place[0] in self.unused]:
            del self.loops[place]
        for scope, root in list(self.functions.items()):
            trains = bool(training) and root.last_resort and root.role != "infer"
            if scope in self.unused or (trains and unused.is_never_trained(scope)):
                del self.functions[scope]

    # Loops.

    def _training_functions(self) -> set[Scope]:
        """Functions that run a backward or an optimizer step outside any loop of their own."""
        return self._callers.functions(self._trains, self._is_run)

    def _trains(self, call: CallFacts, scope: Scope) -> bool:
        return self.is_training_call(call.func, call.args, scope)

    def _batch_taking_functions(self) -> set[Scope]:
        """Functions that take the next batch from an iterator that outlives them, outside any loop of their own."""

        def takes(call: CallFacts, scope: Scope) -> bool:
            if not self._batches.advances(call, scope) or is_look_at_one(call):
                return False
            return not opens_stream(scope, self.resolver.facts(scope), self.resolver)

        found = self._callers.functions(takes, lambda *_: False)
        through_all = {scope for scope in found if self._goes_through_all(scope, found, takes)}
        return self._callers.functions(takes, lambda _, scope: scope in through_all) if through_all else found

    def _goes_through_all(self, scope: Scope, taking: set[Scope], takes: Callable[[CallFacts, Scope], bool]) -> bool:
        """Whether a function that takes its first batch before its loop, as of a prefetcher, takes the others in it."""
        facts = self.resolver.facts(scope)
        return any(edge.callee in taking for _, edge in self._called_in_loops(scope, facts)) or any(
            facts.innermost_loop(call.context) is not None and takes(call, scope)
            for call in self._telling.get(scope, ())
        )

    def _text_reading_functions(self) -> set[Scope]:
        """Functions that turn texts into tokens and run a model on them, once for each time they are called."""
        tokenizing, running = (
            self._callers.functions(
                partial(_is_given_data, names), lambda facts, _: is_whole_run(facts), inside=_in_small_loops
            )
            for names in (TOKENIZERS, RUNNERS)
        )
        found = tokenizing & running
        # Of a method that classes override, one may read texts and others may not: whoever calls it is no reader then.
        while mixed := {scope for scope in found if not self._reads_surely(scope, found)}:
            found -= mixed
        return found

    def _reads_surely(self, scope: Scope, reading: set[Scope]) -> bool:
        """Whether a function reads texts itself, or in each of the functions that one of its calls may be of."""
        if any(_is_given_data(TOKENIZERS | RUNNERS, call, scope) for call in self._telling.get(scope, ())):
            return True
        called: dict[int, set[Scope]] = {}
        for edge in self.graph.outgoing.get(scope, ()):
            if edge.index >= 0:
                called.setdefault(edge.index, set()).add(edge.callee)
        return any(callees <= reading for callees in called.values())

    def _is_run(self, facts: FunctionFacts, scope: Scope) -> bool:
        """Whether a function is more than a step: it makes what it trains, or trains on all batches of a loader, and
        may take steps of something else before or after.
        """
        return is_whole_run(facts) or any(
            self.is_training_call(call.func, call.args, scope)
            and any(
                self._batches.confidence(facts.loops[index], scope) is not None
                for index in facts.loops_around(call.context)
            )
            for call in self._telling.get(scope, ())
        )

    def is_training_call(self, func: Value, args: tuple[Value, ...], scope: Scope) -> bool:
        return is_backward(func, args) or is_optimizer_step(func, args, self.resolver, scope)

    def _classify_loops(self, scope: Scope, facts: FunctionFacts, training: set[Scope]) -> None:
        backward: set[int] = set()
        steps: set[int] = set()
        advances: set[int] = set()
        samples: set[int] = set()
        denoises: set[int] = set()
        tokenizes: set[int] = set()
        runs: set[int] = set()
        accumulates = {
            outer
            for index, context in enumerate(facts.contexts)
            if context.detail == guards.ACCUMULATION
            for outer in facts.loops_around(index)[:1]
        }
        for call in self._telling.get(scope, ()):
            inner = _innermost_loop(facts, call.context)
            if inner is None:
                continue
            if is_backward(call.func, call.args):
                backward.add(inner)
            elif is_optimizer_step(call.func, call.args, self.resolver, scope):
                steps.add(inner)
            if self._batches.advances(call, scope) and not (is_look_at_one(call) and _is_seldom(facts, call.context)):
                advances.add(inner)
            name = last_name(call.func)
            if _is_given_data(TOKENIZERS, call, scope):
                tokenizes.add(inner)
            elif _is_given_data(RUNNERS, call, scope):
                runs.add(inner)
            if name in SAMPLING:
                samples.add(inner)
            elif is_denoising(call):
                denoises.add(inner)
        for inner, edge in self._called_in_loops(scope, facts):
            called = edge.callee
            if called in training and self._callers.mostly(edge, training, self._trains):
                steps.add(inner)
            if called in self._taking:
                advances.add(inner)
            # What a notebook shows of its own helpers goes over a handful of texts.
            if called in self._reading and not scope.path.endswith(".ipynb"):
                tokenizes.add(inner)
                runs.add(inner)
        guessed = self._guessed_steps(scope, facts, training) - steps
        steps |= guessed
        self._refining.update((scope, index) for index in _refining(facts, backward, steps))
        for index, loop in enumerate(facts.loops):
            found = self._loop_heat(scope, facts, index, loop, backward, steps, advances, samples, accumulates)
            found = _less_sure(found) if index in guessed else found
            if found is None and (index in denoises or (index in runs and _counts_down(loop))):
                found = LoopHeat(Heat.STEP, "decode", Confidence.MEDIUM)
            if found is None and index in tokenizes and index in runs and self._is_over_texts(loop, scope):
                found = LoopHeat(Heat.STEP, "texts", Confidence.MEDIUM)
            if found is not None:
                self.loops[scope, index] = found

    def _called_in_loops(self, scope: Scope, facts: FunctionFacts) -> Iterator[tuple[int, Edge]]:
        """The sure calls in the loops of a function, each with the innermost loop around it."""
        for edge in self.graph.outgoing.get(scope, ()):
            inner = _innermost_loop(facts, edge.context)
            if inner is not None and edge.confidence == Confidence.HIGH:
                yield inner, edge

    def _guessed_steps(self, scope: Scope, facts: FunctionFacts, training: set[Scope]) -> set[int]:
        """Loops that take a step by a call of something unknown: by `agent.update(batch)`, where an agent's `update`
        trains.
        """
        edges = [edge for edge in self.graph.outgoing.get(scope, ()) if edge.callee in training and _is_guess(edge)]
        return {inner for edge in edges if (inner := _innermost_loop(facts, edge.context)) is not None}

    def _loop_heat(
        self, scope: Scope, facts: FunctionFacts, index: int, loop: LoopFacts,
        backward: set[int], steps: set[int], advances: set[int], samples: set[int], accumulates: set[int],
    ) -> LoopHeat | None:  # fmt: skip
        confidence = self._batches.confidence(loop, scope)
        trains = index in backward or index in steps
        outer = facts.loops_around(loop.context)
        if confidence is not None:
            if index in steps:
                self._runs.add((scope, index))
            elif outer and is_gathered(loop, scope, self.resolver):
                self.gathered.add((scope, index))
            if confidence is Confidence.HIGH and _is_sure(loop, self.resolver.facts(scope)):
                self.whole_passes.add(scope)
            heat = Heat.MICROBATCH if index in accumulates else Heat.STEP
            # What the name only makes probable, a backward pass or an optimizer's step in each iteration makes certain.
            return LoopHeat(heat, "train", Confidence.HIGH) if trains else LoopHeat(heat, "batches", confidence)
        if index in advances:
            if "len(" not in loop.text:  # of a loader: one pass
                self._counted.add((scope, index))
            # `for micro in range(accumulation): batch = next(it)` inside a loop that takes the steps.
            part_of_step = any(item in steps or item in advances for item in outer)
            heat = Heat.MICROBATCH if index in accumulates or (part_of_step and index not in steps) else Heat.STEP
            confidence = Confidence.HIGH
            return LoopHeat(heat, "train" if trains else "batches", confidence)
        if trains and is_literal(loop.iterable):
            return LoopHeat(Heat.EPOCH, "epoch", Confidence.HIGH)
        if trains:
            self._steps.add((scope, index))
            root = self.functions.get(scope)
            inner_of_step = (root is not None and root.heat >= Heat.STEP) or any(
                item in steps or item in advances or self._batches.confidence(facts.loops[item], scope) is not None
                for item in outer
            )
            tries = BISECTION.match(loop.text) or (loop.targets and SETTING_NAME.match(loop.targets[0]))
            if tries and not inner_of_step:
                return LoopHeat(Heat.EPOCH, "epoch", Confidence.HIGH)
            heat = Heat.MICROBATCH if inner_of_step and index not in steps else Heat.STEP
            if index in accumulates:
                heat = Heat.MICROBATCH
            # `for _ in range(n): model(x).sum().backward()` without any optimizer may be a benchmark.
            sure = bool(steps) or inner_of_step or not is_range(loop.iterable)
            return LoopHeat(heat, "train", Confidence.HIGH if sure else Confidence.MEDIUM)
        if index in samples and loop.kind != "comprehension" and self._is_decoding(loop):
            return LoopHeat(Heat.STEP, "decode", Confidence.MEDIUM)
        if loop.targets and EPOCH_NAME.match(loop.targets[0]):
            return LoopHeat(Heat.EPOCH, "epoch", Confidence.HIGH)
        return None

    def _is_over_texts(self, loop: LoopFacts, scope: Scope) -> bool:
        """Whether a loop goes over data that it is given, not over a handful written down beside it."""
        if loop.kind == "while" or is_literal(loop.iterable):
            return False
        if is_range(loop.iterable) and tuple(loop.targets) in ((), ("_",)):
            return False  # `for _ in range(warm_up)`
        if isinstance(loop.iterable, str):
            return not any(is_literal(value) for value, _ in self.resolver.written.definitions(loop.iterable, scope))
        return not (loop.targets and EPOCH_NAME.match(loop.targets[0]))

    def _is_decoding(self, loop: LoopFacts) -> bool:
        if loop.kind == "while":
            return bool(DECODE_LIMIT.search(loop.text))
        value = loop.iterable
        return isinstance(value, tuple) and value[0] == "call" and bool(DECODE_LIMIT.search(loop.text))

    def _named_steps(self, training: set[Scope]) -> None:
        """`train_step`, `eval_batch`: one batch, by the name alone; not where it goes through batches itself, or
        makes what it trains. A program that goes through batches anywhere calls its steps there, or none: but for one
        that trains, itself or by what it calls, and is called, by what no loop that is known to be hot comes to.
        """
        elsewhere = any(loop.role in ("train", "batches") for loop in self.loops.values())
        names = TRAIN_STEPS if elsewhere else TRAIN_STEPS | EVAL_STEPS
        if names.isdisjoint(self.resolver.nesting.by_name):
            return
        for scope, facts in self.resolver.nesting.functions:
            if facts.name not in names:
                continue
            if is_whole_run(facts) or any((scope, index) in self.loops for index in range(len(facts.loops))):
                continue
            if elsewhere and (
                scope not in training or not self._is_called_anywhere(facts.name) or self._is_run_by_loops(scope)
            ):
                continue
            role = "train" if facts.name in TRAIN_STEPS else "infer"
            text = f"{facts.name} (a step, by its name)"
            root = FunctionRoot(Heat.STEP, role, text, Confidence.MEDIUM, by_name=True)
            self.functions.setdefault(scope, root)

    def _hot_functions(self) -> list[Scope]:
        """What a simulation or a server may call says nothing of the loops in it, which others may run as well."""
        return [
            scope
            for scope, root in self.functions.items()
            if root.heat >= Heat.STEP and not (root.last_resort and root.role == "infer")
        ]

    def _is_called_anywhere(self, name: str) -> bool:
        return any(last_name(call.func) == name for _, facts in self.resolver.nesting.functions for call in facts.calls)

    def _is_run_by_loops(self, scope: Scope) -> bool:
        """Whether anything that comes to call a function is known to be hot, under whatever guard."""
        seen, waiting = {scope}, [scope]
        while waiting:
            for edge in self.graph.incoming.get(waiting.pop(), ()):
                around = self.resolver.facts(edge.caller).loops_around(edge.context)
                if edge.caller in self.functions or any((edge.caller, index) in self.loops for index in around):
                    return True
                if edge.caller not in seen:
                    seen.add(edge.caller)
                    waiting.append(edge.caller)
        return False


def _counts_down(loop: LoopFacts) -> bool:
    """`for t in reversed(range(steps)): noise = model(x, t)`: diffusion models go from noise to data."""
    return len(loop.targets) == 1 and bool(BACKWARDS.search(loop.text))


def _innermost_loop(facts: FunctionFacts, context: int) -> int | None:
    """The innermost loop around a context that turns more than once."""
    inner = facts.innermost_loop(context)
    if inner is None or not _turns_once(facts.loops[inner], facts):
        return inner
    return next((index for index in facts.loops_around(context) if not _turns_once(facts.loops[index], facts)), None)


def _turns_once(loop: LoopFacts, facts: FunctionFacts) -> bool:
    """`for _ in range(1)`, or of a name for 1: what stands there runs as often as the code around it."""
    value = loop.iterable
    if not (isinstance(value, tuple) and value[:2] == ("call", "range") and len(value[2]) == 1):
        return False
    turns = value[2][0]
    held = facts.binds.get(turns, ()) if isinstance(turns, str) else (turns,)
    return tuple(held) == (("const", "int", 1),) and turns not in facts.unclear


def _telling_calls(resolver: Resolver) -> dict[Scope, list[CallFacts]]:
    nesting = resolver.nesting
    told = {(item.number, item.place): item for item in nesting.calls_of(TELLING | REGISTERING)}
    for key in frameworks.COLLATE_KEYWORDS:
        told.update(((item.number, item.place), item) for item, _ in nesting.keywords.get(key, ()))
    found: dict[Scope, list[CallFacts]] = {}
    for _, item in sorted(told.items()):
        found.setdefault(item.scope, []).append(item.call)
    return found
