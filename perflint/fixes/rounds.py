"""Rounds of fixes over all files of a run, each proven by checking the result again. Pure but for that check.

A fix is kept when the result parses, the finding it was for is gone, and no finding appears that was not there before
(one with a fix of its own may appear for as long as that fix then removes it). Any other is dropped, with the reason.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from perflint.errors import SourceError
from perflint.finding import Finding, Fix, Report
from perflint.fixes.apply import apply_fixes
from perflint.fixes.second_reading import second_reading
from perflint.fixes.unused_imports import without_unused_imports
from perflint.fixes.width import broken_at
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse

#: After so many rounds something goes in circles.
ROUNDS = 10
#: How often everything is begun anew without a fix that proved wrong later on.
_RESTARTS = 5

#: Checks files whose texts (by path) stand in for what is on disk; findings of other files are not needed.
Recheck: TypeAlias = Callable[[Mapping[str, str]], Report]
_Key: TypeAlias = "tuple[str, str, str]"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A fix that was not made, and why."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """One round in one file: the text before it, and the findings whose edits, placed in this text, were made."""

    text: str
    taken: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file that fixes changed, its new text, the findings they were for, and the way there."""

    source: SourceFile
    text: str
    taken: tuple[Finding, ...]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """`files` are the changed ones, by path. `findings` are those left in these files, `dropped` what was not kept.

    Both stand where they are in the new text.
    """

    files: tuple[FixedFile, ...]
    dropped: tuple[Dropped, ...]
    findings: tuple[Finding, ...]
    rounds: int


def fix_files(
    sources: Mapping[str, SourceFile],
    findings: Iterable[Finding],
    recheck: Recheck,
    usable: Callable[[Fix], bool],
    width: Callable[[str], int] | None = None,
) -> Outcome:
    """Make the usable fixes of `findings` in `sources`, both by path, in rounds until nothing changes.

    `width` gives the longest line of a file, by its path; without it lines become as long as fixes make them.
    """
    session = _Session(sources, list(findings), recheck, usable, width)
    for _ in range(_RESTARTS):
        if not session.attempt():
            break
    else:
        session.give_up()
    return session.outcome()


def _key(finding: Finding) -> _Key:
    """What stays the same about a finding when lines move."""
    return (finding.path, finding.code, finding.message)


@dataclass(slots=True)
class _File:
    """One file in the middle of a session."""

    source: SourceFile
    before: Counter[str]
    findings: list[Finding]
    taken: list[Finding] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    #: By code of a finding that was let appear, the findings whose fixes made it appear.
    owed: dict[str, list[Finding]] = field(default_factory=dict)
    last: list[Finding] = field(default_factory=list)
    last_but_one: list[Finding] = field(default_factory=list)


