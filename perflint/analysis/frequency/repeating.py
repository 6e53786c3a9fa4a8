"""Loops that run a model on what it gave before, or on what is asked of a process: decoding, rollouts, serving.

They are told by what an iteration does, from the edges and bindings of the function they stand in, not by a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.evidence import RUNNERS, is_literal
from perflint.analysis.frequency.data_passes import DataPasses
from perflint.analysis.frequency.epochs import LoopHeat, Loops
from perflint.analysis.frequency.left_batches import shows_a_batch
from perflint.analysis.frequency.making_modules import MakingModules
from perflint.analysis.frequency.sources import calls_behind, last_of_call, names_in
from perflint.analysis.names.refs import CLASS, EXTERNAL_INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.naming.models import MODEL
from perflint.finding import Confidence, Heat
from perflint.ir.callees import last_name
from perflint.ir.rarity import FIRST, PERIODIC, RARE
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts, LoopFacts, Value
from perflint.torch_model.modules import makes_module
from perflint.torch_model.names import canonical

#: Iterations that are written down: fewer are a refinement, not a sequence.
_FEW = 8
#: What takes the next request: from a queue, a socket or a person.
_TAKING = frozenset("get get_nowait recv recv_multipart popleft pop poll input readline receive receive_json".split())
#: Libraries whose modules are parts of networks.
_LAYERS = ("torch.nn.", "torch_geometric.nn.")
_DECODES = LoopHeat(Heat.STEP, "decode", Confidence.MEDIUM)
_ROLLS = LoopHeat(Heat.STEP, "decode", Confidence.HIGH)
_SERVES = LoopHeat(Heat.STEP, "texts", Confidence.MEDIUM)
_PASSES = LoopHeat(Heat.STEP, "batches", Confidence.MEDIUM)
#: Of loops that run a model on another input each time, which nothing shows to be data.
_VARIES = LoopHeat(Heat.STEP, "batches", Confidence.MEDIUM)


class Repeating(NamedTuple):
    """The `loops` that were found, and the `periods`: tests in them by which all of a loop's work is done on every n-th
    iteration alone, as contexts of their functions.
    """

    loops: frozenset[tuple[Scope, int]] = frozenset()
    periods: frozenset[tuple[Scope, int]] = frozenset()


def mark_repeating(
    loops: Loops, resolver: Resolver, graph: CallGraph, training: set[Scope], roots: Iterable[Scope]
) -> Repeating:
    """Add the loops of the program that run a model again and again, and are not known to be anything else. Those in
    what the `roots` of hot code call are a part of that, but for passes over data; those that only the constructor of a
    module runs are done with before any step. Returned are those that were added.
    """
    periods: dict[tuple[Scope, int], set[int]] = {}
    running = _running(loops, resolver, graph, training)
    reached, often = _reached(loops, graph, roots, resolver)
    passes, making = DataPasses(resolver, graph), MakingModules(resolver, graph)
    found: Loops = {}
    for scope, facts in resolver.nesting.functions:
        if facts.loops and not (scope.function == MODULE and scope.path.endswith(".ipynb")):
            is_reached, is_often = scope in reached, scope in often
            found_calls = list(_model_calls(scope, facts, running, graph))
            for index in {index for index, _ in found_calls}:
                around = [loops[scope, outer].heat for outer in _outer(facts, index) if (scope, outer) in loops]
                known = loops.get((scope, index))
                calls = [call for at, call in found_calls if at == index]
                if known is not None or around:
                    # The turns of an episode hold the loop that trains: an episode is no epoch for that.
                    seldom = max([*around, known.heat if known is not None else Heat.ONCE]) < Heat.STEP
                    if seldom and not is_often and _rolls_out(facts, facts.loops[index], calls):
                        found[scope, index] = _ROLLS
                        continue
                    if known is not None or not seldom:
                        continue
                    if shows_a_batch(facts.loops[index], scope, facts, resolver):
                        if not passes.counts_batches(scope, facts, index, calls):
                            continue
                loop = facts.loops[index]
                at, heat = index, None if is_reached or around else _heat(facts, loop, calls)
                if is_reached and not (is_often or around) and _rolls_out(facts, loop, calls):
                    heat = _ROLLS  # an episode that is played now and then
                if heat is None and not _is_short(loop):
                    is_pass = passes.is_pass(scope, facts, index, calls, is_reached=is_reached)
                    heat = _PASSES if is_pass else None
                    if not is_pass and not is_reached:
                        varied = passes.varied(scope, facts, index, calls, loops)
                        at, heat = (index, None) if varied is None else (varied, _VARIES)
                if heat is not None and not making.runs_only_there(scope):
                    found[scope, at] = heat
                    periods[scope, at] = _periods(facts, at, calls)
    for key in _around_passes(found, running, resolver, graph):
        del found[key]
    for key in _around_steps(found, loops, resolver, graph):
        del found[key]
    loops.update(found)
    kept = [(scope, context) for (scope, index) in found for context in periods.get((scope, index), ())]
    return Repeating(frozenset(found), frozenset(kept))


def _periods(facts: FunctionFacts, index: int, calls: list[CallFacts]) -> set[int]:
    """The periodic tests between a loop and all of the calls that run a model in it: it takes every n-th frame."""
    found: list[set[int]] = []
    for call in calls:
        guards: set[int] = set()
        context = call.context
        while context >= 0 and not (
            facts.contexts[context].kind == "loop" and int(facts.contexts[context].detail) == index
        ):
            if facts.contexts[context].kind == "guard" and facts.contexts[context].detail == PERIODIC:
                guards.add(context)
            context = facts.contexts[context].parent
        found.append(guards)
    return set.intersection(*found) if found else set()


def _around_passes(loops: Loops, running: set[Scope], resolver: Resolver, graph: CallGraph) -> list[tuple[Scope, int]]:
    """Those of some loops of which an iteration runs a model by nothing but a whole pass over data: a video, whose
    frames another loop goes through.
    """
    whole = {scope for (scope, _), heat in loops.items() if heat is _PASSES and scope.function != MODULE}
    waiting = list(whole)
    while waiting:
        for edge in graph.incoming.get(waiting.pop(), ()):
            if edge.confidence is Confidence.HIGH and edge.caller not in whole and edge.caller.function != MODULE:
                whole.add(edge.caller)
                waiting.append(edge.caller)
    found = []
    for scope, index in loops:
        facts = resolver.summaries[scope.path].functions[scope.function]
        inside = [edge for edge in graph.outgoing.get(scope, ()) if facts.innermost_loop(edge.context) == index]
        runs = [edge.callee for edge in inside if edge.index >= 0 and edge.callee in running]
        if runs and all(callee in whole and callee != scope for callee in runs):
            found.append((scope, index))
    return found


def _around_steps(found: Loops, loops: Loops, resolver: Resolver, graph: CallGraph) -> list[tuple[Scope, int]]:
    """Those of the `found` loops over what nothing shows to be data whose iterations hold a loop of steps: a sweep over
    settings, of which each evaluates a model, or over texts, of which each is continued token by token.
    """
    marked = [key for key, heat in (*loops.items(), *found.items()) if heat.heat >= Heat.STEP]
    holding = {scope for scope, _ in marked}
    waiting = list(holding)
    while waiting:
        for edge in graph.incoming.get(waiting.pop(), ()):
            if edge.confidence is Confidence.HIGH and not edge.callback and edge.caller not in holding:
                if edge.caller.function != MODULE:
                    holding.add(edge.caller)
                    waiting.append(edge.caller)
    around = {(scope, outer) for scope, index in marked for outer in _outer(resolver.facts(scope), index)}
    varied = [key for key, heat in found.items() if heat is _VARIES]
    for scope in {scope for scope, _ in varied}:
        facts = resolver.facts(scope)
        for edge in graph.outgoing.get(scope, ()):
            if edge.confidence is Confidence.HIGH and edge.callee in holding and edge.callee != scope:
                around.update((scope, index) for index in facts.loops_around(edge.context))
    return [key for key in varied if key in around]


def _reached(
    loops: Loops, graph: CallGraph, roots: Iterable[Scope], resolver: Resolver
) -> tuple[set[Scope], set[Scope]]:
    """Functions that hot code surely calls: the roots, and what stands in loops of steps. What that only calls now and
    then, and other code calls as well, is there for the others too: `generate` of a script and of a trainer's plots.
    With them, those that it calls on every turn.
    """
    often = list(roots)
    seldom: list[Scope] = []
    #: Calls in loops of steps.
    stepping: set[tuple[Scope, int]] = set()
    for (scope, index), loop in loops.items():
        if loop.heat >= Heat.STEP:
            facts = resolver.summaries[scope.path].functions[scope.function]
            for edge in graph.outgoing.get(scope, ()):
                if index in facts.loops_around(edge.context):
                    stepping.add((scope, edge.index))
                    (seldom if _is_seldom(edge, resolver) else often).append(edge.callee)
    found = _called(often, graph, lambda edge: edge.confidence is Confidence.HIGH and not _is_seldom(edge, resolver))
    everything = _called([*found, *seldom], graph, lambda edge: edge.confidence is Confidence.HIGH)
    others = [
        scope
        for scope in everything - found
        if any(
            edge.index >= 0 and edge.caller not in everything and (edge.caller, edge.index) not in stepping
            for edge in graph.incoming.get(scope, ())
        )
    ]
    return everything - (_called(others, graph, lambda edge: edge.confidence is Confidence.HIGH) - found), found


def _called(first: Iterable[Scope], graph: CallGraph, follows: Callable[[Edge], bool]) -> set[Scope]:
    """Functions, and those that they call by the edges that are followed."""
    waiting = list(first)
    found = set(waiting)
    while waiting:
        for edge in graph.outgoing.get(waiting.pop(), ()):
            if edge.callee not in found and follows(edge):
                found.add(edge.callee)
                waiting.append(edge.callee)
    return found


def _is_seldom(edge: Edge, resolver: Resolver) -> bool:
    """Whether a test makes a call rarer than the innermost loop around it."""
    contexts, context = resolver.summaries[edge.caller.path].functions[edge.caller.function].contexts, edge.context
    while context >= 0 and contexts[context].kind != "loop":
        if contexts[context].kind == "guard" and contexts[context].detail in (PERIODIC, FIRST, RARE):
            return True
        context = contexts[context].parent
    return False


def _running(loops: Loops, resolver: Resolver, graph: CallGraph, training: set[Scope]) -> set[Scope]:
    """Functions that run a module of the project each time they are called, and train nothing; and methods of modules
    that run a layer.
    """
    holding = {scope for scope, _ in loops}
    found = {
        scope
        for scope, facts in resolver.nesting.functions
        if facts.in_class
        and not facts.name.startswith("__")
        and resolver.hierarchy.is_module(Ref(CLASS, scope.path, facts.in_class))
        and (facts.name == "forward" or _runs_layer(scope, facts, resolver))
    }
    for scope, facts in resolver.nesting.functions:
        if scope.function != MODULE and scope not in found and scope not in holding and scope not in training:
            if any(_is_given(call) and _is_network(call, scope, graph) for call in facts.calls):
                found.add(scope)
    waiting = list(found)
    while waiting:
        for edge in graph.incoming.get(waiting.pop(), ()):
            caller = edge.caller
            if caller in found or caller.function == MODULE:
                continue
            # Of what is called by a network's name, its own methods are as good as sure.
            if edge.confidence is Confidence.HIGH or (_is_of_module(edge, resolver) and not edge.callback):
                if caller not in holding and caller not in training:
                    found.add(caller)
                    waiting.append(caller)
    return found


def _runs_layer(scope: Scope, facts: FunctionFacts, resolver: Resolver) -> bool:
    return any(
        isinstance(call.func, str)
        and call.func.startswith("self.")
        and call.args
        and any(ref.kind == EXTERNAL_INSTANCE and makes_module(ref.name) for ref in resolver.refs(call.func, scope))
        for call in facts.calls
    )


def _is_of_module(edge: Edge, resolver: Resolver) -> bool:
    cls = resolver.nesting.enclosing_class(edge.callee)
    return edge.confidence is Confidence.MEDIUM and bool(cls.name) and resolver.hierarchy.is_module(cls)


def _model_calls(
    scope: Scope, facts: FunctionFacts, running: set[Scope], graph: CallGraph
) -> Iterator[tuple[int, CallFacts]]:
    """The calls in loops that run a model, each with the innermost loop around it."""
    edges = [edge for edge in graph.outgoing.get(scope, ()) if edge.index >= 0]
    runs = {edge.index for edge in edges if edge.callee in running}
    resolved = {edge.index for edge in edges}
    for number, call in enumerate(facts.calls):
        index = _loop_of(facts, call.context)
        if index is None:
            continue
        if number not in runs and (number in resolved or not _is_given(call) or not _is_network(call, scope, graph)):
            continue
        if not _is_of_loop(call, facts):
            yield index, call


def _loop_of(facts: FunctionFacts, context: int) -> int | None:
    """The innermost loop around a context of which an iteration is more than one of a few in each of another loop."""
    around = facts.loops_around(context)
    long = [index for index in around if facts.loops[index].kind != "comprehension"]
    return next((index for index in long if not _is_short(facts.loops[index])), long[0] if long else None)


def _is_given(call: CallFacts) -> bool:
    """Whether a call is given anything but settings: `model(x)`, `model(**inputs)`, `model(input_ids=ids)`."""
    return bool(call.args) or any(type(value) is not tuple or value[0] != "const" for _, value in call.keywords)


def _is_network(call: CallFacts, scope: Scope, graph: CallGraph) -> bool:
    """Whether what is called goes by a network's name, or is a whole one of a library, whatever it is called here."""
    if last_name(call.func) in RUNNERS:
        return True
    if not isinstance(call.func, str):
        return False
    func = call.func.removesuffix(".forward")
    refs = graph.resolver.refs(func, scope)
    if not refs and "." not in func.removeprefix("self.") and MODEL.search(last_name(func)):
        return True
    made = (ref.name for ref in refs if ref.kind == EXTERNAL_INSTANCE)
    return any(makes_module(name) and not canonical(name).startswith(_LAYERS) for name in made)


