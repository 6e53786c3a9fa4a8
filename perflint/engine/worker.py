"""Work on single files, in whatever process: their survey and their inspection. What goes wrong is said of the file."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from perflint.engine.flows import Flows
from perflint.engine.options import Options
from perflint.engine.shown import ShownTexts
from perflint.engine.silencing import silence
from perflint.engine.texts import Texts
from perflint.errors import SourceError
from perflint.finding import Finding, Problem, Silenced
from perflint.ir.survey import survey
from perflint.project.discovery import FoundFile
from perflint.rule_api.dispatch import Inspector, Located
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import plainly_parsed
from perflint.syntax.roles import holds_tests
from perflint.system.time_limit import OverTimeError, within

if TYPE_CHECKING:
    from perflint.analysis.program import Program
    from perflint.analysis.queries.asked import Asked
    from perflint.engine.reuse import Reuse
    from perflint.ir.sharing import Sharing
    from perflint.ir.summary import Summary

Result = TypeVar("Result")
Work = TypeVar("Work", bound=Callable[..., Any])

#: Rules that may take too long on one file before it is given up.
_MOST_LATE = 3
#: Objects made and not freed since the last collection, some 100 bytes each.
_MOST_UNCOLLECTED = 1_200_000
#: More than the parser takes for any usual file.
#: Calls within calls: an eighth of what a stack of 8 MB holds.
_DEEPEST = 5000
_HEAP_KEPT = 16 * 1024 * 1024
#: In words: just over half of what a piece of the stack then comes to, whose size is a power of two.
_ROOM = 65_000


class Surveyed(NamedTuple):
    """What the survey of a file gave. `moved` says that the file is no longer as it was when the run began."""

    summary: Summary | None
    problems: tuple[Problem, ...]
    moved: bool


@dataclass
class Inspected:
    """What the inspection of some files gave. Travels between processes."""

    findings: list[Finding] = field(default_factory=list)
    silenced: list[Silenced] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    texts: ShownTexts = field(default_factory=ShownTexts)
    #: By path, what the cache keeps of the inspection of a file.
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Files that are no longer as they were when the run began.
    moved: set[str] = field(default_factory=set)

    def add(self, other: Inspected) -> None:
        self.findings += other.findings
        self.silenced += other.silenced
        self.problems += other.problems
        self.texts.update(other.texts)
        self.entries |= other.entries
        self.moved |= other.moved


class Worker:
    """Works on files. Inspects them with `inspector`, noting what it asked where a `reuse` is to keep it."""

    inspector: Inspector

    def __init__(self, options: Options, texts: Texts) -> None:
        self.options = options
        self.texts = texts
        self.reuse: Reuse | None = None
        #: What the program asks for trees, where there is a program.
        self.flows: Flows | None = None
        #: For the summaries of many files.
        self.sharing: Sharing | None = None
        self._process = os.getpid()
        #: It holds itself, so that only a collection frees what is in it.
        self._left: list[object] = []
        self._left.append(self._left)

    def ask_of(self, program: Program, file_of: Callable[[str], FoundFile | None]) -> None:
        """Inspect files of a program, whose trees it may ask for."""
        self.inspector = Inspector(program, self.options.rules)
        self.flows = Flows(self.texts, file_of)
        program.flow = self.flows.of

    def all_texts(self) -> dict[str, bytes]:
        """What the files of the program hold, for workers that cannot read them."""
        found: dict[str, bytes] = {}
        for path in self.inspector.program.summaries:
            file = self.flows.file_of(path) if self.flows is not None else None
            with contextlib.suppress(SourceError):
                if file is not None:
                    found[path] = self.texts.data(file)
        return found

    def leave(self, what: object) -> None:
        """Have something large not freed, where that is of no use: taking trees apart is 2 % of a run."""
        if self.options.ends:
            self._left.append(what)

    def survey_all(self, files: Sequence[FoundFile]) -> list[Surveyed]:
        return [self.survey(file) for file in files]

    def survey(self, file: FoundFile) -> Surveyed:
        """Never raises: what is wrong with the file is a problem, and so is a mistake of ours."""
        try:
            summary, problems = self._within_limit(lambda: self._surveyed(file))
        except SourceError as error:
            summary, problems = None, (Problem(file.display, error.message, error.line),)
        except OverTimeError:
            summary, problems = None, (self._too_long(file, "to be read"),)
        except RecursionError:
            summary, problems = None, (Problem(file.display, "nests too deep to be read"),)
        except Exception as error:  # noqa: BLE001 - as in the inspection
            summary, problems = None, (_our_mistake(file, error),)
        return Surveyed(summary, problems, file.display in self.texts.moved)

    def _surveyed(self, file: FoundFile) -> tuple[Summary | None, tuple[Problem, ...]]:
        source = self.texts.source(file)
        module = plainly_parsed(source)
        outlined = holds_tests(file.display, module)
        self.texts.trees.put(source, None if outlined else module)
        summary = survey(module, source.lines, self.sharing, outlined=outlined)
        if not (self.options.ends and self.texts.trees.keeps_all):
            summary.settle()  # what is read later needs the tree
        return summary, source.faults

    def inspect_all(self, files: Sequence[FoundFile]) -> list[Inspected]:
        return [self.inspect(file) for file in files]

    def inspect(self, file: FoundFile) -> Inspected:
        """Never raises, as `survey`."""
        if gc.get_count()[0] > _MOST_UNCOLLECTED:
            gc.collect()  # the program is frozen, and what a file's inspection leaves behind frees itself mostly
        problems: list[Problem] = []
        try:
            while True:
                found = self._tried(file, problems)
                if found is not None:
                    return found
        finally:
            self.inspector.left_out.clear()

    def _tried(self, file: FoundFile, late: list[Problem]) -> Inspected | None:
        """What inspecting a file gives; None where a rule took too long, or calls nested too deep in it. That one is
        noted in `late` and left out, so that its findings alone are lost.
        """
        try:
            found = self._within_limit(functools.partial(self._inspected, file))
        except SourceError as error:  # it changed or vanished since it was surveyed
            problem = Problem(file.display, error.message, error.line)
        except (OverTimeError, RecursionError) as error:
            rule = self.inspector.at_work
            self.inspector.program.abandon()
            what_for = f"to be inspected by rule {rule.code}" if rule is not None else "to be inspected"
            if isinstance(error, RecursionError):
                problem = Problem(file.display, f"nests too deep {what_for}", detail=_traceback())
            else:
                problem = self._too_long(file, what_for)
            if rule is not None and len(late) < _MOST_LATE:
                late.append(problem)
                self.inspector.left_out.add(rule)
                return None
        except Exception as error:  # noqa: BLE001 - a mistake of ours in one file must not hide the others' findings
            self.inspector.program.abandon()
            problem = _our_mistake(file, error)
        else:
            if late:
                found.problems += late
                found.entries.clear()
            return found
        return Inspected(problems=[*late, problem])

    def _inspected(self, file: FoundFile) -> Inspected:
        texts = self.texts
        known = self.flows.taken(file.display) if self.flows is not None else texts.trees.take(file.display)
        source, module = known or (texts.source(file), None)
        if known is None and texts.has_changed(file):
            raise SourceError("changed while it was checked; check again")
        if module is not None and texts.trees.keeps_all:
            self.leave(module)
        asked = self.reuse.asking(file.display) if self.reuse is not None else None
        found, problems = self._found(source, module, asked)
        kept, quiet = silence(source, file, found, self.options)
        shown = ShownTexts()
        if kept or quiet:
            shown.add(file.display, source.raw)
        moved = {file.display} & texts.moved
        entries = {}
        if asked is not None and self.reuse is not None and not problems and not moved:
            entries[file.display] = self.reuse.entry(asked, kept, quiet)
        return Inspected(kept, quiet, problems, shown, entries, moved)

    def _found(
        self, source: SourceFile, module: ast.Module | None, asked: Asked | None
    ) -> tuple[list[Located], list[Problem]]:
        flow = functools.partial(self.flows.with_module, source, module) if self.flows is not None else None
        return self.inspector.inspect(source, module, asked.as_program if asked is not None else None, flow)

    def _within_limit(self, work: Callable[[], Result]) -> Result:
        return within(self.options.settings.time_limit, work, expendable=os.getpid() != self._process)

    def _too_long(self, file: FoundFile, what_for: str) -> Problem:
        seconds = f"{self.options.settings.time_limit:g} s"
        words = f"takes more than {seconds} of processor time {what_for}; exclude it, or raise time-limit"
        return Problem(file.display, words)


def not_surveyed(file: FoundFile) -> list[Surveyed]:
    """What stands for the survey of a file that no process survives."""
    return [Surveyed(None, (_ended(file, "read"),), moved=False)]


def not_inspected(file: FoundFile) -> list[Inspected]:
    """What stands for the inspection of a file that no process survives."""
    return [Inspected(problems=[_ended(file, "inspected")])]


def _ended(file: FoundFile, what: str) -> Problem:
    words = f"ended two processes when it was to be {what}: out of memory, or of its time limit; exclude it"
    return Problem(file.display, words)


def _our_mistake(file: FoundFile, error: Exception) -> Problem:
    words = f"internal error, which is a bug in perflint: {type(error).__name__}: {error}; --debug shows the traceback"
    return Problem(file.display, words, detail=_traceback())


def _traceback() -> str:
    import traceback  # hardly any run needs it

    return traceback.format_exc()


def keep_heap() -> None:
    """Have the memory that the parser takes for one file kept for the next one.

    By default the C library gives back what is free at the end of its heap, and each page that is asked for again
    costs a fault: a fifth of all. Once a large block was freed, it takes blocks of that size to be usual, and keeps as
    much. No page of this one is ever touched: `bytes` asks for zeros, which fresh pages are.
    """
    with contextlib.suppress(MemoryError):  # what is short of memory goes without
        bytes(_HEAP_KEPT)


def with_room(function: Work) -> Work:
    """Have all that a function calls find room on one piece of Python's stack.

    Python maps a new piece where calls cross the end of one, and frees it when they come back: thousands of times in a
    run. A piece is at least as large as the frame that asks for it, and what a frame does not use is never touched: so
    this one asks for much, and leaves half a megabyte to those above it. An interpreter that does not take it runs the
    function as it is.
    """
    with contextlib.suppress(AttributeError, TypeError, ValueError, OverflowError):
        function.__code__ = function.__code__.replace(co_stacksize=_ROOM)
    return function


@contextlib.contextmanager
def room_to_nest() -> Iterator[None]:
    """Let calls nest deeper than the interpreter's default of a thousand.

    An `elif` is an `if` in the `else` of another, and the parser takes thousands of them. What is deeper still ends in
    a RecursionError, well before the stack of the process does.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextlib.contextmanager
def gc_paused(*, ends: bool = False) -> Iterator[None]:
    """Syntax trees hold no cycles worth collecting, and looking for them costs a third of the run. Where the process
    `ends` after this one, nobody looks for them afterwards either.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    gc.unfreeze()  # an earlier run of this process froze its program
    try:
        yield
    finally:
        if ends:
            gc.freeze()
        if was_enabled:
            gc.enable()
