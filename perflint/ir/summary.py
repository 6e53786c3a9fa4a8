"""What one file says about itself, without trees and without rules.

A `Summary` is all that linking, heat and routes ever see of a file, so it must be comparable and JSON-able. Line
numbers in it are the file's own and are never copied into another file's summary.

Values are written in a small notation (`Value`), just rich enough to follow names, constructors and wrappers:

- `None`: not plain to see
- `"a.b.c"`: a name with attributes
- `("call", func, args, keywords)`: args is a tuple of values, keywords a tuple of (name, value)
- `("item", base, index)`: index is an int, a str or None
- `("attr", base, name)`: an attribute of something that is not a plain name
- `("seq", values)`, `("map", ((key, value), ...))`: tuple or list, dict with string keys; the key `""` is for others
- `("const", type_name, value)`: value is given for str, int, bool and 0.0
- `("either", values)`: conditional expressions and `or`
- `("each", element, iterable)`: comprehension or generator expression
- `("table", value, iterable)`: comprehension of a dict, without its keys
- `("lambda", qualname)`: a lambda, named by its place in `Summary.functions`
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

Value: TypeAlias = Any  # str | tuple | None, recursive; see the module docstring

MODULE = "<module>"
SPREAD = "*"
#: What ends the name, among those that are unclear, of something that is given another entry: `CONFIG[]`.
ENTRIES = "[]"
#: A default that is there and not plain to see: `1 / 255`.
UNCLEAR: Value = ("call", "...", (), ())

#: What is read of a function when somebody asks for it.
PUT_OFF = frozenset({"effects", "does", "uncertain"})

#: Makes a named tuple of a class from its fields, for half of what calling the class costs.
record = tuple.__new__


class Context(NamedTuple):
    """One wrapping of code inside a function. `parent` indexes `FunctionFacts.contexts`, -1 is the function's body.

    `kind` is "loop" (`detail` indexes `loops`), "guard" (`detail` is a guard's name from `ir.guards`), "switch" (it
    runs until a flag is switched back that begins in the context `detail`), "no_grad" or "grad" (gradients are switched
    off or on; `detail` is empty), or "asked" (`detail` indexes `questions`: a linked program knows whether it is a
    guard, and says "guard" instead, or "plain" where it is none). It covers the source from `line`, `column` to
    `end_line`, `end_column` (line from 1, column in UTF-8 bytes from 0, as ast counts); contexts nest, and an outer one
    has the smaller index.
    """

    parent: int
    kind: str
    detail: int | str
    line: int
    column: int
    end_line: int
    end_column: int


class LoopFacts(NamedTuple):
    """A loop. `kind` is "for", "while" or "comprehension"; `text` is its header as written, cut to one line."""

    line: int
    column: int
    kind: str
    targets: tuple[str, ...]
    iterable: Value
    text: str
    context: int


class CallFacts(NamedTuple):
    """A call as written. `context` indexes `FunctionFacts.contexts`, -1 is the function's body.

    `keywords` have `""` for each `**options`, and `SPREAD` where some of `args` are spread, as in `*args`.
    """

    func: Value
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    line: int
    column: int
    context: int


class ReadFacts(NamedTuple):
    """A dotted name that is read, not called: it may be a property. The first line of each context is kept."""

    path: str
    line: int
    context: int


class EffectFacts(NamedTuple):
    """What a function's own text does that outlasts it (`ir.own_effects`): a `kind`, the `name` of the parameter or
    value that it is done to, and a `detail` that belongs to the kind:

    - "keeps": a parameter is put into something that outlives the call; `detail` is how ("append", "sum", "item",
      "set", ...) and where, as "append self.items"; `<name>` is what stands outside of the function
    - "writes": a parameter is written into; `detail` is the method or operator
    - "reads": a value is read back to the host, if it is on a device; `detail` is the method
    - "enters": a `with` enters what goes by `name`, or what the call of `detail` at that place gives
    - "prints", "computes": the first of them; there may be more
    """

    kind: str
    name: str
    detail: str
    line: int
    column: int


class Branch(NamedTuple):
    """A part of a function that runs where `test` comes to `truth`, written as `ir.computed` has it. `parent` indexes
    `FunctionFacts.branches`; the place is told as that of a `Context` is.
    """

    parent: int
    test: Value
    truth: bool
    line: int
    column: int
    end_line: int
    end_column: int


class Param(NamedTuple):
    """A parameter. Its name begins with `*`, `**` or, where it can only be given by name, `=`. Without a default the
    last is None: one that is not plain to see is `UNCLEAR`.
    """

    name: str
    annotation: str
    default: Value


class Later(Protocol):
    """Reads facts of a function when somebody asks for them: hardly anybody asks of all functions. `enters` tells
    whether it has a `with`, `stores` whether it writes into something that may grow, other than by a call.
    """

    enters: bool
    stores: bool

    def read(self, name: str) -> Any: ...


@dataclass(slots=True)
class FunctionFacts:
    """A function, a lambda, or the module's own body (`MODULE`). `owner` is the qualname of the enclosing scope.

    `binds` are the values that names are given, as far as they are plain to see; `unclear` are those names and
    parameters that are given something else too, or are changed, and `config[]` where an entry of `config` is set.
    What it does beyond its run is told in `effects`, in the words of `ir.effects`, and with places in `does`;
    `uncertain` are the regions that need not run when it does, as line and column of start and end of each.
    `identifiers` are those used in a function that stands in no other, its decorators and defaults included,
    separated by blanks. `questions` are what tests ask that only the linked program can tell, `tells` what the
    function being true, and being false, tells whoever tests it: both as `ir.questions` has them. `stores` are the
    values put in containers under computed keys: `table[key] = value` as ("table", value), where the value is a
    plain name, a lambda or what a call gives. `branches` are the path conditions of its calls. `computed` are the
    values of names that `binds` has no form for, or not all of, as `ir.computed` writes them; of arguments as well:
    `#3:k` is what the call 3 passes for `k`, `#3:0` its first one. `tests` are what tests tell that are kept in
    attributes or handed over, by `self.due` or by `line:column:place` of the call: where they are true, and where
    they are false. `mixed` are names that loops compute anew by operators, or store items in, each with the names
    that the new value is made of, and what is called for it as `model()`. `picks` are the names that a function with
    branches keeps in attributes, `self.attribute = name`, with line and column.
    """

    qualname: str
    line: int
    end_line: int
    owner: str
    in_class: str
    params: tuple[Param, ...] = ()
    decorators: tuple[Value, ...] = ()
    is_generator: bool = False
    contexts: tuple[Context, ...] = ()
    loops: tuple[LoopFacts, ...] = ()
    calls: tuple[CallFacts, ...] = ()
    reads: tuple[ReadFacts, ...] = ()
    binds: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    unclear: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    returns: tuple[Value, ...] = ()
    returns_annotation: str = ""
    yields: tuple[tuple[Value, int], ...] = ()
    effects: tuple[str, ...] = ()
    does: tuple[EffectFacts, ...] = ()
    uncertain: tuple[int, ...] = ()
    identifiers: str = ""
    questions: tuple[Value, ...] = ()
    tells: Value = None
    stores: tuple[tuple[str, Value], ...] = ()
    branches: tuple[Branch, ...] = ()
    computed: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    tests: tuple[tuple[str, Value, Value], ...] = ()
    mixed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    picks: tuple[tuple[str, str, int, int], ...] = ()
    #: Reads those of `PUT_OFF` that are not there yet.
    later: Later | None = field(default=None, compare=False, repr=False)

    def put_off(self, later: Later) -> None:
        """Have the facts of `PUT_OFF` read when they are asked for."""
        self.later = later
        for name in PUT_OFF:
            delattr(self, name)

    def copied(self) -> FunctionFacts:
        """Equal facts of its own; what is put off stays so."""
        found = object.__new__(FunctionFacts)
        for name in self.__slots__:
            if self.later is None or name not in PUT_OFF:
                setattr(found, name, getattr(self, name))
        return found

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """A function that goes to another process leaves its tree behind."""
        return None, {name: None if name == "later" else getattr(self, name) for name in self.__slots__}

    @property
    def may_enter(self) -> bool:
        """Whether `does` may tell of a `with`."""
        return self.later is None or self.later.enters

    @property
    def may_store(self) -> bool:
        """Whether `does` may tell of an item that is set, or of something that is added to."""
        return self.later is None or self.later.stores

    @property
    def name(self) -> str:
        name = self.qualname.rpartition(".")[2]
        return name.partition("~")[0] if "~" in name else name

    @property
    def writes(self) -> bool:
        """Whether it may write into what others have as well."""
        return "keeps" in self.effects or "fills" in self.effects

    def is_sure(self, line: int, column: int) -> bool:
        """Whether what stands at a position runs whenever the function does, unless an error ends it before."""
        place, regions = (line, column), self.uncertain
        for at in range(0, len(regions), 4):
            if (regions[at], regions[at + 1]) <= place < (regions[at + 2], regions[at + 3]):
                return False
        return True

    def context_at(self, line: int, column: int) -> int:
        """The innermost context that covers a position, -1 for the function's body."""
        place = (line, column)
        for index in range(len(self.contexts) - 1, -1, -1):
            item = self.contexts[index]
            if (item.line, item.column) <= place < (item.end_line, item.end_column):
                return index
        return -1

    def conditions_at(self, line: int, column: int) -> tuple[tuple[Value, bool], ...]:
        """The tests that a call at a position stands under, innermost first, each with what it has to be."""
        place = (line, column)
        index = len(self.branches) - 1
        while index >= 0:
            item = self.branches[index]
            if (item.line, item.column) <= place < (item.end_line, item.end_column):
                break
            index -= 1
        found = []
        while index >= 0:
            item = self.branches[index]
            found.append((item.test, item.truth))
            index = item.parent
        return tuple(found)

    def innermost_loop(self, context: int) -> int | None:
        """The index in `loops` of the innermost loop around a context, None outside loops."""
        while context >= 0:
            item = self.contexts[context]
            if item.kind == "loop":
                return int(item.detail)
            context = item.parent
        return None

    def loops_around(self, context: int) -> list[int]:
        """The indices in `loops` of all loops around a context, innermost first."""
        found = []
        while context >= 0:
            item = self.contexts[context]
            if item.kind == "loop":
                found.append(int(item.detail))
            context = item.parent
        return found


