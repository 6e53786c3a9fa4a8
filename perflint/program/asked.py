"""What the inspection of one file asked about the rest of the project, so that a later run can ask it again.

A file's findings follow from its own text and from what the program answers while it is inspected. `Asked` stands for
the program and notes every question; `still_holds` puts the questions to another program. Whatever is not known to be
a question is taken to depend on every file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, cast

from perflint.facts.summary import FunctionFacts, Summary, Value
from perflint.finding import Confidence, Heat, Hop
from perflint.program.edges import Edge
from perflint.program.program import Program
from perflint.program.refs import Ref, Scope

#: A name and its arguments, hashable.
Question = tuple[Any, ...]


class Digests:
    """Hashes of what summaries say, worked out when they are first asked for. What is not there has none.

    `texts` are hashes of the texts that the summaries were made from.
    """

    def __init__(self, program: Program, texts: Mapping[str, bytes]) -> None:
        self._summaries = program.summaries
        self._texts = texts
        self._known: dict[tuple[str, ...], str | None] = {}

    def text(self, path: str) -> str:
        """Of the text of a file, empty where that is not known."""
        return self._texts[path].hex() if path in self._texts else ""

    def of(self, path: str) -> str | None:
        """Of all that a file's summary says."""
        return self._digest((path,), self._summaries.get(path))

    def part(self, path: str, table: str, name: str) -> str | None:
        """Of one entry of a summary's table: a function, a class."""
        summary = self._summaries.get(path)
        return self._digest((path, table, name), getattr(summary, table).get(name) if summary is not None else None)

    def _digest(self, key: tuple[str, ...], value: object) -> str | None:
        if key not in self._known:
            self._known[key] = None if value is None else _hash((value,))
        return self._known[key]


_EVERYTHING = ("everything",)
_PART = "part"


class Asked:
    """Stands for a `Program` while the file at `path` is inspected, and notes what is asked of it.

    What the file's own text decides is not noted. Nor are the torch versions, which are known before a run begins.
    """

    def __init__(self, program: Program, path: str, digests: Digests) -> None:
        self.program = program
        self.path = path
        self.digests = digests
        self._answers: dict[Question, object] = {}
        self.torch_version = program.torch_version
        self.pinned_torch = program.pinned_torch
        self.summaries = _Summaries(self)
        self.resolver = _Part(self, program.resolver, _RESOLVER)
        self.graph = _Graph(self)
        self.roots = _Roots(self)
        self.compiled = _Table(self, "compiled", lambda: program.compiled)
        self.ask("heats", path)

    @property
    def as_program(self) -> Program:
        return cast(Program, self)

    def questions(self) -> dict[str, Any]:
        """All that was asked, as JSON, with one hash of the answers.

        What was asked about parts of other files comes by file, with its own hash and that of the file's text: a file
        that is as it was need not be asked for its parts.
        """
        others = {question: answer for question, answer in self._answers.items() if question[0] != _PART}
        parts: dict[str, list[tuple[str, str, object]]] = {}
        for question, answer in self._answers.items():
            if question[0] == _PART:
                _, path, table, name = question
                parts.setdefault(path, []).append((table, name, answer))
        return {
            "questions": list(others),
            "answers": _hash(others.values()),
            "parts": [(path, self.digests.text(path), asked) for path, asked in parts.items()],
        }

    def ask(self, *question: Any) -> Any:
        answers = self._answers
        if question in answers:
            return answers[question]
        answer = answers[question] = _answer(self.program, self.digests, question)
        return answer

    def everything(self) -> None:
        """Note that any change anywhere may change the findings."""
        self.ask(*_EVERYTHING)

    def __getattr__(self, name: str) -> Any:
        if name in _RESOLVER:
            return getattr(self.resolver, name)
        if name in _METHODS:
            return _method(self, self.program, name)
        if name in _FLAGS:
            return self.ask(name)
        self.everything()
        return getattr(self.program, name)

    # What the file itself decides, given the heat of its functions, which is asked for at the start.

    def function(self, scope: Scope) -> FunctionFacts:
        return self.summaries[scope.path].functions[scope.function]

    def heat(self, scope: Scope) -> Heat:
        return self.program.heat(scope) if scope.path == self.path else self.ask("heat", scope)

    def peak(self, scope: Scope) -> Heat:
        return self.program.peak(scope) if scope.path == self.path else self.ask("peak", scope)

    def heat_at(self, scope: Scope, context: int) -> Heat:
        own = scope.path == self.path
        return self.program.heat_at(scope, context) if own else self.ask("heat_at", scope, context)

    def grad_off(self, scope: Scope, context: int = -1) -> bool:
        own = scope.path == self.path
        return self.program.grad_off(scope, context) if own else self.ask("grad_off", scope, context)

    def looks_like_loader(self, dotted: str) -> bool:
        return self.program.looks_like_loader(dotted)

    # Questions with arguments left out, or in no order.

    def role(self, scope: Scope, context: int = -1) -> str:
        return cast(str, self.ask("role", scope, context))

    def step_loop(self, scope: Scope, context: int = -1) -> tuple[Scope, int] | None:
        return cast("tuple[Scope, int] | None", self.ask("step_loop", scope, context))

    def elements(self, value: Value, scope: Scope, index: object = None) -> tuple[Ref, ...]:
        return cast("tuple[Ref, ...]", self.ask("elements", value, scope, index))

    def is_subclass(self, ref: Ref, *dotted: str) -> bool:
        return cast(bool, self.ask("is_subclass", ref, dotted))

    def passes(self, names: Iterable[str]) -> bool:
        return cast(bool, self.ask("passes", tuple(sorted(names))))

    def mentions(self, names: Iterable[str], paths: Iterable[str] | None = None) -> bool:
        wanted = tuple(sorted(names))
        if paths is None:
            return cast(bool, self.ask("mentions", wanted, None))
        files = tuple(sorted(paths))
        if files == (self.path,):
            return self.program.mentions(wanted, files)
        return cast(bool, self.ask("mentions", wanted, files))