class _Session:
    def __init__(
        self,
        sources: Mapping[str, SourceFile],
        findings: Sequence[Finding],
        recheck: Recheck,
        usable: Callable[[Fix], bool],
        width: Callable[[str], int] | None = None,
    ) -> None:
        self.width = width
        self.sources = sources
        self.findings = findings
        self.recheck = recheck
        self.usable = usable
        self.dropped: dict[_Key, str] = {}
        #: Tried one by one, because something came of trying them together.
        self.suspects: set[_Key] = set()
        self.files: dict[str, _File] = {}
        self.unsettled: set[str] = set()
        self.rounds = 0

    def attempt(self) -> set[str]:
        """All rounds from the beginning. Returns the files in which that showed kept fixes to be wrong."""
        self.files = {}
        for path, source in self.sources.items():
            own = [finding for finding in self.findings if finding.path == path]
            self.files[path] = _File(source, Counter(finding.code for finding in own), own)
        active = set(self.files)
        for number in range(ROUNDS):
            self.rounds = number
            active = self._round(active)
            if not active:
                break
        for path in active:
            self._end_fight(self.files[path])
        self.unsettled = active | {path for path, file in self.files.items() if not self._is_settled(file)}
        return self.unsettled

    def give_up(self) -> None:
        """Leave the files alone in which there is no end of it."""
        for path in self.unsettled:
            file = self.files[path]
            for finding in file.taken:
                self.drop(finding, "the fixes of this file do not converge")
            file.source = self.sources[path]
            file.findings = [finding for finding in self.findings if finding.path == path]

    def _end_fight(self, file: _File) -> None:
        codes = sorted({finding.code for finding in (*file.last, *file.last_but_one)})
        who = f"{' and '.join(codes)} undo each other" if len(codes) > 1 else f"{codes[0]} does not converge"
        for finding in file.last:
            self.drop(finding, f"{who}: stopped after {ROUNDS} rounds")

    def _is_settled(self, file: _File) -> bool:
        """Hold what was let appear against what is there in the end."""
        after = Counter(finding.code for finding in file.findings)
        settled = True
        for code, causes in file.owed.items():
            if after[code] <= file.before[code]:
                continue
            settled = False
            for cause in causes:
                if len(causes) == 1 or _key(cause) in self.suspects:
                    self.drop(cause, self._why_not(cause.path, code))
                else:
                    self.suspects.add(_key(cause))
        return settled

    def _why_not(self, path: str, code: str) -> str:
        reasons = (reason for (where, what, _), reason in self.dropped.items() if (where, what) == (path, code))
        reason = next(reasons, None)
        return f"it would cause {code}" + (f", which stays because {reason}" if reason else "")

    def outcome(self) -> Outcome:
        changed = {path: file for path, file in sorted(self.files.items()) if file.source is not self.sources[path]}
        left = [finding for _, file in sorted(self.files.items()) for finding in file.findings]
        return Outcome(
            files=tuple(
                FixedFile(self.sources[path], file.source.text, tuple(file.taken), tuple(file.steps))
                for path, file in changed.items()
            ),
            dropped=tuple(
                Dropped(finding, self.dropped[_key(finding)])
                for finding in left
                if finding.fix is not None and self.usable(finding.fix) and _key(finding) in self.dropped
            ),
            findings=tuple(finding for file in changed.values() for finding in file.findings),
            rounds=self.rounds,
        )

    def drop(self, finding: Finding, reason: str) -> None:
        self.dropped.setdefault(_key(finding), reason)

    def candidates(self, file: _File) -> list[Finding]:
        return [
            finding
            for finding in file.findings
            if finding.fix is not None and self.usable(finding.fix) and _key(finding) not in self.dropped
        ]

    # One round.

    def _round(self, active: Iterable[str]) -> set[str]:
        """Make what fixes there are. Returns the files that changed."""
        trials = {}
        for path in sorted(active):
            trial = _Trial(self, self.files[path])
            if trial.propose():
                trials[path] = trial
        waiting = dict(trials)
        while waiting:
            report = self.recheck({path: trial.text for path, trial in waiting.items()})
            waiting = {path: trial for path, trial in waiting.items() if not trial.judge(path, report)}
        changed = {path for path, trial in trials.items() if trial.accepted}
        for path in changed:
            trials[path].keep()
        return changed


