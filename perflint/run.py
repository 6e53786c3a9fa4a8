"""The pipeline: files -> summaries -> program -> findings. It reads files and runs rules, and prints nothing."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import gc
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from perflint.cache import FOLDER, Cache, engine_fingerprint, key_of
from perflint.discovery import Discovery, FoundFile
from perflint.errors import PerflintError, SourceError
from perflint.facts.summary import Summary
from perflint.facts.survey import survey
from perflint.finding import Finding, Problem, Report, Silenced
from perflint.inspection import Inspector, Located
from perflint.notebook import SUFFIX
from perflint.parallel import map_chunks
from perflint.placing import Placing
from perflint.program.program import Program
from perflint.pytorch import versions
from perflint.requirements import pinned_torch, project_torch
from perflint.reuse import Reuse, stamp_of_rules
from perflint.source.file import SourceFile
from perflint.source.parse import parse
from perflint.source.read import decode_source, read_bytes
from perflint.source.suppressions import Suppressions, Used
from perflint.stored import report_from_json, report_to_json
from perflint.timelimit import OverTimeError, within

if TYPE_CHECKING:
    from pathlib import Path

    from perflint.cluster import RayExecutor
    from perflint.program.asked import Asked
    from perflint.rule import Rule
    from perflint.settings import Settings


Result = TypeVar("Result")


class Memory:
    """Summaries that a process which checks again and again keeps, with the state of the file each was made from."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[object, Summary]] = {}

    def get(self, file: Path, state: object) -> Summary | None:
        kept = self._kept.get(file)
        return kept[1] if kept is not None and kept[0] == state else None

    def put(self, file: Path, state: object, summary: Summary) -> None:
        self._kept[file] = (state, summary)


@dataclass(frozen=True)
class Options:
    """How one run goes. `rules` are the selected rules, one instance each; `stdin` replaces the file of that name.

    `everything` says that `rules` are all there are. A `memory` is asked before the cache. An `executor` does what
    otherwise `jobs` processes do.
    """

    settings: Settings
    rules: Sequence[Rule]
    stdin: tuple[str, bytes] | None = None
    jobs: int = 1
    debug: bool = False
    progress: Callable[[int, int], None] | None = None
    cache: bool = True
    everything: bool = False
    memory: Memory | None = None
    executor: RayExecutor | None = None


def check(discovery: Discovery, options: Options) -> Report:
    """Check the reported files of a project, knowing all analysed ones."""
    return check_overlay(discovery, options, {})


def check_overlay(discovery: Discovery, options: Options, overlay: Mapping[str, str]) -> Report:
    """As `check`, with texts by display path that stand in for what is on disk."""
    with _gc_paused():
        return _Run(discovery, options, overlay).report()


def explain_heat(
    discovery: Discovery,
    options: Options,
    path: str,
    line: int,
    cell: int | None = None,
    overlay: Mapping[str, str] | None = None,
) -> str:
    """Why a line, in a notebook one of a cell, is as hot as it is, as text.

    Raises PerflintError when the file or cell is not part of the program.
    """
    from perflint.program.explain import explain_heat as explain

    with _gc_paused():
        run = _Run(discovery, options, overlay or {})
        try:
            program = run.program()
        finally:
            run.close()
    if path not in program.summaries:
        raise PerflintError(f"--explain-heat: {path} is not a file of this project that can be read")
    placing = run.placing()
    words = explain(program, path, placing.module_line(path, line, cell))
    return placing.words("\n".join(words), path, cell)


#: A file and what it holds.
_Carried: TypeAlias = "tuple[FoundFile, bytes]"