def still_holds(program: Program, digests: Digests, asked: Mapping[str, Any]) -> bool:
    """Whether a program answers all that `Asked.questions` holds as the other one did."""
    try:
        for path, text, parts in asked["parts"]:
            is_same = text and digests.text(path) == text
            if not is_same and any(digests.part(path, table, name) != was for table, name, was in parts):
                return False
        questions = [_revived(question) for question in asked["questions"]]
        return bool(_hash(_answer(program, digests, question) for question in questions) == asked["answers"])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return False  # about a function that is gone, or not as `Asked` writes it


class _Summaries(Mapping[str, Summary]):
    """The summaries of a program; reading another file's is to depend on all of it."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def __getitem__(self, path: str) -> Summary:
        if path == self._asked.path:
            return self._asked.program.summaries[path]
        if path not in self:
            raise KeyError(path)
        return cast(Summary, _Other(self._asked, path))

    def __contains__(self, path: object) -> bool:
        return path == self._asked.path or bool(self._asked.ask("is_there", path))

    def __iter__(self) -> Iterator[str]:
        return iter(self._asked.ask("paths"))

    def __len__(self) -> int:
        return len(self._asked.ask("paths"))


class _Other:
    """The summary of another file."""

    def __init__(self, asked: Asked, path: str) -> None:
        self._asked = asked
        self._path = path
        self.functions = _Entries(asked, path, "functions")
        self.classes = _Entries(asked, path, "classes")
        self.imports = _Entries(asked, path, "imports")

    def __getattr__(self, name: str) -> Any:
        self._asked.ask("file", self._path)
        return getattr(self._asked.program.summaries[self._path], name)


class _Entries(Mapping[str, Any]):
    """The functions, classes or imports of another file: to read one is to depend on what is said of it."""

    def __init__(self, asked: Asked, path: str, table: str) -> None:
        self._asked = asked
        self._path = path
        self._name = table

    @property
    def _table(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", getattr(self._asked.program.summaries[self._path], self._name))

    def __getitem__(self, name: str) -> Any:
        self._asked.ask(_PART, self._path, self._name, name)
        return self._table[name]

    def get(self, name: str, default: Any = None) -> Any:
        self._asked.ask(_PART, self._path, self._name, name)
        return self._table.get(name, default)

    def __contains__(self, name: object) -> bool:
        self._asked.ask(_PART, self._path, self._name, name)
        return name in self._table

    def __iter__(self) -> Iterator[str]:
        self._asked.ask("file", self._path)
        return iter(self._table)

    def __len__(self) -> int:
        self._asked.ask("file", self._path)
        return len(self._table)


class _Part:
    """A part of a program of which only `methods` are questions that can be asked again."""

    def __init__(self, asked: Asked, part: object, methods: Iterable[str] = ()) -> None:
        self._asked = asked
        self._part = part
        self._methods = frozenset(methods)

    def __getattr__(self, name: str) -> Any:
        if name in self._methods:
            return _method(self._asked, self._part, name)
        self._asked.everything()
        return getattr(self._part, name)


def _method(asked: Asked, part: object, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if not named:
            return asked.ask(name, *arguments)
        asked.everything()  # a way to ask that nothing here writes down
        return getattr(part, name)(*arguments, **named)

    return call


class _Graph(_Part):
    def __init__(self, asked: Asked) -> None:
        graph = asked.program.graph
        super().__init__(asked, graph)
        self.outgoing = _Table(asked, "outgoing", lambda: graph.outgoing)
        self.incoming = _Table(asked, "incoming", lambda: graph.incoming)


class _Roots(_Part):
    def __init__(self, asked: Asked) -> None:
        roots = asked.program.roots
        super().__init__(asked, roots)
        self.loops = _Table(asked, "loop", lambda: roots.loops)
        self.functions = _Table(asked, "root", lambda: roots.functions)


class _Table(Mapping[Any, Any]):
    """A table of a program: one entry is a question, all of them are another."""

    def __init__(self, asked: Asked, entry: str, table: Callable[[], Mapping[Any, Any]]) -> None:
        self._asked = asked
        self._entry = entry
        self._table = table

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._asked.ask(self._entry, key)
        return default if found is None else found

    def __getitem__(self, key: Any) -> Any:
        self._asked.ask(self._entry, key)
        return self._table()[key]

    def __contains__(self, key: object) -> bool:
        return self._asked.ask(self._entry, key) is not None

    def __iter__(self) -> Iterator[Any]:
        self._asked.ask("table", self._entry)
        return iter(self._table())

    def __len__(self) -> int:
        self._asked.ask("table", self._entry)
        return len(self._table())


# Answers.


def _answer(program: Program, digests: Digests, question: Question) -> object:
    name, *arguments = question
    if name in _RESOLVER:
        return getattr(program.resolver, name)(*arguments)
    if name in _FLAGS:
        return getattr(program, name)
    if name == "is_subclass":
        return program.is_subclass(arguments[0], *arguments[1])
    if name in _METHODS:
        return getattr(program, name)(*arguments)
    return _OTHERS[name](program, digests, *arguments)


def _heats(program: Program, _: Digests, path: str) -> object:
    """How often each line of a file runs, and with gradients or without."""
    heatmap = program.heatmap
    found = []
    for qualname, facts in program.summaries[path].functions.items():
        scope = Scope(path, qualname)
        base = heatmap.reason(scope).heat
        contexts = heatmap.contexts(scope, facts, base) if facts.contexts else []
        found.append((int(base), [int(heat) for heat in contexts], heatmap.without_grad(scope)))
    return found


def _compiled(program: Program, _: Digests, scope: Scope) -> Hop | None:
    return program.compiled.get(scope)


def _table(program: Program, _: Digests, entry: str) -> object:
    """All of a table, in its order, which whoever goes through it sees."""
    tables: dict[str, Callable[[], Mapping[Any, Any]]] = {
        "loop": lambda: program.roots.loops,
        "root": lambda: program.roots.functions,
        "compiled": lambda: program.compiled,
        "outgoing": lambda: program.graph.outgoing,
        "incoming": lambda: program.graph.incoming,
    }
    return list(tables[entry]().items())


def _plain(value: Any) -> Any:
    return tuple(_plain(item) for item in value) if isinstance(value, (list, tuple)) else value


def _scope(value: Sequence[Any]) -> Scope:
    path, function = value
    return Scope(path, function)


def _ref(value: Sequence[Any]) -> Ref:
    kind, path, name = value
    return Ref(kind, path, name)


def _edge(value: Sequence[Any]) -> Edge:
    caller, callee, context, line, confidence, index, callback, stands_in = value
    return Edge(_scope(caller), _scope(callee), context, line, Confidence(confidence), index, callback, stands_in)


def _place(value: Sequence[Any]) -> tuple[Scope, int]:
    scope, index = value
    return _scope(scope), index


#: What a resolver is asked, with how each argument is made again from JSON.
_RESOLVER: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "refs": (_plain, _scope),
    "imported": (_plain, _plain),
    "attribute": (_ref, _plain),
    "mro": (_ref,),
    "method": (_ref, _plain),
    "base_names": (_ref,),
}
_FLAGS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "has_training": (),
    "has_hot_loops": (),
    "compiles": (),
    "switches_gradients": (),
}
_METHODS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "elements": (_plain, _scope, _plain),
    "is_subclass": (_ref, _plain),
    "is_loader": (_ref,),
    "callers": (_scope,),
    "argument": (_edge, _plain),
    "heat": (_scope,),
    "peak": (_scope,),
    "heat_at": (_scope, _plain),
    "route": (_scope, _plain),
    "role": (_scope, _plain),
    "step_loop": (_scope, _plain),
    "grad_off": (_scope, _plain),
    "trains": (_scope,),
    "drives": (_plain,),
    "named": (_plain,),
    "is_called_by_name": (_plain,),
    "is_set_elsewhere": (_plain, _scope),
    "mentions": (_plain, _plain),
    "passes": (_plain,),
}
_OTHERS: dict[str, Callable[..., object]] = {
    "heats": _heats,
    "file": lambda _, digests, path: digests.of(path),
    _PART: lambda _, digests, path, table, name: digests.part(path, table, name),
    "is_there": lambda program, _, path: path in program.summaries,
    "paths": lambda program, _: tuple(program.summaries),
    "compiled": _compiled,
    "outgoing": lambda program, _, scope: program.graph.outgoing.get(scope),
    "incoming": lambda program, _, scope: program.graph.incoming.get(scope),
    "loop": lambda program, _, place: program.roots.loops.get(place),
    "root": lambda program, _, scope: program.roots.functions.get(scope),
    "table": _table,
    "everything": lambda program, digests: (
        [(path, digests.of(path)) for path in program.summaries],
        sorted((name, value) for name, value in vars(program).items() if isinstance(value, (str, int, tuple))),
    ),
}
_ARGUMENTS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    **_RESOLVER,
    **_FLAGS,
    **_METHODS,
    "heats": (_plain,),
    "file": (_plain,),
    "is_there": (_plain,),
    "paths": (),
    "compiled": (_scope,),
    "outgoing": (_scope,),
    "incoming": (_scope,),
    "loop": (_place,),
    "root": (_scope,),
    "table": (_plain,),
    "everything": (),
}


def _revived(question: Sequence[Any]) -> Question:
    """A question as it was asked, from JSON."""
    name, *arguments = question
    makers = _ARGUMENTS[name]
    if len(makers) != len(arguments):
        raise ValueError(f"not a question: {name}")
    return (name, *(make(item) for make, item in zip(makers, arguments)))


def _hash(answers: Iterable[object]) -> str:
    """Answers are plain data, tuples, lists, strings, numbers, enums and records of them: JSON says all there is to
    them, and is written by compiled code, as the `repr` of a record is not.
    """
    digest = hashlib.blake2b(digest_size=20)
    for answer in answers:
        digest.update(_JSON.encode(answer).encode("ascii"))
        digest.update(b"\0")
    return digest.hexdigest()


def _spelled(answer: Any) -> Any:
    """A record as the list of its fields, an enum as its value."""
    return answer.value if isinstance(answer, Enum) else [getattr(answer, name) for name in answer.__slots__]


_JSON = json.JSONEncoder(default=_spelled)