class _Trial:
    """The fixes of one file in one round. All are tried at once; when that goes wrong, parts of them, ever smaller."""

    def __init__(self, session: _Session, file: _File) -> None:
        self.session = session
        self.file = file
        self.base = file.source
        self.accepted: list[Finding] = []
        self.findings: list[Finding] = file.findings
        self.text = self.base.text
        self._good = self.base.text
        self._tried: list[Finding] = []
        self._queue: deque[list[Finding]] = deque()
        #: Findings let appear, by code: how many the accepted fixes brought about, and which fixes did.
        self._debts: Counter[str] = Counter()
        self._owed: dict[str, list[Finding]] = {}

    def propose(self) -> bool:
        """Whether there is anything to try: text that parses and differs."""
        together: list[Finding] = []
        apart: list[Finding] = []
        for finding in self.session.candidates(self.file):
            (apart if _key(finding) in self.session.suspects else together).append(finding)
        self._queue.extend([together, *([finding] for finding in apart)])
        return self._next()

    def _next(self) -> bool:
        """Make up the next text to try."""
        while self._queue:
            group = self._queue.popleft()
            taken = self._taken(group)
            if not taken:
                continue
            text = self._write([*self.accepted, *taken])
            fault = self._fault(text)
            if fault is None and text != self._good:
                self.text, self._tried = text, taken
                return True
            if fault is not None:
                self._split(taken, fault)
        return False

    def _taken(self, group: list[Finding]) -> list[Finding]:
        """Those of `group` that can be made together, besides what is accepted."""
        fixes = {id(finding.fix): finding for finding in group}
        applied = apply_fixes(self.base, [finding.fix for finding in (*self.accepted, *group) if finding.fix])
        for fix in applied.refused:
            self.session.drop(fixes[id(fix)], "its edits are outside of the file or overlap")
        made = {id(fix) for fix in applied.taken}
        if any(id(finding.fix) not in made for finding in self.accepted):
            return []  # it would push aside what is accepted; its turn comes in the next round
        return [finding for finding in group if id(finding.fix) in made]

    def _write(self, findings: Sequence[Finding]) -> str:
        text = apply_fixes(self.base, [finding.fix for finding in findings if finding.fix]).text
        text = without_unused_imports(self.base, text)
        width = self.session.width
        return text if width is None else broken_at(self.base, text, width(self.base.path))

    def _fault(self, text: str) -> str | None:
        """What is wrong with the text by itself."""
        source = SourceFile(self.base.path, text, encoding=self.base.encoding, bom=self.base.bom)
        try:
            parse(source)
            source.encode(text)
        except SourceError as error:
            return f"the result {error.message}"
        fault = second_reading(self.base.text, text)
        return None if fault is None else f"the result {fault}"

    def _split(self, group: list[Finding], reason: str) -> None:
        """Try a group that went wrong in two halves; a single one is dropped, unless it is only wrong with others."""
        if len(group) > 1:
            middle = len(group) // 2
            self._queue.extendleft((group[middle:], group[:middle]))
        elif not self.accepted:
            self.session.drop(group[0], reason)
        # Beside accepted ones: it is tried again in the next round, on what they leave.

    def judge(self, path: str, report: Report) -> bool:
        """Hold the tried text's findings against those before. True when nothing is left to try."""
        found = [finding for finding in report.findings if finding.path == path]
        errors = [problem.message for problem in report.errors if problem.path == path]
        debts: Counter[str] = Counter()
        fault = errors[0] if errors else self._regression(found, debts)
        if fault is None:
            self.accepted += self._tried
            self.findings, self._good = found, self.text
            self._debts += debts
            for code in debts:
                self._owed.setdefault(code, []).extend(self._tried)
        else:
            self._split(self._tried, fault)
        return not self._next()

    def _regression(self, found: Sequence[Finding], debts: Counter[str]) -> str | None:
        """What the tried fixes leave or bring about that they should not.

        `debts` is given the number of findings, by code, that they bring about and that fixes of their own remove.
        """
        allowed = Counter(finding.code for finding in self.file.findings) + self._debts
        fixed = Counter(finding.code for finding in (*self.accepted, *self._tried))
        allowed.subtract(fixed)
        for code, number in Counter(finding.code for finding in found).items():
            if number <= allowed[code]:
                continue
            if code in fixed and number <= allowed[code] + fixed[code]:
                left = next(finding for finding in reversed(found) if finding.code == code)
                return (
                    f"after the change {code} would be reported as often as before (line {left.span.line}: "
                    f"{left.message.rstrip('.')}), so it takes away nothing of what it was for"
                )
            own = [finding for finding in found if finding.code == code]
            if not all(finding.fix is not None and self.session.usable(finding.fix) for finding in own):
                return f"it would cause {code}: {own[-1].message}"
            debts[code] = number - allowed[code]
        return None

    def keep(self) -> None:
        """Make the accepted text the file's own."""
        file = self.file
        file.source = SourceFile(self.base.path, self._good, encoding=self.base.encoding, bom=self.base.bom)
        file.findings = self.findings
        file.taken += self.accepted
        file.steps.append(Step(self.base.text, tuple(self.accepted)))
        file.last, file.last_but_one = self.accepted, file.last
        for code, causes in self._owed.items():
            file.owed.setdefault(code, []).extend(causes)
