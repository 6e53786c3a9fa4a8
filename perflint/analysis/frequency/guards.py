"""Answers what tests ask (`ir.questions`): what is a guard, by what is computed, once the program is linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.feasibility.configs import Configs
from perflint.analysis.feasibility.constants import NOTHING_GIVEN, Constants, Given
from perflint.analysis.frequency.set_up_once import SetUpOnce
from perflint.analysis.frequency.shared_turns import counts_processes
from perflint.analysis.frequency.switches import Switches
from perflint.analysis.names.declared import is_abstract
from perflint.analysis.names.fresh_results import FreshResults
from perflint.analysis.names.refs import FUNCTION, INSTANCE, Refs, Scope, argument
from perflint.analysis.names.resolver import Resolver
from perflint.ir import guards
from perflint.ir.comparisons import OFTEN
from perflint.ir.questions import Question
from perflint.ir.rarity import coldest, hottest
from perflint.ir.summary import Context, FunctionFacts, Summary, Value, record

#: The answer for what is known to hold every few turns: nothing that is joined to it by `or` makes it rarer.
_OFTEN = "often"
_SEEN_THROUGH = (guards.PERIODIC, guards.ACCUMULATION, _OFTEN)


def with_room(summaries: Mapping[str, Summary]) -> dict[str, Summary]:
    """The summaries, with functions of their own where some of their tests ask: what is answered is another program's
    answer tomorrow.
    """
    found = {}
    for path, summary in sorted(summaries.items()):
        asking = {name: facts.copied() for name, facts in summary.functions.items() if facts.questions}
        found[path] = replace(summary, functions={**summary.functions, **asking}) if asking else summary
    return found


class Guarding:
    """Answers for one program whose calls are connected."""

    def __init__(self, resolver: Resolver, graph: CallGraph, configs: Configs) -> None:
        self._resolver = resolver
        self._graph = graph
        self._constants = Constants(resolver, graph, configs)
        self._fresh = FreshResults(resolver)
        self._switches = Switches(resolver, graph, self.answer)
        self._set_up = SetUpOnce(resolver)
        self._answering: set[Scope] = set()
        #: By file and class, the methods that keep tests in attributes.
        self._keeping: dict[tuple[str, str], list[tuple[Scope, FunctionFacts]]] = {}
        for scope, facts in resolver.nesting.functions:
            if facts.tests and facts.in_class:
                self._keeping.setdefault((scope.path, facts.in_class), []).append((scope, facts))

    def settle(self) -> frozenset[tuple[Scope, int]]:
        """Say of each context whose test asks whether it is a guard. Returned are those that only thin the iterations
        of their own loop, as contexts of their functions: what runs the loop comes to them.
        """
        settled, thinned = [], set()
        for scope, facts in self._resolver.nesting.functions:
            if facts.questions:
                answers = [self.answer(question, scope) for question in facts.questions]
                turns = {at for at, question in enumerate(facts.questions) if _is_of_turns(question)}
                for place, item in enumerate(facts.contexts) if turns else ():
                    if item.kind == "asked" and item.detail in turns and answers[int(item.detail)] == guards.PERIODIC:
                        thinned.add((scope, place))
                settled.append((facts, tuple([_settled(item, answers) for item in facts.contexts])))
        # Not before all are answered: an answer may ask what guards a call in another function.
        for facts, contexts in settled:
            facts.contexts = contexts
        return frozenset(thinned)

    def answer(self, question: Question, scope: Scope, given: Given = NOTHING_GIVEN) -> str | None:
        """The guard that a question comes to."""
        found = self._answer(question, scope, given)
        return None if found == _OFTEN else found

    def _answer(self, question: Question, scope: Scope, given: Given) -> str | None:
        if question is None or isinstance(question, str):
            return question
        form = question[0]
        if form == "period":
            return _OFTEN if self._is_short(question[1], scope, given) else guards.PERIODIC
        if form == "told":
            return self._told(question, scope)
        if form == "fresh":
            return None if self._fresh.is_made(question[1], scope) else question[2]
        if form in ("held", "counted"):
            return self._held(question, scope)
        if form == "given":
            return self._handed_test(question, scope)
        if form == "turns":
            return self._answer(question[1], scope, given)
        if form == "switched":
            is_switch = any(self._answer(part, scope, given) is None for part in question[1])
            return self._answer(question[2] if is_switch else question[3], scope, given)
        parts = [self._answer(part, scope, given) for part in question[1]]
        if form == "all":
            return coldest(parts) or (_OFTEN if parts and all(part == _OFTEN for part in parts) else None)
        return _any(parts)

    def _held(self, question: Question, scope: Scope) -> str | None:
        """By what the methods of a class give an attribute."""
        form, name, *truth, otherwise = question
        cls = self._resolver.nesting.enclosing_class(scope)
        if form == "counted" and otherwise is not None and self._set_up.is_set_up_once(name, cls):
            return None
        answers = []
        for owner in self._resolver.mro(cls) if cls.name else ():
            written = self._resolver.hierarchy.facts(owner)
            values = written.attributes.get(name, ()) if written is not None else ()
            if any(value[0] != "const" or value[2] is True for value, _ in values):
                if otherwise == guards.PERIODIC and self._switches.is_switch(name, cls):
                    return None  # a mode that the training is in
                return otherwise  # type: ignore[no-any-return]
            for method, facts in self._keeping.get((owner.path, owner.name), ()):
                answers += [
                    self._answer(true if truth and truth[0] else false, method, NOTHING_GIVEN)
                    for key, true, false in facts.tests
                    if key == f"self.{name}" and (form == "held" or false is not None)
                ]
        if not answers or not all(answers):
            return otherwise  # type: ignore[no-any-return]
        return _OFTEN if _OFTEN in answers else hottest(answers)

    def _handed_test(self, question: Question, scope: Scope) -> str | None:
        """By the tests that callers hand over; where one of them hands something else, nobody knows."""
        _, name, truth, otherwise = question
        name, presence = name.removesuffix("?"), "?" if name.endswith("?") else ""
        place = self._graph.handing.places(scope).get(name)
        answers = []
        for edge in self._graph.incoming.get(scope, ()):
            if edge.index < 0 or edge.callback:
                return otherwise  # type: ignore[no-any-return]
            caller = self._resolver.facts(edge.caller)
            call = caller.calls[edge.index]
            keys = [f"{call.line}:{call.column}:{at}{presence}" for at in (place, name)]
            told = [item for item in caller.tests if item[0] in keys] if caller.tests else ()
            if not told:
                return otherwise  # type: ignore[no-any-return]
            answers += [self._answer(item[1 if truth else 2], edge.caller, NOTHING_GIVEN) for item in told]
        return hottest(answers) if answers and all(answers) and _OFTEN not in answers else otherwise

    def _is_short(self, period: Value, scope: Scope, given: Given) -> bool:
        if counts_processes(period, scope, self._resolver):
            return True  # `if turn % world_size != rank: continue`
        literals = self._constants.of(period, scope, given) or self._constants.of_option(period, scope)
        turns = [item[2] for item in literals if item[1] == "int" and item[2] is not None]
        return bool(turns) and len(turns) == len(literals) and max(turns) <= OFTEN

    def _told(self, question: Question, scope: Scope) -> str | None:
        _, func, args, keywords, truth, otherwise = question
        functions = self._functions(self._resolver.refs(func, scope))
        known = [item for item in functions if not is_abstract(self._resolver.facts(item))]
        if not known:
            return otherwise  # type: ignore[no-any-return]
        call = ("call", func, args, keywords)
        answers = [self._of_function(item, call, scope, truth=truth) for item in known]
        return hottest(answers) if all(answers) and _OFTEN not in answers else _any(answers)

    def _functions(self, refs: Refs) -> list[Scope]:
        found = [Scope(ref.path, ref.name) for ref in refs if ref.kind == FUNCTION]
        for ref in refs:
            if ref.kind == INSTANCE:
                method = self._resolver.method(ref, "__call__")
                if method is not None:
                    found.append(Scope(method.path, method.name))
        return found

    def _of_function(self, function: Scope, call: Value, caller: Scope, *, truth: bool) -> str | None:
        facts = self._resolver.facts(function)
        if facts.tells is None or function in self._answering:
            return None
        self._answering.add(function)
        given = _handed(facts, call, caller)
        found = self._answer(facts.tells[0 if truth else 1], function, given)
        self._answering.discard(function)
        return found


def _handed(facts: FunctionFacts, call: Value, caller: Scope) -> Given:
    params = facts.params[1:] if facts.in_class and "staticmethod" not in facts.decorators else facts.params
    found = {}
    for place, param in enumerate(params):
        value = argument(call, param.name, place)
        if value is not None:
            found[param.name.lstrip("=")] = value, caller
    return found


def _any(parts: Sequence[str | None]) -> str | None:
    """What is true where any of several is. Of what is not known nobody says that it is true on every turn."""
    if _OFTEN in parts:
        return _OFTEN
    if all(parts) or any(part in _SEEN_THROUGH for part in parts):
        return hottest(parts)
    return guards.LAZY if guards.LAZY in parts else None


def _is_of_turns(question: Question) -> bool:
    return isinstance(question, tuple) and question[0] == "turns"


def _settled(item: Context, answers: Sequence[str | None]) -> Context:
    if item.kind != "asked":
        return item
    answer = answers[int(item.detail)]
    kind, detail = ("plain", "") if answer is None else ("guard", answer)
    return record(Context, (item.parent, kind, detail, *item[3:]))