def _read_when_asked(name: str) -> property:
    """What reads one of `PUT_OFF` when it is asked for. The class has no `__getattr__` for that: with one, the
    interpreter looks up all of its fields the long way, and they are read millions of times.
    """
    slot = vars(FunctionFacts)[name]

    def get(facts: FunctionFacts) -> Any:
        try:
            return slot.__get__(facts, FunctionFacts)
        except AttributeError:
            if facts.later is None:
                raise
        found = facts.later.read(name)
        slot.__set__(facts, found)
        return found

    return property(get, slot.__set__, slot.__delete__)


for _name in PUT_OFF:
    setattr(FunctionFacts, _name, _read_when_asked(_name))


def is_among(word: str, words: str) -> bool:
    """Whether a word is among those of a text that blanks separate, which is copied only where it may be."""
    return word in words and f" {word} " in f" {words} "


class ByPlace:
    """The contexts of a function by where they begin, for who asks about many places."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._starts = [(item.line, item.column) for item in facts.contexts]
        #: A part of a block that begins behind a guard may be written down after what stands in it.
        self._in_order = all(one <= other for one, other in itertools.pairwise(self._starts))

    def at(self, place: tuple[int, int]) -> int:
        """The innermost context that covers a position, -1 for the function's body."""
        if not self._in_order:
            return self._facts.context_at(*place)
        index = bisect_right(self._starts, place) - 1
        while index >= 0:
            item = self._facts.contexts[index]
            if place < (item.end_line, item.end_column):
                return index
            index = item.parent
        return -1