def _is_of_loop(call: CallFacts, facts: FunctionFacts) -> bool:
    """`for layer in self.layers: x = layer(x)`: what is called is another one on each iteration."""
    if isinstance(call.func, tuple) and call.func[0] == "item":
        return True  # `self.layers[i](x)`
    names = {name.partition(".")[0] for name in names_in(call.func)}
    for name in names & facts.binds.keys():
        if name not in facts.unclear and all(type(value) is str for value in facts.binds[name]):
            names = names | {str(value) for value in facts.binds[name]}  # `flow = layer`
    return any(names.intersection(facts.loops[index].targets) for index in facts.loops_around(call.context))


def _outer(facts: FunctionFacts, index: int) -> list[int]:
    return facts.loops_around(facts.loops[index].context)


def _heat(facts: FunctionFacts, loop: LoopFacts, calls: list[CallFacts]) -> LoopHeat | None:
    if _is_short(loop):
        return None
    for call in calls:
        values = [value for _, value in call.keywords] + list(call.args)
        # What a loop goes through is there before it begins.
        targets = {name for index in facts.loops_around(call.context) for name in facts.loops[index].targets}
        sources = list(calls_behind(values, facts, targets))
        if loop.kind == "while" and any(last_of_call(value) in _TAKING for value in sources):
            return _SERVES
        if any(_is_call_of(value, call.func) for value in sources):
            return _DECODES
    return None


