"""What the inspection of one file asked about the rest of the project, so that a later run can ask it again.

A file's findings follow from its own text and from what the program answers while it is inspected. `Asked` stands for
the program and notes every question; `still_holds` puts the questions to another program. Whatever is not known to be
a question is taken to depend on every file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from perflint.analysis.names.refs import Ref, Scope
from perflint.analysis.program import Program
from perflint.analysis.queries.answers import (
    CODE,
    METHODS,
    PART,
    RESOLVER,
    WHOLE,
    Digests,
    Question,
    answer_to,
    hashed,
    revived,
)
from perflint.finding import Heat
from perflint.ir.summary import FunctionFacts, Summary, Value
from perflint.syntax.flow import Flow

if TYPE_CHECKING:
    from perflint.analysis.values.siblings import Siblings

_EVERYTHING = ("everything",)


class Asked:
    """Stands for a `Program` while the file at `path` is inspected, and notes what is asked of it.

    What the file's own text decides is not noted. Nor are the torch versions, which are known before a run begins.
    """

    def __init__(self, program: Program, path: str, digests: Digests) -> None:
        self.program = program
        self.path = path
        self.digests = digests
        self._answers: dict[Question, object] = {}
        self.torch_of = program.torch_of
        self.summaries = _Summaries(self)
        self.resolver = _Part(self, program.resolver, RESOLVER)
        self.graph = _Graph(self)
        self.roots = _Roots(self)
        self.compiled = _Table(self, "compiled", lambda: program.compiled)
        self.whole = _Whole(self)
        #: Of this file's inspection alone: what others have worked out already would not be asked for again.
        self.siblings: Siblings | None = None
        self.ask("heats", path)

    @property
    def as_program(self) -> Program:
        return cast(Program, self)

    def questions(self) -> dict[str, Any]:
        """All that was asked, as JSON, with one hash of the answers.

        What was asked about other files' code and parts comes by file, with its own hash and that of the file's text: a
        file that is as it was need not be asked again.
        """
        others = {question: answer for question, answer in self._answers.items() if question[0] not in (PART, CODE)}
        codes = [(question[1], answer) for question, answer in self._answers.items() if question[0] == CODE]
        parts: dict[str, list[tuple[str, str, object]]] = {}
        for question, answer in self._answers.items():
            if question[0] == PART:
                _, path, table, name = question
                parts.setdefault(path, []).append((table, name, answer))
        return {
            "questions": list(others),
            "answers": hashed(others.values()),
            "codes": [(path, self.digests.text(path), code) for path, code in codes],
            "parts": [(path, self.digests.text(path), asked) for path, asked in parts.items()],
        }

    def ask(self, *question: Any) -> Any:
        answers = self._answers
        if question in answers:
            return answers[question]
        found = answers[question] = answer_to(self.program, self.digests, question)
        return found

    def flow(self, path: str) -> Flow | None:
        """What a file's text holds. Another file's counts as a whole: what is read of it is not noted one by one."""
        if path != self.path:
            self.ask(CODE, path)
        return self.program.flow(path)

    def everything(self) -> None:
        """Note that any change anywhere may change the findings."""
        self.ask(*_EVERYTHING)

    def __getattr__(self, name: str) -> Any:
        if name in RESOLVER:
            return getattr(self.resolver, name)
        if name in METHODS:
            return _method(self, self.program, name)
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
        for path, text, code in asked["codes"]:
            is_same = text and digests.text(path) == text
            if not is_same and digests.code(path) != code:
                return False
        questions = [revived(question) for question in asked["questions"]]
        return bool(hashed(answer_to(program, digests, question) for question in questions) == asked["answers"])
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
        self._asked.ask(PART, self._path, self._name, name)
        return self._table[name]

    def get(self, name: str, default: Any = None) -> Any:
        self._asked.ask(PART, self._path, self._name, name)
        return self._table.get(name, default)

    def __contains__(self, name: object) -> bool:
        self._asked.ask(PART, self._path, self._name, name)
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


class _Whole(_Part):
    def __init__(self, asked: Asked) -> None:
        super().__init__(asked, asked.program.whole, (name for name, arguments in WHOLE.items() if arguments))

    def __getattr__(self, name: str) -> Any:
        # What has no arguments is an attribute there, and a question of its own all the same.
        return self._asked.ask(name) if WHOLE.get(name) == () else super().__getattr__(name)


class _Graph(_Part):
    def __init__(self, asked: Asked) -> None:
        graph = asked.program.graph
        super().__init__(asked, graph)
        self.outgoing = _Table(asked, "outgoing", lambda: graph.outgoing)
        self.incoming = _Table(asked, "incoming", lambda: graph.incoming)
        self.unresolved = _Table(asked, "unresolved", lambda: graph.unresolved)


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
