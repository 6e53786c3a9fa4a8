"""Which rules may find something in a piece of code, told by its summary alone, so that the rest is never looked at.

What rules it out: the code lacks all identifiers that the rule names, is colder than the rule asks for, or is in no
loop where the rule only looks at loops.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from perflint.facts.summary import MODULE, Summary
from perflint.finding import Heat
from perflint.program.program import Program, Scope
from perflint.rule import Listen, Rule
from perflint.source.tree import LOOPS

#: Whether there are loops, and the hottest any line is.
_Place: TypeAlias = tuple[bool, Heat]
#: Of how many sets of names it is remembered who listens: nearly every function has one of its own.
_REMEMBERED = 4096


@dataclass(slots=True)
class _Function:
    """A function that stands in no other, with those in it: the first line of the top-level statement that it stands
    in, how hot its coldest and its hottest line are, and whether it has loops.
    """

    statement: int
    coldest: Heat
    peak: Heat
    loops: bool = False


class Suspects:
    """The suspect statements and functions of one file after the other."""

    def __init__(self, program: Program, rules: Sequence[Rule]) -> None:
        self._program = program
        self._rules = rules
        #: The rules that may find something in a statement whatever is named there, and those that need one of its
        #: words.
        self._everywhere = frozenset(rule for rule in rules if _triggers(rule) is None)
        self._triggered = _triggered(rules)
        self._needing = [rule for rule in rules if rule.needs]
        #: By heat, the rules that only look at what is hotter.
        self._hotter = {heat: frozenset(rule for rule in rules if rule.at_least > heat) for heat in Heat}
        #: The same in a function, where what is listened to tells more.
        self._free: dict[_Place, frozenset[Rule]] = {}
        self._named: dict[tuple[str, _Place, bool], frozenset[Rule]] = {}
        self._by_word = _by_word(rules)
        #: The words by which nodes are listened to that are no calls.
        self._others = {word for word, found in self._by_word.items() if not all(_calls(one) for _, one in found)}
        #: All words that any of this asks for.
        self._vocabulary = frozenset(self._triggered).union(self._by_word, *(rule.needs for rule in rules))
        self._found: dict[tuple[frozenset[str], Heat], frozenset[Rule]] = {}
        self._summary = Summary()
        #: Of the file at hand.
        self._functions: dict[str, _Function] = {}
        #: By first line of its top-level statements: what is named and whether there are loops outside of functions.
        self._words: dict[int, set[str]] = {}
        self._words_outside: dict[int, set[str]] = {}
        self._looping_lines: set[int] = set()
        #: By such a line, the rules that listen to something there, whatever is called.
        self._around: dict[tuple[int, _Place], frozenset[Rule]] = {}
        #: The rules that listen to a call of one of some names in such a place.
        self._called: dict[tuple[frozenset[str], _Place], frozenset[Rule]] = {}
        #: What is imported under another name.
        self._renamed: list[tuple[str, str]] | None = None
        #: What is named in those functions.
        self._words_inside: dict[str, frozenset[str]] = {}

    def statements(self, path: str) -> dict[int, frozenset[Rule]]:
        """By first line of each top-level statement of a file, the rules that may find something in it."""
        self._summary, self._renamed = self._program.summaries[path], None
        found: dict[int, frozenset[Rule]] = {}
        peaks = self._note_functions(path)
        for line, words in self._note_words().items():
            rules = self._in_statement(frozenset(words), peaks.get(line, Heat.ONCE))
            if rules:
                found[line] = rules
        return found

    def _in_statement(self, words: frozenset[str], peak: Heat) -> frozenset[Rule]:
        found = self._found.get((words, peak))
        if found is None:
            # Few rules need more than one of their words: the others are told without a look at each.
            lacking = [rule for rule in self._needing if rule.needs.isdisjoint(words)]
            called_for = self._everywhere.union(*[self._triggered.get(word, ()) for word in words])
            found = self._found[words, peak] = called_for.difference(self._hotter[peak], lacking)
        return found

    def anywhere(self, suspects: dict[int, frozenset[Rule]]) -> bool:
        """Whether any rule may find something in a function of the file that `statements` was last asked for, or
        outside of them, given what that said. Else the file need not be parsed.
        """
        for qualname, function in self._functions.items():
            rules = suspects.get(function.statement)
            if rules and self._inside(rules, qualname):
                return True
        return any(self.outside(rules, line) for line, rules in suspects.items())

    def outside(self, rules: frozenset[Rule], line: int) -> frozenset[Rule]:
        """Of the rules that may find something in the top-level statement at `line`, those that may outside of the
        functions in it.
        """
        loops = line in self._looping_lines
        return self._kept(
            rules,
            line,
            Heat.STEP if loops else Heat.ONCE,
            loops=loops,
            called=frozenset(self._words_outside.get(line, ())),
        )

    def coldest(self, function: Scope) -> Heat:
        """At least how hot each line of a function is, of the file that `statements` was last asked for."""
        found = self._functions.get(function.function)
        return found.coldest if found is not None else Heat.ONCE

    def words(self, function: Scope) -> frozenset[str]:
        """What rules ask for that is named in a function of that file."""
        return self._words_inside.get(function.function, frozenset())

    def other_names(self, words: AbstractSet[str]) -> list[str]:
        """What else that file calls something of one of these names: `from copy import deepcopy as dc`."""
        if self._renamed is None:
            self._renamed = [
                (name, original)
                for name, meant in self._summary.imports.items()
                if (original := meant.rpartition(".")[2]) != name
            ]
        return [name for name, original in self._renamed if original in words]

    def inside(self, rules: frozenset[Rule], function: Scope) -> frozenset[Rule]:
        """Of the rules that may find something in a top-level statement, those that may in one function of it.

        The function is of the file that `statements` was last asked for.
        """
        return rules if function.function == MODULE else self._inside(rules, function.function)

    def _inside(self, rules: frozenset[Rule], qualname: str) -> frozenset[Rule]:
        found = self._functions[qualname]
        called = self._words_inside.get(qualname, frozenset())
        return self._kept(rules, found.statement, found.peak, loops=found.loops, called=called)

    def _kept(
        self, rules: frozenset[Rule], line: int, peak: Heat, *, loops: bool, called: frozenset[str]
    ) -> frozenset[Rule]:
        """Of `rules`, those that listen to something that may be there: for calls a name among `called`, for other
        nodes one of the words of the top-level statement at `line`.
        """
        place = (loops, peak)
        around = self._around.get((line, place))
        if around is None:
            words = self._others.intersection(self._words.get(line, ()))
            named = [self._listening(word, place, calls=False) for word in words]
            around = self._around[line, place] = self._listening_anyway(place).union(*named)
        if called:
            calling = self._called.get((called, place))
            if calling is None:
                named = [self._listening(word, place, calls=True) for word in called]
                calling = self._called[called, place] = frozenset().union(*named)
            around |= calling
        return rules & around

    def _listening_anyway(self, place: _Place) -> frozenset[Rule]:
        """The rules that listen to something in such a place, whatever is named there."""
        loops, peak = place
        found = self._free.get(place)
        if found is None:
            found = self._free[place] = frozenset(
                rule
                for rule in self._rules
                if rule.at_least <= peak
                and any(_looks(one, peak, loops=loops) and not one.names for one in rule.listens)
            )
        return found

    def _listening(self, word: str, place: _Place, *, calls: bool) -> frozenset[Rule]:
        """The rules that listen to something in such a place by this word: to calls, or to other nodes."""
        loops, peak = place
        found = self._named.get((word, place, calls))
        if found is None:
            found = self._named[word, place, calls] = frozenset(
                rule
                for rule, listen in self._by_word.get(word, ())
                if rule.at_least <= peak and _looks(listen, peak, loops=loops) and _calls(listen) is calls
            )
        return found

    def _note_functions(self, path: str) -> dict[int, Heat]:
        """The hottest any line of each top-level statement is. Notes how hot its functions are, and which loop."""
        peaks: dict[int, Heat] = {}
        summary, program = self._summary, self._program
        starts = [statement.line for statement in summary.statements]
        functions: dict[str, _Function] = {}
        self._functions, self._looping_lines = functions, set()
        for qualname, facts in summary.functions.items():
            scope = Scope(path, qualname)
            if qualname == MODULE:
                for index, context in enumerate(facts.contexts):
                    _raise(peaks, summary.statement_at(context.line), program.heat_at(scope, index))
                self._looping_lines.update(summary.statement_at(loop.line) for loop in facts.loops)
                continue
            coldest, peak = program.range(scope)
            line = starts[max(bisect_right(starts, facts.line) - 1, 0)]
            _raise(peaks, line, peak)
            outermost = _outermost(summary, qualname)
            found = functions.get(outermost)
            if found is None:
                found = functions[outermost] = _Function(line, coldest, peak)
            else:
                found.coldest, found.peak = min(coldest, found.coldest), max(peak, found.peak)
            if facts.loops and not found.loops:
                found.loops = any(loop.kind != "comprehension" for loop in facts.loops)
        return peaks

    def _note_words(self) -> dict[int, set[str]]:
        """By first line of each top-level statement, what rules ask for that is named in it. Notes the same of what
        stands outside of its functions, and of each of these.
        """
        summary, vocabulary = self._summary, self._vocabulary
        self._words_outside, self._words_inside, self._around = {}, {}, {}
        if len(self._called) > _REMEMBERED:
            self._called = {}
        for statement in summary.statements:
            words = vocabulary.intersection(statement.identifiers.split())
            self._words_outside.setdefault(statement.line, set()).update(words)
        found = self._words = {line: set(words) for line, words in self._words_outside.items()}
        for qualname, facts in summary.functions.items():
            if facts.identifiers:
                inside = self._words_inside[qualname] = vocabulary.intersection(facts.identifiers.split())
                found[self._functions[qualname].statement].update(inside)
        return found


def _calls(listen: Listen) -> bool:
    """Whether it is calls by certain names that are listened to."""
    return listen.nodes == (ast.Call,) and bool(listen.names)


def _looks(listen: Listen, peak: Heat, *, loops: bool) -> bool:
    """Whether nodes listened to may occur in a function with or without loops."""
    if loops:
        return True
    if listen.repeated:
        return peak >= Heat.STEP
    return not all(node in LOOPS for node in listen.nodes)


def _by_word(rules: Iterable[Rule]) -> dict[str, list[tuple[Rule, Listen]]]:
    found: dict[str, list[tuple[Rule, Listen]]] = {}
    for rule in rules:
        for listen in rule.listens:
            for name in listen.names:
                found.setdefault(name, []).append((rule, listen))
    return found


def _triggers(rule: Rule) -> frozenset[str] | None:
    """Identifiers one of which must occur for the rule to find anything; None when it may anywhere."""
    if not all(listen.names for listen in rule.listens):
        return None
    return frozenset().union(*(listen.names for listen in rule.listens))


def _triggered(rules: Iterable[Rule]) -> dict[str, set[Rule]]:
    found: dict[str, set[Rule]] = {}
    for rule in rules:
        for word in _triggers(rule) or ():
            found.setdefault(word, set()).add(rule)
    return found


def _outermost(summary: Summary, qualname: str) -> str:
    """The function around a function or lambda that stands in no other."""
    while qualname.startswith("<lambda"):
        qualname = summary.functions[qualname].owner
    return qualname.partition(".<locals>.")[0]


def _raise(peaks: dict[int, Heat], line: int, heat: Heat) -> None:
    if heat > peaks.get(line, Heat.ONCE):
        peaks[line] = heat
