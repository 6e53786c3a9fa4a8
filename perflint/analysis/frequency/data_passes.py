"""Loops that run a network on data of their own on each iteration: an item of a data set, a file, a frame of a camera.

What an iteration does tells, not what the loop goes over: `for path in paths: net(read(path))` is a pass over data.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cached_property

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.generators import Feeding
from perflint.analysis.evidence import is_literal
from perflint.analysis.frequency.counting import counts
from perflint.analysis.frequency.sources import behind, last_of_call, parts_of
from perflint.analysis.frequency.varied_inputs import VariedInputs, counts_pieces
from perflint.analysis.names.refs import CLASS, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.names.used_as import iterated
from perflint.analysis.naming.data import GIVES_FRAMES, READS_SAMPLE
from perflint.finding import Confidence
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts, LoopFacts, Value
from perflint.torch_model.names import canonical

#: How many names lead to a list that is written out.
_DEEPEST = 4
#: What reads the next frame of a camera or a video, with nothing given.
_READS_FRAME = frozenset("read read_frame get_frame next_frame grab retrieve wait_for_frames".split())
#: What takes data to the device.
_MOVING = frozenset({"to", "cuda", "to_device"})
#: Data sets of libraries.
_LIBRARIES = ("torchvision.datasets.", "torchaudio.datasets.", "torchtext.datasets.", "datasets.")


class DataPasses:
    """Answers for one program."""

    def __init__(self, resolver: Resolver, graph: CallGraph) -> None:
        self._resolver = resolver
        self._graph = graph
        self._feeding = Feeding(resolver)
        self._inputs = VariedInputs(resolver)

    def is_pass(
        self, scope: Scope, facts: FunctionFacts, index: int, calls: list[CallFacts], *, is_reached: bool
    ) -> bool:
        """Whether what a loop gives, or what it reads by that, is run through a model by one of its `calls`. Where hot
        code calls the function, only what is read or comes from a data set is more than a part of a step.
        """
        loop = facts.loops[index]
        if self._is_written_out(loop, scope):
            return False
        turning = _Turning(loop, facts, is_reached=is_reached)
        if any(self._takes_data(call, scope, facts, index, turning) for call in calls):
            return True
        return not is_reached and loop.kind == "while" and _reads_frame(facts, index)

    def varied(
        self,
        scope: Scope,
        facts: FunctionFacts,
        index: int,
        calls: list[CallFacts],
        known: Collection[tuple[Scope, int]],
    ) -> int | None:
        """The loop that runs a model on what it binds, wherever that comes from: a loop, or the next one around it that
        is not `known` and whose items it goes through in parts.
        """
        if self._is_varied(scope, facts, index, calls):
            return index
        around = facts.loops_around(facts.loops[index].context)
        if around and (scope, around[0]) not in known and self._is_varied(scope, facts, around[0], calls):
            return around[0]
        return None

    def counts_batches(self, scope: Scope, facts: FunctionFacts, index: int, calls: list[CallFacts]) -> bool:
        """Whether a loop counts pieces of data and only evaluates a model on one after the other, as in each epoch."""
        loop = facts.loops[index]
        if not counts(loop.iterable, scope, self._resolver) or not counts_pieces(loop, facts):
            return False
        off = [call for call in calls if _without_gradients(facts, call.context)]
        return len(off) == len(calls) and self._is_varied(scope, facts, index, off)

    def _is_varied(self, scope: Scope, facts: FunctionFacts, index: int, calls: list[CallFacts]) -> bool:
        loop = facts.loops[index]
        if self._is_written_out(loop, scope) or any(map(self._yields_few, self._feeding.sources(loop.iterable, scope))):
            return False
        return any(
            self._inputs.is_varied(call, _given(call, facts, index), scope, facts, loop)
            for call in calls
            if scope in self._started or _steps_by(loop.iterable) or _without_gradients(facts, call.context)
        )

    def _yields_few(self, generator: Scope) -> bool:
        """Whether a generator gives what is written out in it, or the sides of one thing."""
        facts = self._resolver.facts(generator)
        loops = [facts.innermost_loop(context) for _, context in facts.yields]
        values = [value[2] for value, _ in facts.yields if isinstance(value, tuple) and value[:2] == ("each", None)]
        return all(
            is_literal(loop.iterable) or self._inputs.is_example(loop.iterable, generator)
            for loop in (facts.loops[index] for index in loops if index is not None)
        ) and all(is_literal(value) or (isinstance(value, tuple) and value[0] == "const") for value in values)

    @cached_property
    def _started(self) -> frozenset[Scope]:
        """What a program of the project is sure to come to: other functions are run by nobody knows whom."""
        found = {Scope(path, MODULE) for path in self._resolver.summaries if path not in self._resolver.tests}
        waiting = list(found)
        while waiting:
            for edge in self._graph.outgoing.get(waiting.pop(), ()):
                if edge.confidence is Confidence.HIGH and edge.callee not in found:
                    found.add(edge.callee)
                    waiting.append(edge.callee)
        return frozenset(found)

    def _is_written_out(self, loop: LoopFacts, scope: Scope) -> bool:
        """Whether a loop goes over a list that stands in the program, by whatever name: some prompts, some scales."""
        name = iterated(loop.iterable)
        if not name:
            return last_of_call(loop.iterable) != "" and self._is_list(loop.iterable, scope, _DEEPEST)
        made = self._resolver.facts(scope).binds.get(name, ()) if name == loop.iterable else ()
        if any(is_literal(value) and not _is_cut_out(value[1]) for value in made):
            return True
        return self._is_list(name, scope, _DEEPEST)

    def _is_list(self, value: Value, scope: Scope, depth: int) -> bool:
        if depth == 0:
            return False
        if isinstance(value, tuple) and value[0] == "call":
            made = [Scope(ref.path, ref.name) for ref in self._resolver.refs(value[1], scope) if ref.kind == FUNCTION]
            returned = [(item, where) for where in made for item in self._resolver.facts(where).returns]
            return bool(returned) and all(self._is_list(item, where, depth - 1) for item, where in returned)
        if not isinstance(value, str):
            return is_literal(value) and bool(value[1])
        definitions = self._resolver.written.definitions(value, scope)
        if "." not in value and any(map(_is_empty, (item for item, _ in definitions))):
            return all(_is_empty(item) for item, _ in definitions) and not _is_filled(
                value, self._resolver.facts(scope)
            )
        return bool(definitions) and all(self._is_list(item, where, depth - 1) for item, where in definitions)

    def _takes_data(self, call: CallFacts, scope: Scope, facts: FunctionFacts, index: int, turning: _Turning) -> bool:
        if turning.targets and call.args and call.args[0] in turning.targets:
            if self._is_data(turning.source, scope):
                return True
        is_off = not turning.is_reached and _without_gradients(facts, call.context)
        if is_off and call.args and call.args[0] in turning.targets:
            return True
        for value in behind(_given(call, facts, index), facts, turning.targets):
            if isinstance(value, str):
                if value in turning.targets and self._is_data(turning.source, scope):
                    return True
            elif value[0] == "item":
                if turning.counts(value[1]) and (is_off or self._is_data(value[1], scope)):
                    return True
            elif value[0] == "call" and self._reads(value, scope, turning):
                return True
        return False

    def _reads(self, call: Value, scope: Scope, turning: _Turning) -> bool:
        """Whether a call takes data of the iteration to the device, or reads it."""
        name = last_of_call(call)
        if name in _MOVING:
            return turning.loop.kind == "for" and not turning.is_reached and turning.is_behind(call[1])
        if name not in READS_SAMPLE and not self._is_reader(call[1], scope):
            return False
        given = [*call[2], *(value for _, value in call[3])]
        if not given:
            return name in READS_SAMPLE and (turning.loop.kind == "while" or turning.is_behind(call[1]))
        return any(turning.is_behind(value) for value in given)

    def _is_reader(self, func: Value, scope: Scope) -> bool:
        refs = self._resolver.refs(func, scope)
        return any(Scope(ref.path, ref.name) in self._readers for ref in refs if ref.path)

    @cached_property
    def _readers(self) -> frozenset[Scope]:
        """Functions of the project that read a sample, themselves or by what they call."""
        found = {item.scope for item in self._resolver.nesting.calls_of(READS_SAMPLE) if item.call.args}
        found = {scope for scope in found if scope.function != MODULE}
        waiting = list(found)
        while waiting:
            for edge in self._graph.incoming.get(waiting.pop(), ()):
                if edge.confidence is Confidence.HIGH and not edge.callback and edge.caller not in found:
                    if edge.caller.function != MODULE:
                        found.add(edge.caller)
                        waiting.append(edge.caller)
        return frozenset(found)

    def _is_data(self, value: Value, scope: Scope) -> bool:
        """Whether a value is a data set, or gives the frames of a video, or what a generator reads for each turn."""
        if last_of_call(value) in GIVES_FRAMES or any(map(self._reads_each, self._feeding.sources(value, scope))):
            return True
        for ref in self._resolver.refs(value, scope):
            if ref.kind == INSTANCE:
                module = self._resolver.hierarchy.is_module(Ref(CLASS, ref.path, ref.name))
                if not module and self._resolver.method(ref, "__getitem__") is not None:
                    return True
            elif ref.kind == EXTERNAL_INSTANCE and canonical(ref.name).startswith(_LIBRARIES):
                return True
        return False

    def _reads_each(self, generator: Scope) -> bool:
        """Whether a generator of the project reads a sample for each thing that it yields."""
        facts = self._resolver.facts(generator)
        yielding = {facts.innermost_loop(context) for _, context in facts.yields} - {None}
        reading = [call.context for call in facts.calls if last_name(call.func) in READS_SAMPLE]
        reading += [
            edge.context
            for edge in self._graph.outgoing.get(generator, ())
            if edge.confidence is Confidence.HIGH and edge.callee in self._readers
        ]
        return any(not yielding.isdisjoint(facts.loops_around(context)) for context in reading)


class _Turning:
    """What is another on each iteration of a loop."""

    def __init__(self, loop: LoopFacts, facts: FunctionFacts, *, is_reached: bool) -> None:
        self.is_reached = is_reached
        self.loop = loop
        self.facts = facts
        self.targets = set(loop.targets)
        self.source: Value = iterated(loop.iterable) or loop.iterable
        self._counted = set(_lengths(loop.iterable)) or set(_lengths_in(loop))
        self._owners = {owner for owner, dot, _ in (name.rpartition(".") for name in self._counted) if dot}
        self._owners.discard("self")

    def counts(self, value: Value) -> bool:
        """Whether the loop counts the items of a value: `for i in range(len(value))`, or of what belongs to the same
        data: `data.poses[i]` where it counts `data.paths`.
        """
        return isinstance(value, str) and (value in self._counted or value.rpartition(".")[0] in self._owners)

    def is_behind(self, value: Value) -> bool:
        """Whether a value is made of what the loop binds, or is an item of what is there before the function runs."""
        seen: set[str] = set()
        waiting: list[Value] = [value]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                name = value.partition(".")[0]
                if name in self.targets:
                    return True
                if name not in seen:
                    seen.add(name)
                    waiting += self.facts.binds.get(name, ())
            elif isinstance(value, tuple):
                if value[0] == "item" and isinstance(value[1], str):
                    if self.counts(value[1]) or value[1].partition(".")[0] not in self.facts.binds:
                        return True
                waiting += [
                    part for part in parts_of(value) if value[0] != "call" or part != value[1] or "." in str(part)
                ]
        return False


def _given(call: CallFacts, facts: FunctionFacts, index: int) -> list[Value]:
    """What a call is given, and what others of the loop gave the same object before: `net.set_input(x); net.test()`."""
    found = [*call.args, *(value for _, value in call.keywords)]
    owner, _, _ = call.func.rpartition(".") if isinstance(call.func, str) else ("", "", "")
    if owner and not found:
        for other in facts.calls:
            if isinstance(other.func, str) and other.func.rpartition(".")[0] == owner and other.line < call.line:
                if index in facts.loops_around(other.context) and not last_name(other.func).startswith("load"):
                    found += [*other.args, *(value for _, value in other.keywords)]
    return found


def _is_cut_out(items: tuple[Value, ...]) -> bool:
    """Whether nothing is written out in a display, as it is filled later or takes from what is there: `[rows[i]]`."""
    return all(isinstance(item, tuple) and item[0] == "item" for item in items)


def _is_empty(value: Value) -> bool:
    return value in (("seq", ()), ("map", ()), ("call", "list", (), ()), ("call", "dict", (), ()))


def _is_filled(name: str, facts: FunctionFacts) -> bool:
    """Whether a loop, or a function that it is given to, may put into what a name holds."""
    if any(target == name for target, _ in facts.mixed) or any(container == name for container, _ in facts.stores):
        return True
    return any(name in call.args or any(value == name for _, value in call.keywords) for call in facts.calls)


def _reads_frame(facts: FunctionFacts, index: int) -> bool:
    """Whether an iteration reads the next frame of a camera, which needs not be told which: `cap.read()`."""
    return any(
        last_name(call.func) in _READS_FRAME and not call.args and index in facts.loops_around(call.context)
        for call in facts.calls
    )


def _steps_by(value: Value) -> bool:
    """`range(0, count, size)`, whatever counts or shows it: so is nothing gone through but in pieces."""
    while isinstance(value, tuple) and value[0] == "call" and value[2]:
        if value[1] == "range":
            return len(value[2]) == 3
        value = value[2][0]
    return False


def _lengths(value: Value) -> Iterator[str]:
    """The names whose lengths a value is made of: `tqdm(range(len(data)))`, `range(video.shape[2])`."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple) and value[0] == "item" and str(value[1]).endswith(".shape"):
            yield str(value[1]).removesuffix(".shape")
        elif isinstance(value, tuple) and value[0] == "call":
            if value[1] == "len":
                yield from (item for item in value[2] if isinstance(item, str))
            else:
                waiting += value[2]


def _lengths_in(loop: LoopFacts) -> Iterator[str]:
    """The same of the header of a `while`, which is no value: `while at + size <= len(data)`."""
    header = loop.text.removeprefix("while ").rstrip(":") if loop.kind == "while" else ""
    try:
        parts = list(ast.walk(ast.parse(header, mode="eval"))) if "len(" in header else []
    except SyntaxError:  # cut to one line
        parts = []
    for part in parts:
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "len":
            yield from (ast.unparse(item) for item in part.args)


def _without_gradients(facts: FunctionFacts, context: int) -> bool:
    while context >= 0:
        if facts.contexts[context].kind == "no_grad":
            return True
        context = facts.contexts[context].parent
    decorators = (item[1] if isinstance(item, tuple) and item[0] == "call" else item for item in facts.decorators)
    return any(str(item).endswith(("no_grad", "inference_mode")) for item in decorators)
