"""Which rules may find something in a piece of code, told by its summary alone, so that the rest is never looked at.

What rules it out: the code lacks all identifiers that the rule names, is colder than the rule asks for, or is in no
loop where the rule only looks at loops.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from perflint.analysis.program import Program, Scope
from perflint.finding import Heat
from perflint.ir.summary import MODULE, Summary, record
from perflint.rule_api.rule import Listen, Rule
from perflint.syntax.tree import LOOPS
from perflint.syntax.walk import OUTLINED

#: Some of what the rules listen to, each of it one bit: what this page does with them is done some ten times for each
#: function.
_Some: TypeAlias = int


class Wanted(NamedTuple):
    """Who listens in a piece of code, the classes of nodes that they listen to, and the names of callees, where they
    look for nothing in statements but them and what is `written`.
    """

    rules: frozenset[Rule]
    nodes: frozenset[type[ast.AST]]
    callees: frozenset[str] | None
    written: frozenset[str]

    @classmethod
    def of(cls, heard: Sequence[tuple[Rule, Listen]]) -> Wanted:
        listens = [listen for _, listen in heard]
        rules = frozenset(rule for rule, _ in heard)
        nodes = frozenset(kind for listen in listens for kind in listen.nodes)
        written = frozenset(word for listen in listens for word in listen.written)
        inner = [listen for listen in listens if not (listen.written or OUTLINED.issuperset(listen.nodes))]
        if not all(listen.names and listen.nodes == (ast.Call,) for listen in inner):
            return cls(rules, nodes, None, written)
        return cls(rules, nodes, frozenset(name for listen in inner for name in listen.names), written)


@dataclass(slots=True)
class _Function:
    """A function that stands in no other, with those in it: the first line of the top-level statement that it stands
    in, how hot its coldest and its hottest line are, and whether it has loops.
    """

    statement: int
    coldest: Heat
    peak: Heat
    loops: bool = False


class _Place:
    """Who listens to something in code that is nowhere hotter than `peak`, with or without loops: whatever is named
    there (`anyway`), by the name of what is called, or by another word.
    """

    def __init__(self, bits: Mapping[tuple[Rule, Listen], _Some], peak: Heat, *, loops: bool) -> None:
        self.anyway = 0
        self.calls: dict[str, _Some] = {}
        self.others: dict[str, _Some] = {}
        for (rule, listen), bit in bits.items():
            if rule.heat_of(listen) <= peak and _looks(listen, peak, loops=loops):
                self.anyway |= 0 if listen.names else bit
                _note(self.calls if listen.nodes == (ast.Call,) else self.others, listen.names, bit)


def heard_in(program: Program, rules: Sequence[Rule]) -> list[tuple[Rule, Listen]]:
    """What rules listen to in a program, with the names by which its own functions do what they look for."""
    listens = [(rule, listen) for rule in rules for listen in rule.listens]
    if not any(listen.doing for _, listen in listens):
        return listens
    names = program.names_by_effect
    return [(rule, listen.within(names) if listen.doing else listen) for rule, listen in listens]


class Suspects:
    """The suspect statements and functions of one file after the other."""

    def __init__(self, program: Program, rules: Sequence[Rule]) -> None:
        self._program = program
        heard = heard_in(program, rules)
        self._bits = {one: 1 << number for number, one in enumerate(heard)}
        self._sets: dict[_Some, Wanted] = {}
        #: What may be heard in a statement whatever is named there, and by word what needs one of its words.
        self._everywhere = self._some(one for one in heard if not one[1].names)
        self._triggered = self._by_word((one, one[1].names) for one in heard)
        #: The same of the words that rules need besides.
        self._needing_nothing = self._some(one for one in heard if not one[0].needs)
        self._needing = self._by_word((one, one[0].needs) for one in heard)
        #: By heat, what is also listened to where it is no hotter.
        self._at_most = {
            heat: self._some((rule, listen) for rule, listen in heard if rule.heat_of(listen) <= heat) for heat in Heat
        }
        self._places: dict[tuple[bool, Heat], _Place] = {}
        #: All words that any of this asks for.
        self._vocabulary = frozenset(self._needing).union(*(one.names for _, one in heard))
        self._summary = Summary()
        #: Of the file at hand.
        self._functions: dict[str, _Function] = {}
        #: By first line of its top-level statements: what is named and whether there are loops outside of functions.
        self._words: dict[int, set[str]] = {}
        self._words_outside: dict[int, set[str]] = {}
        self._looping_lines: set[int] = set()
        #: By such a line, the rules that listen to something there, whatever is called.
        self._around: dict[tuple[int, _Place], _Some] = {}
        #: What is imported under another name.
        self._renamed: list[tuple[str, str]] | None = None
        #: What is named in those functions.
        self._words_inside: dict[str, frozenset[str]] = {}

    def _some(self, heard: Iterable[tuple[Rule, Listen]]) -> _Some:
        return sum({self._bits[one] for one in heard})

    def _by_word(self, wording: Iterable[tuple[tuple[Rule, Listen], Iterable[str]]]) -> dict[str, _Some]:
        found: dict[str, _Some] = {}
        for one, words in wording:
            _note(found, words, self._bits[one])
        return found

    def _wanted(self, some: _Some) -> Wanted:
        found = self._sets.get(some)
        if found is None:
            found = self._sets[some] = Wanted.of([one for one, bit in self._bits.items() if some & bit])
        return found

    def statements(self, path: str) -> dict[int, _Some]:
        """By first line of each top-level statement of a file, what rules may hear in it."""
        self._summary, self._renamed = self._program.summaries[path], None
        found: dict[int, _Some] = {}
        peaks = self._note_functions(path)
        for line, words in self._note_words().items():
            called_for = self._everywhere | _any(self._triggered, words)
            has_needed = self._needing_nothing | _any(self._needing, words)
            heard = called_for & has_needed & self._at_most[peaks.get(line, Heat.ONCE)]
            if heard:
                found[line] = heard
        return found

    def anywhere(self, suspects: dict[int, _Some]) -> bool:
        """Whether any rule may find something in a function of the file that `statements` was last asked for, or
        outside of them, given what that said. Else the file need not be parsed.
        """
        for qualname, function in self._functions.items():
            heard = suspects.get(function.statement)
            if heard and self._inside(heard, qualname):
                return True
        return any(self._outside(heard, line) for line, heard in suspects.items())

    def outside(self, heard: _Some, line: int) -> Wanted:
        """Of what rules may hear in the top-level statement at `line`, what they may outside of the functions in it."""
        return self._wanted(self._outside(heard, line))

    def _outside(self, heard: _Some, line: int) -> _Some:
        loops = line in self._looping_lines
        place = self._place(Heat.STEP if loops else Heat.ONCE, loops=loops)
        return self._kept(heard, line, place, self._words_outside.get(line, ()))

    def names_any(self, wanted: Wanted, line: int) -> bool:
        """Whether something that is listened to may stand inside of the statements at `line`, outside of functions."""
        if wanted.callees is None or wanted.written:
            return True
        return not wanted.callees.isdisjoint(self._words_outside.get(line, ()))

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

    def inside(self, heard: _Some, function: Scope) -> Wanted:
        """Of what rules may hear in a top-level statement, what they may in one function of it.

        The function is of the file that `statements` was last asked for.
        """
        return self._wanted(heard if function.function == MODULE else self._inside(heard, function.function))

    def _inside(self, heard: _Some, qualname: str) -> _Some:
        found = self._functions[qualname]
        place = self._place(found.peak, loops=found.loops)
        return self._kept(heard, found.statement, place, self._words_inside.get(qualname, ()))

    def _kept(self, heard: _Some, line: int, place: _Place, called: Iterable[str]) -> _Some:
        """Of what is `heard`, what may be there: for calls a name among `called`, for other nodes one of the words of
        the top-level statement at `line`.
        """
        around = self._around.get((line, place))
        if around is None:
            around = self._around[line, place] = place.anyway | _any(place.others, self._words.get(line, ()))
        return heard & (around | _any(place.calls, called))

    def _place(self, peak: Heat, *, loops: bool) -> _Place:
        found = self._places.get((loops, peak))
        if found is None:
            found = self._places[loops, peak] = _Place(self._bits, peak, loops=loops)
        return found

    def _note_functions(self, path: str) -> dict[int, Heat]:
        """The hottest any line of each top-level statement is. Notes how hot its functions are, and which loop."""
        peaks: dict[int, Heat] = {}
        summary, program = self._summary, self._program
        starts = [statement.line for statement in summary.statements]
        functions: dict[str, _Function] = {}
        self._functions, self._looping_lines = functions, set()
        for qualname, facts in summary.functions.items():
            scope = record(Scope, (path, qualname))
            if qualname == MODULE:
                for index, context in enumerate(facts.contexts):
                    _raise(peaks, summary.statement_at(context.line), program.heat_at(scope, index))
                self._looping_lines.update(summary.statement_at(loop.line) for loop in facts.loops)
                continue
            coldest, peak = program.range(scope)
            line = starts[max(bisect_right(starts, facts.line) - 1, 0)]
            _raise(peaks, line, peak)
            outermost = summary.outermost(qualname)
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
        for statement in summary.statements:
            words = vocabulary.intersection(statement.identifiers.split())
            self._words_outside.setdefault(statement.line, set()).update(words)
        found = self._words = {line: set(words) for line, words in self._words_outside.items()}
        for qualname, facts in summary.functions.items():
            if facts.identifiers:
                inside = self._words_inside[qualname] = vocabulary.intersection(facts.identifiers.split())
                found[self._functions[qualname].statement].update(inside)
        return found


def _looks(listen: Listen, peak: Heat, *, loops: bool) -> bool:
    """Whether nodes listened to may occur in a function with or without loops."""
    if loops:
        return True
    if listen.repeated:
        return peak >= Heat.STEP
    return not all(node in LOOPS for node in listen.nodes)


def _note(found: dict[str, _Some], words: Iterable[str], bit: _Some) -> None:
    for word in words:
        found[word] = found.get(word, 0) | bit


def _any(by_word: Mapping[str, _Some], words: Iterable[str]) -> _Some:
    """The rules of any of some words."""
    found = 0
    for word in words:
        if word in by_word:
            found |= by_word[word]
    return found


def _raise(peaks: dict[int, Heat], line: int, heat: Heat) -> None:
    if heat > peaks.get(line, Heat.ONCE):
        peaks[line] = heat