def _rolls_out(facts: FunctionFacts, loop: LoopFacts, calls: list[CallFacts]) -> bool:
    """`action = policy(seen); seen, reward, done, _ = env.step(action)`: the model is run on what a step of an
    environment gave on the turn before, which took what the model gave; or the loop goes on until such a step says that
    it is over.
    """
    if _is_short(loop):
        return False
    for call in calls:
        targets = {name for index in facts.loops_around(call.context) for name in facts.loops[index].targets}
        steps = [*calls_behind([*call.args, *(value for _, value in call.keywords)], facts, targets)]
        if loop.kind == "while":
            names = [word.strip("()") for word in loop.text.split()]
            held = [value for name in names for value in facts.binds.get(name, ())]
            steps += [value[1] for value in held if isinstance(value, tuple) and value[0] == "item"]
        for step in steps:
            if last_of_call(step) == "step" and any(
                _is_call_of(value, call.func) for value in calls_behind(list(step[2]), facts, targets)
            ):
                return True
    return False


def _is_short(loop: LoopFacts) -> bool:
    """`for _ in range(3)`, `for scale in (1, 2)`"""
    value = loop.iterable
    if is_literal(value):
        return True
    if not (isinstance(value, tuple) and value[0] == "call" and value[1] == "range" and value[2]):
        return False
    bounds = value[2]
    return all(
        isinstance(item, tuple) and item[0] == "const" and isinstance(item[2], int) and abs(item[2]) <= _FEW
        for item in bounds
    )


def _is_call_of(value: Value, func: Value) -> bool:
    return isinstance(value, tuple) and value[0] == "call" and value[1] == func