@dataclass(frozen=True)
class _Afar(Generic[Result]):
    """Work on files that travel with what they hold. `known` makes the program, for work that asks it; `digests` are
    there where what was asked is to be kept."""

    work: str
    options: Options
    known: tuple[Mapping[str, Summary], tuple[int, int] | None, tuple[int, int] | None] | None
    digests: dict[str, bytes] | None

    def ready(self) -> Callable[[Sequence[_Carried]], Result]:
        run = _Run(Discovery(None, (), ()), self.options, {})
        if self.known is not None:
            with _gc_paused():
                program = Program(*self.known)
            run.inspector = Inspector(program, self.options.rules)
            if self.digests is not None:
                run.digests = self.digests
                run.reuse = Reuse(None, b"", program, self.digests)

        def do(chunk: Sequence[_Carried]) -> Result:
            run.contents = {file.display: data for file, data in chunk}
            run.moved = set()
            with _gc_paused():
                return cast("Result", getattr(run, self.work)([file for file, _ in chunk]))

        return do


@dataclass
class _Inspected:
    """What the inspection of some files gave. Travels between processes."""

    findings: list[Finding] = field(default_factory=list)
    silenced: list[Silenced] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    #: By path, what the cache keeps of the inspection of a file.
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Files that are no longer as they were when the run began.
    moved: set[str] = field(default_factory=set)

    def add(self, other: _Inspected) -> None:
        self.findings += other.findings
        self.silenced += other.silenced
        self.problems += other.problems
        self.texts |= other.texts
        self.entries |= other.entries
        self.moved |= other.moved


class _KeptTrees:
    """Syntax trees of a small project from the survey of its files to their inspection.

    Reading a file twice costs as much as all else that is done with it, but a tree takes 37 times the memory of its
    text, so larger projects do without. What a worker process surveys is inspected by another one: nothing is kept
    there.
    """

    def __init__(self, files: Sequence[FoundFile]) -> None:
        self._process = os.getpid()
        self._wanted = {file.display for file in files}
        self._trees: dict[str, tuple[SourceFile, ast.Module]] = {}

    def put(self, source: SourceFile, module: ast.Module) -> None:
        if source.path in self._wanted and os.getpid() == self._process:
            self._trees[source.path] = (source, module)

    def take(self, path: str) -> tuple[SourceFile, ast.Module] | None:
        return self._trees.pop(path, None)