@dataclass(slots=True)
class ClassFacts:
    """A class. `attributes` are the values assigned to `self.x` in any method or to `x` in the body, each with the
    qualname of the function whose scope the value is written in; `annotations` are `x: T` in the body or on `self.x`.
    `computed` are values that `attributes` has no form for, or not all of, as `ir.computed` writes them; `unclear` are
    attributes that are given what neither has a form for.
    """

    qualname: str
    line: int
    bases: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    decorators: tuple[Value, ...] = ()
    methods: tuple[str, ...] = ()
    attributes: dict[str, tuple[tuple[Value, str], ...]] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    computed: dict[str, tuple[tuple[Value, str], ...]] = field(default_factory=dict)
    unclear: tuple[str, ...] = ()


@dataclass(slots=True)
class StatementFacts:
    """A top-level statement: lines `line` to `end_line` and the identifiers used in it outside of the functions in it,
    separated by blanks. Whether it imports, and no more.
    """

    line: int
    end_line: int
    identifiers: str
    imports: bool = False


@dataclass(slots=True)
class Summary:
    """All facts of one file. `imports` maps a bound name to what it stands for (`np` -> `numpy`); relative imports
    keep their leading dots. `also` is what the name stands for besides, where another branch imports something else.
    `stars` are modules imported with `*`. `needs` are the imports that importing it runs, as `ir.needed` has them.
    `texts` are the words that its string literals begin with, as `syntax.literals` has them. Of a file that
    `holds_tests`, these are an outline: what it defines and imports, and nothing of what it does or mentions."""

    imports: dict[str, str] = field(default_factory=dict)
    also: dict[str, tuple[str, ...]] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    functions: dict[str, FunctionFacts] = field(default_factory=dict)
    classes: dict[str, ClassFacts] = field(default_factory=dict)
    statements: tuple[StatementFacts, ...] = ()
    texts: str = ""
    holds_tests: bool = False

    def settle(self) -> None:
        """Read all that was put off, and let the tree go."""
        for facts in self.functions.values():
            if facts.later is not None:
                for name in PUT_OFF:
                    getattr(facts, name)
                facts.later = None

    def words(self) -> set[str]:
        """All identifiers used in the file."""
        return set(self.identifiers().split())

    def identifiers(self) -> str:
        """Those of each function and top-level statement, one after the other, each between blanks."""
        texts = [statement.identifiers for statement in self.statements]
        texts += [facts.identifiers for facts in self.functions.values()]
        return f" {' '.join(texts)} "

    def used(self) -> set[str]:
        """The identifiers of the file but for those that only its import statements name."""
        texts = [statement.identifiers for statement in self.statements if not statement.imports]
        texts += [facts.identifiers for facts in self.functions.values()]
        return set(" ".join(texts).split())

    def words_by_statement(self) -> dict[int, set[str]]:
        """By first line of each top-level statement, all identifiers used in it."""
        found: dict[int, set[str]] = {}
        for statement in self.statements:
            found.setdefault(statement.line, set()).update(statement.identifiers.split())
        for facts in self.functions.values():
            if facts.identifiers:
                found[self.statement_at(facts.line)].update(facts.identifiers.split())
        return found

    def outermost(self, qualname: str) -> str:
        """The function around a function or lambda that stands in no other."""
        while qualname.startswith("<lambda"):
            qualname = self.functions[qualname].owner
        return qualname.partition(".<locals>.")[0]

    def statement_at(self, line: int) -> int:
        """The first line of the top-level statement that holds a line; 0 where there is none."""
        statements = self.statements
        low, high = 0, len(statements) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if statements[middle].line <= line:
                low = middle
            else:
                high = middle - 1
        return statements[low].line if statements else 0