class _Run:
    def __init__(self, discovery: Discovery, options: Options, overlay: Mapping[str, str]) -> None:
        self.discovery = discovery
        self.options = options
        self.overlay = overlay
        self.problems: list[Problem] = list(discovery.problems)
        self.done = 0
        self.total = 0
        self.cache: Cache | None = None
        self._process = os.getpid()
        self.digests: dict[str, bytes] = {}
        self.fingerprint = ""
        self.result_key = b""
        #: Files whose content is not what `digests` says, because they changed during the run.
        self.moved: set[str] = set()
        self.reuse: Reuse | None = None
        #: What files hold, where this process may not read them itself.
        self.contents: Mapping[str, bytes] = {}
        self.reported = {file.display: file for file in discovery.reported}
        #: What the disk said of each file before any was read.
        self.seen = {file.display: _state(file) for file in discovery.reported}
        sizes = (state[1] for state in self.seen.values() if state is not None)
        self.kept = _KeptTrees(discovery.reported if sum(sizes) <= _KEPT_BYTES else ())

    def program(self) -> Program:
        """Survey every analysed file that neither memory nor cache know, and link the summaries."""
        self.total = len(self.discovery.analysed) + len(self.reported)
        memory = self.options.memory
        states = self._states() if memory is not None else {}
        summaries = self._remembered(states)
        if self.cache is None:
            self._open_cache([file for file in self.discovery.analysed if file.display not in summaries])
        for display, cached in self._cached_summaries().items():
            summaries[display] = cached
            if memory is not None and display in states:
                memory.put(self.discovery.file(display), states[display], cached)
        unknown = [file for file in self.discovery.analysed if file.display not in summaries]
        self._progress(len(summaries))
        fresh: dict[bytes, object] = {}
        for files, surveyed in self._spread(self._survey_all, unknown, _not_surveyed):
            for summary, problems, moved, file in zip(*surveyed, files):
                if moved:
                    self.digests.pop(file.display, None)
                    self.result_key = b""
                if summary is not None:
                    summaries[file.display] = summary
                    if memory is not None and file.display in states and not problems:
                        memory.put(file.file, states[file.display], summary)
                    if self.cache is not None and file.display in self.digests and not problems:
                        fresh[self._summary_key(file.display)] = summary.to_json()
                # A file that is only read for what it calls is its owner's business, not this run's.
                if file.display in self.reported:
                    self.problems += problems
            self._progress(len(files))
        if self.cache is not None:
            self.cache.put(fresh)
        return Program(summaries, self._torch_version(), self._pinned_torch())

    def _spread(
        self,
        work: Callable[[Sequence[FoundFile]], Result],
        files: Sequence[FoundFile],
        lost: Callable[[FoundFile], Result],
        program: Program | None = None,
    ) -> Iterator[tuple[Sequence[FoundFile], Result]]:
        """`work`, a method of this object, over chunks of `files`, wherever the options say."""
        executor = self.options.executor
        if executor is None or self.overlay:
            yield from map_chunks(work, files, self.options.jobs, lost)
            return
        carried: list[_Carried] = []
        for file in files:
            try:
                carried.append((file, self._bytes(file)))
            except SourceError:
                yield [file], work([file])  # says why it cannot be read
        for chunk, result in executor.map_chunks(self._afar(work.__name__, program), carried, lambda one: lost(one[0])):
            yield [file for file, _ in chunk], result

    def _afar(self, work: str, program: Program | None) -> _Afar[Any]:
        options = dataclasses.replace(
            self.options, settings=dataclasses.replace(self.options.settings), stdin=None, progress=None, executor=None
        )
        known = None if program is None else (program.summaries, program.torch_version, program.pinned_torch)
        return _Afar(work, options, known, self.digests if self.reuse is not None else None)

    def report(self) -> Report:
        if not self.overlay and self.options.memory is None:
            self._open_cache(self.discovery.analysed)
            self.result_key = self._key_of_result()
        try:
            known = self._known_report()
            return known if known is not None else self._fresh_report()
        finally:
            self.close()

    def close(self) -> None:
        if self.cache is not None:
            self.cache.close()

    def _fresh_report(self) -> Report:
        program = self.program()
        gc.freeze()
        self.inspector = Inspector(program, self.options.rules)
        files = [file for file in self.discovery.reported if file.display in program.summaries]
        parts = self._reused(program, files)
        self._progress(len(parts))
        unknown = [file for file in files if file.display not in parts]
        for chunk, inspected in self._spread(self._inspect_all, unknown, _not_inspected, program):
            parts.update((file.display, part) for file, part in zip(chunk, inspected))
            self._progress(len(chunk))
        total = _Inspected()
        for file in files:
            total.add(parts[file.display])
        if self.reuse is not None:
            self.reuse.keep(files, total.entries)
        placing = self.placing()
        problems = [*self.problems, *map(placing.problem, total.problems)]
        report = Report(
            findings=tuple(sorted(map(placing.finding, total.findings), key=lambda item: item.sort_key)),
            errors=tuple(sorted(problems, key=lambda item: (item.path, item.line or 0, item.message))),
            files=len(self.reported),
            texts=total.texts,
            silenced=tuple(Silenced(placing.finding(one.finding), one.line, one.reason) for one in total.silenced),
        )
        if self.cache is not None and self.result_key and not report.errors and not total.moved:
            self.cache.put({self.result_key: report_to_json(report)})
        return report

    def placing(self) -> Placing:
        return Placing(lambda path: self._source(FoundFile(path, self.discovery.file(path))))

    def _states(self) -> dict[str, object]:
        """What each file's summary depends on: its text where there is one to stand in, else what the disk says."""
        states: dict[str, object] = {}
        for file in self.discovery.analysed:
            stdin = self.options.stdin
            if file.display in self.overlay:
                states[file.display] = self.overlay[file.display]
                continue
            if stdin is not None and stdin[0] == file.display:
                states[file.display] = stdin[1]
                continue
            state = _state(file)
            if state is not None:
                states[file.display] = state
        return states

    def _remembered(self, states: Mapping[str, object]) -> dict[str, Summary]:
        found: dict[str, Summary] = {}
        for file in self.discovery.analysed if self.options.memory is not None else ():
            assert self.options.memory is not None
            summary = self.options.memory.get(file.file, states.get(file.display))
            if summary is not None:
                found[file.display] = summary
        return found

    # What the cache knows.

    def _reused(self, program: Program, files: Sequence[FoundFile]) -> dict[str, _Inspected]:
        """What an earlier run found in files that would be inspected just so again."""
        if self.cache is None or self.overlay or self.options.memory is not None:
            return {}
        self.reuse = Reuse(self.cache, self._basis(), program, self.digests)
        found: dict[str, _Inspected] = {}
        for path, report in self.reuse.known(files).items():
            with contextlib.suppress(SourceError):  # it vanished since its digest was made
                texts = {path: self._source(self.reported[path]).raw} if report.findings or report.silenced else {}
                if path not in self.moved:
                    found[path] = _Inspected(list(report.findings), list(report.silenced), [], texts)
        return found

    def _basis(self) -> bytes:
        """What everything that is found depends on, besides the files."""
        options = self.options
        return key_of(
            self.fingerprint,
            stamp_of_rules(options.rules),
            options.everything,
            options.settings,
            self._torch_version(),
            self._pinned_torch(),
        )

    def _open_cache(self, files: Sequence[FoundFile]) -> None:
        """For what it knows of `files`; texts that stand in for others are in no cache."""
        root = self.discovery.root
        folder = self.options.settings.cache_dir or (root / FOLDER if root is not None else None)
        files = [file for file in files if file.display not in self.overlay]
        if folder is None or not files or not self.options.cache:
            return
        self.fingerprint = engine_fingerprint()
        for file in files:
            with contextlib.suppress(SourceError):
                self.digests[file.display] = key_of(self._bytes(file))
        self.cache = Cache(folder)

    def _bytes(self, file: FoundFile) -> bytes:
        stdin = self.options.stdin
        return stdin[1] if stdin is not None and stdin[0] == file.display else read_bytes(file.file)

    def _key_of_result(self) -> bytes:
        return key_of(
            "report",
            self._basis(),
            [file.display for file in self.discovery.reported],
            sorted(self.digests.items()),
            [problem.path for problem in self.discovery.problems],
        )

    def _summary_key(self, display: str) -> bytes:
        kind = "notebook" if display.endswith(SUFFIX) else "summary"
        return key_of(kind, self.fingerprint, self.digests[display])

    def _cached_summaries(self) -> dict[str, Summary]:
        if self.cache is None:
            return {}
        keys = {display: self._summary_key(display) for display in self.digests}
        stored = self.cache.get(set(keys.values()))
        found: dict[str, Summary] = {}
        for display, key in keys.items():
            if key in stored:
                with contextlib.suppress(KeyError, TypeError, AttributeError, ValueError):
                    found[display] = Summary.from_json(stored[key])
        return found

    def _known_report(self) -> Report | None:
        """The report of an earlier run that read just the same, None where there is none."""
        is_whole = len(self.digests) == len(self.discovery.analysed) and not self.discovery.problems
        if self.cache is None or not self.result_key or not is_whole:
            return None
        stored = self.cache.get([self.result_key]).get(self.result_key)
        if stored is None:
            return None
        try:
            texts = {path: self._source(self.reported[path]).raw for path in stored["paths"]}
            return report_from_json(stored, texts) if not self.moved else None
        except (ValueError, KeyError, TypeError, SourceError):
            return None

    def _survey_all(
        self, files: Sequence[FoundFile]
    ) -> tuple[list[Summary | None], list[tuple[Problem, ...]], list[bool]]:
        surveyed = [self._survey(file) for file in files]
        moved = [file.display in self.moved for file in files]
        return [summary for summary, _ in surveyed], [problems for _, problems in surveyed], moved

    def _survey(self, file: FoundFile) -> tuple[Summary | None, tuple[Problem, ...]]:
        try:
            return self._within_limit(lambda: self._surveyed(file))
        except SourceError as error:
            return None, (Problem(file.display, error.message, error.line),)
        except OverTimeError:
            return None, (self._too_long(file, "to be read"),)
        except RecursionError:
            return None, (Problem(file.display, "nests too deep to be read"),)
        except Exception as error:  # noqa: BLE001 - as in the inspection
            return None, (_our_mistake(file, error),)

    def _surveyed(self, file: FoundFile) -> tuple[Summary, tuple[Problem, ...]]:
        source = self._source(file)
        module = parse(source)
        self.kept.put(source, module)
        return survey(module, source.lines), source.faults

    def _stands_in(self, file: FoundFile) -> bool:
        """Whether another text is read in the place of what is on disk."""
        stdin = self.options.stdin
        return file.display in self.overlay or (stdin is not None and stdin[0] == file.display)

    def _within_limit(self, work: Callable[[], Result]) -> Result:
        return within(self.options.settings.time_limit, work, expendable=os.getpid() != self._process)

    def _too_long(self, file: FoundFile, what_for: str) -> Problem:
        seconds = f"{self.options.settings.time_limit:g} s"
        words = f"takes more than {seconds} of processor time {what_for}; exclude it, or raise time-limit"
        return Problem(file.display, words)

    def _inspect_all(self, files: Sequence[FoundFile]) -> list[_Inspected]:
        return [self._inspect_within(file) for file in files]

    def _inspect_within(self, file: FoundFile) -> _Inspected:
        if gc.get_count()[0] > _MOST_UNCOLLECTED:
            gc.collect()  # the program is frozen, and what a file's inspection leaves behind frees itself mostly
        try:
            return self._within_limit(functools.partial(self._inspect_file, file))
        except SourceError as error:  # it changed or vanished since it was surveyed
            problem = Problem(file.display, error.message, error.line)
        except Exception as error:  # noqa: BLE001 - a mistake of ours in one file must not hide the others' findings
            self.inspector.program.abandon()
            problem = _our_mistake(file, error)
        except OverTimeError:
            rule = self.inspector.at_work
            self.inspector.program.abandon()
            by = f" by rule {rule.code}" if rule is not None else ""
            problem = self._too_long(file, f"to be inspected{by}")
        return _Inspected(problems=[problem])

    def _inspect_file(self, file: FoundFile) -> _Inspected:
        source, module = self.kept.take(file.display) or (self._source(file), None)
        if module is None and not self._stands_in(file) and _state(file) != self.seen.get(file.display):
            raise SourceError("has changed while it was checked; check again")
        asked = self.reuse.asking(file.display) if self.reuse is not None else None
        found, problems = self._inspect(source, module, asked)
        kept, quiet = self._suppress(source, file, found)
        texts = {file.display: source.raw} if kept or quiet else {}
        moved = {file.display} & self.moved
        entries = {}
        if asked is not None and self.reuse is not None and not problems and not moved:
            entries[file.display] = self.reuse.entry(asked, kept, quiet)
        return _Inspected(kept, quiet, problems, texts, entries, moved)

    def _torch_version(self) -> tuple[int, int] | None:
        target = self.options.settings.target_torch
        if target is not None:
            return versions.parse(target)
        return project_torch(self.discovery.root) if self.discovery.root is not None else None

    def _pinned_torch(self) -> tuple[int, int] | None:
        if self.options.settings.target_torch is not None:
            return self._torch_version()
        return pinned_torch(self.discovery.root) if self.discovery.root is not None else None

    def _source(self, file: FoundFile) -> SourceFile:
        if file.display in self.overlay:
            return SourceFile(file.display, self.overlay[file.display])
        stdin = self.options.stdin
        if stdin is not None and stdin[0] == file.display:
            return decode_source(stdin[1], file.display)
        data = self.contents[file.display] if file.display in self.contents else read_bytes(file.file)
        if self.digests.get(file.display) not in (None, key_of(data)):
            self.moved.add(file.display)
        return decode_source(data, file.display)

    def _inspect(
        self, source: SourceFile, module: ast.Module | None, asked: Asked | None
    ) -> tuple[list[Located], list[Problem]]:
        try:
            return self.inspector.inspect(source, module, asked.as_program if asked is not None else None)
        except RecursionError:
            self.inspector.program.abandon()
            return [], [Problem(source.path, "nests too deep to be inspected", detail=traceback.format_exc())]

    def _suppress(
        self, source: SourceFile, file: FoundFile, found: Sequence[Located]
    ) -> tuple[list[Finding], list[Silenced]]:
        """Split findings into those that are reported and those a comment silences; judge the comments themselves."""
        kept: list[Finding] = []
        silenced: list[Silenced] = []
        suppressions = Suppressions.read(source)
        if not found and not suppressions.each and not suppressions.malformed:
            return kept, silenced
        switched_off = self.options.settings.ignored_in(file.file)
        used: list[Used] = []
        for finding, lines in found:
            if any(selects(selector, finding.code, finding.name) for selector in switched_off):
                continue
            by = suppressions.silences(finding.code, finding.name, lines)
            if by is not None:
                used.append((by, finding.code, finding.name))
                silenced.append(Silenced(finding, by.line, by.reason))
            elif finding.confidence >= self.options.settings.confidence:
                kept.append(finding)
        kept += self._comments(source, suppressions, used, switched_off)
        return kept, silenced

    def _comments(
        self, source: SourceFile, suppressions: Suppressions, used: Sequence[Used], switched_off: Sequence[str]
    ) -> Iterator[Finding]:
        """Findings of the rules that judge suppression comments."""
        running = [
            rule
            for rule in self.options.rules
            if not any(selects(selector, rule.code, rule.name) for selector in switched_off)
        ]
        ran = {rule.code for rule in running} | {rule.name for rule in running}
        unused = suppressions.unused(ran, used, everything_ran=self.options.everything)
        for rule in running:
            for finding in rule.check_comments(source, unused, suppressions.malformed):
                line = finding.span.line
                if suppressions.silences(finding.code, finding.name, (line, line)) is None:
                    yield finding

    def _progress(self, files: int) -> None:
        self.done += files
        if self.options.progress is not None:
            self.options.progress(self.done, self.total)


def _not_surveyed(file: FoundFile) -> tuple[list[Summary | None], list[tuple[Problem, ...]], list[bool]]:
    return [None], [(_ended(file, "read"),)], [False]


def _not_inspected(file: FoundFile) -> list[_Inspected]:
    return [_Inspected(problems=[_ended(file, "inspected")])]


def _ended(file: FoundFile, what: str) -> Problem:
    words = f"ended two processes when it was to be {what}: out of memory, or of its time limit; exclude it"
    return Problem(file.display, words)


def _our_mistake(file: FoundFile, error: Exception) -> Problem:
    words = f"internal error, which is a bug in perflint: {type(error).__name__}: {error}; --debug shows the traceback"
    return Problem(file.display, words, detail=traceback.format_exc())


def _state(file: FoundFile) -> tuple[int, int, int] | None:
    """Changes with the content of a file. None where it cannot be asked, which is reported when the file is read."""
    try:
        status = file.file.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def selects(selector: str, code: str, name: str) -> bool:
    """Whether a code, the beginning of one, a name or `ALL` means this rule."""
    word = selector.strip()
    return word == "ALL" or word.lower() == name or (bool(word) and code.startswith(word.upper()))


#: Objects made and not freed since the last collection, some 100 bytes each.
_MOST_UNCOLLECTED = 400_000
#: Some 240 MB of trees.
_KEPT_BYTES = 6_500_000


@contextlib.contextmanager
def _gc_paused() -> Iterator[None]:
    """Syntax trees hold no cycles worth collecting, and looking for them costs a third of the run."""
    was_enabled = gc.isenabled()
    gc.disable()
    gc.unfreeze()  # an earlier run of this process froze its program
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


__all__ = ["Options", "check", "check_overlay"]
