"""What an observed run says about findings: confirmed, refuted or not reached, and the waits that no rule found.

A rule declares what an observation shows where it is right (`Rule.claims`). A line of the observation belongs to the
finding that its innermost project expression lies in; if there is none, to the finding on the nearest line of its
stack that has not been seen to happen at its own line. Evidence holds as long as the text of the innermost function
is the one that was observed, wherever in the file it has moved to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.engine.silencing import holding, is_off
from perflint.errors import SourceError
from perflint.finding import (
    Confidence,
    Finding,
    Heat,
    Hop,
    Impact,
    Observed,
    ObservedRun,
    Report,
    Silenced,
    Span,
    Verdict,
)
from perflint.observe.conditional import holds, innermost_part
from perflint.observe.model.cost import Costs
from perflint.observe.model.hardware import hardware
from perflint.observe.today import Today
from perflint.observe.trace import Event, Kind, LineCount, Observation, Phase, Site
from perflint.rule_api.rule import Rule
from perflint.syntax.read import read_source

if TYPE_CHECKING:
    from perflint.engine.options import Options
    from perflint.project.discovery import Discovery
    from perflint.rule_api.rule import Claim

#: What a line of the observation is called by the model: its site, kind and phase.
_Key = tuple[int, Kind, Phase]
#: From so much of a step on, waits that no rule found are of high, or of medium impact.
_HIGH, _MEDIUM = 0.02, 0.005
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Joined:
    """A report with its evidence. `found` are the findings that only the observation made, also part of `report`.

    `codes` has the rule that each line of the observation belongs to, by index into `Observation.lines`.
    """

    report: Report
    found: tuple[Finding, ...]
    codes: Mapping[int, str]


def join(
    report: Report,
    observation: Observation,
    rules: Iterable[type[Rule]],
    text_of: Callable[[str], str | None],
    is_wanted: Callable[[str, type[Rule]], bool],
) -> Joined:
    """`report` with what `observation` says about its findings.

    `rules` are those that ran, `text_of` gives the text of a file (None where there is none), and `is_wanted` says
    whether findings of a rule are reported in a file. Comments silence what only the observation found as they do
    other findings. A finding in a notebook has no evidence: nothing observes notebooks.
    """
    join = _Join(observation, {rule.code: rule for rule in rules}, text_of)
    join.match([*report.findings, *(one.finding for one in report.silenced)])
    findings = [dataclasses.replace(one, observed=join.evidence(one)) for one in report.findings]
    adopted = [one for one in join.adopted() if is_wanted(one.path, join.rules[one.code])]
    found, silenced, used = _silence(adopted, join.files)
    findings = [one for one in findings if not _calls_unused(one, join.rules, used)]
    joined = dataclasses.replace(
        report,
        findings=tuple(sorted([*findings, *found], key=lambda one: one.sort_key)),
        texts=_MoreTexts(report.texts, {one.path: join.files.text(one.path) for one in found}),
        silenced=(*report.silenced, *silenced),
        notes=(*report.notes, *join.notes()),
        observation=join.run(),
    )
    return Joined(joined, tuple(found), join.codes())


def _silence(
    findings: Iterable[Finding], files: Today
) -> tuple[list[Finding], list[Silenced], set[tuple[str, int, int]]]:
    """Findings that are reported, those that a comment silences, and those comments: path, line and column."""
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    used: set[tuple[str, int, int]] = set()
    for finding in findings:
        by = files.suppression(finding)
        if by is None:
            kept.append(finding)
        else:
            silenced.append(Silenced(finding, by.line, by.reason))
            used.add((finding.path, by.line, by.column))
    return kept, silenced, used


def _calls_unused(finding: Finding, rules: Mapping[str, type[Rule]], used: Collection[tuple[str, int, int]]) -> bool:
    """Whether a finding says that a comment silences nothing, which silences what the observation found."""
    rule = rules.get(finding.code)
    about_comments = rule is not None and rule.check_comments is not Rule.check_comments
    return about_comments and (finding.path, finding.span.line, finding.span.column) in used


@dataclass(frozen=True, slots=True)
class _Happening:
    """One line of the observation, and where its expression and its project frames are today, innermost first."""

    index: int
    count: LineCount
    site: Site
    span: Span
    frames: tuple[tuple[str, int], ...]


@dataclass
class _Matched:
    """What was seen to happen at a finding: at its own line, or below a call on it."""

    direct: list[_Happening] = field(default_factory=list)
    below: list[_Happening] = field(default_factory=list)

    @property
    def all(self) -> list[_Happening]:
        return self.direct or self.below


class _Join:
    def __init__(
        self, observation: Observation, rules: Mapping[str, type[Rule]], text_of: Callable[[str], str | None]
    ) -> None:
        self.observation = observation
        self.rules = rules
        self.files = Today(observation, text_of)
        self.matched: dict[int, _Matched] = {}
        self._findings: list[Finding] = []
        self._taken: dict[int, Finding] = {}
        events = [] if observation.step is None else observation.step.events
        self._on = hardware(observation.hardware)
        self._costs: Costs[_Key] = Costs(events, self._on, _key_of)
        self._happenings = list(self._located())
        self._ran = self._ran_today()

    def _located(self) -> Iterator[_Happening]:
        for index, count in enumerate(self.observation.lines):
            site = self.observation.sites[count.site]
            span = self._span(site)
            if span is None:
                continue
            frames = [(frame.path, frame.line) for frame in site.stack if not frame.library]
            today = [(path, self.files.line(path, line)) for path, line in reversed(frames)]
            kept = tuple((path, line) for path, line in today if line is not None)
            yield _Happening(index, count, site, span, kept)

    def _span(self, site: Site) -> Span | None:
        line = self.files.line(site.path, site.line)
        if line is None:
            return None
        return Span(line, site.column, line + site.end_line - site.line, site.end_column)

    def _ran_today(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for path, lines in self.observation.ran.items():
            today = (self.files.line(path, line) for line in lines)
            found[path] = {line for line in today if line is not None}
        return found

    # Matching

    def match(self, findings: Sequence[Finding]) -> None:
        """Give each line of the observation to the findings that it confirms."""
        self._findings = [one for one in findings if one.cell is None and self._claim(one) is not None]
        by_path: dict[str, list[Finding]] = {}
        for one in self._findings:
            by_path.setdefault(one.path, []).append(one)
        left = [one for one in self._happenings if not self._match_directly(one, by_path.get(one.site.path, ()))]
        for happening in left:
            self._match_below(happening, by_path)

    def _claim(self, finding: Finding) -> Claim | None:
        rule = self.rules.get(finding.code)
        return None if rule is None else rule.claims

    def _fits(self, happening: _Happening, finding: Finding) -> bool:
        claim = self._claim(finding)
        return (
            claim is not None
            and happening.count.kind in claim.kinds
            and (happening.count.waits or not claim.waits)
            and happening.count.total > 0
        )

    def _match_directly(self, happening: _Happening, findings: Iterable[Finding]) -> bool:
        here = [one for one in findings if _share_lines(one.span, happening.span) and self._fits(happening, one)]
        # Where several stand on the line, columns decide.
        closer = [one for one in here if _share_columns(one.span, happening.span)]
        for finding in closer or here:
            self.matched.setdefault(id(finding), _Matched()).direct.append(happening)
            self._taken.setdefault(happening.index, finding)
        return bool(here)

    def _match_below(self, happening: _Happening, by_path: Mapping[str, Sequence[Finding]]) -> None:
        for path, line in happening.frames:
            here = [
                one
                for one in by_path.get(path, ())
                if one.span.line <= line <= one.span.end_line and self._fits(happening, one)
            ]
            # What was seen to happen at the finding's own line is what it meant.
            here = [one for one in here if id(one) not in self.matched or not self.matched[id(one)].direct]
            if here:
                for finding in here:
                    self.matched.setdefault(id(finding), _Matched()).below.append(happening)
                    self._taken.setdefault(happening.index, finding)
                return

    # Evidence

    def evidence(self, finding: Finding) -> Observed | None:
        """None where the rule claims nothing that can be seen, where the function has changed since, and where only a
        part of a line holds the finding that may have been left out."""
        if finding.cell is not None or self._claim(finding) is None:
            return None
        matched = self.matched.get(id(finding))
        if matched is not None and matched.all:
            return self._confirmed(matched.all)
        span = finding.span
        if not self.observation.ran:
            return None  # the run recorded no coverage
        if not self.files.is_observed(finding.path, span.line) and self.files.is_changed(finding.path, span.line):
            return None
        ran = self._ran.get(finding.path, set())
        # An expression ran when any of its lines did: which one is marked differs between versions of Python.
        did_run = any(line in ran for line in range(span.line, span.end_line + 1))
        if did_run and self._may_be_left_out(finding):
            return None
        return Observed(Verdict.REFUTED if did_run else Verdict.NOT_REACHED)

    def _may_be_left_out(self, finding: Finding) -> bool:
        """Whether the finding is on a part of a line that is decided about there, and nothing shows that it ran."""
        part = innermost_part(self.files.conditional(finding.path), finding.span)
        if part is None:
            return False
        return not any(one.site.path == finding.path and holds(part, one.span) for one in self._happenings)

    def _confirmed(self, happenings: Sequence[_Happening], *, by_rule: bool = True) -> Observed:
        steps = max(self.observation.steps, 1)
        waiting = [one for one in happenings if one.count.waits]
        shown = waiting or happenings
        per_step = sum(one.count.total for one in shown) / steps
        moved = sum(one.count.bytes for one in shown if one.count.kind in _MOVING) / steps
        keys = [_key(one.count) for one in waiting]
        kept = sum(len(self._costs.waits.get(key, ())) for key in dict.fromkeys(keys))
        if not kept:
            # Nothing waits, or not in the step that was kept.
            return Observed(Verdict.CONFIRMED, per_step, moved, hardware=self._on.name, by_rule=by_rule)
        # What happens in some steps only costs the mean step less than the one that was kept.
        gain = self._costs.alone_ms(keys) * min(per_step / kept, 1.0)
        share = self._costs.time.share(gain)
        is_hidden = share < 0.001 <= self._costs.time.share(self._costs.last_ms(keys))
        return Observed(Verdict.CONFIRMED, per_step, moved, gain, share, is_hidden, self._on.name, by_rule)

    # What no rule found

    def adopted(self) -> Iterator[Finding]:
        """A finding for every place that waited in most steps and that no finding claims."""
        places: dict[tuple[str, Span, str], list[_Happening]] = {}
        for one in self._happenings:
            rule = self._adopting(one)
            if rule is not None and one.index not in self._taken:
                places.setdefault((one.site.path, one.span, rule.code), []).append(one)
        for (path, span, code), happenings in places.items():
            steps: dict[int, int] = {}
            for one in happenings:
                for step, count in one.count.counts.items():
                    steps[step] = steps.get(step, 0) + count
            if 2 * sum(count > 0 for count in steps.values()) > self.observation.steps:
                yield self._found(path, span, self.rules[code], happenings)

    def _adopting(self, happening: _Happening) -> type[Rule] | None:
        if not happening.count.waits:
            return None
        kind = happening.count.kind
        return next(
            (rule for rule in self.rules.values() if rule.claims is not None and kind in rule.claims.adopts), None
        )

    def _found(self, path: str, span: Span, rule: type[Rule], happenings: Sequence[_Happening]) -> Finding:
        evidence = self._confirmed(happenings, by_rule=False)
        share = evidence.share or 0.0
        most = max(happenings, key=lambda one: one.count.total)
        inside = _called(most.site)
        where = f", in `{inside}`" if inside else ""
        backward = " in its backward pass" if most.count.in_backward else ""
        return Finding(
            code=rule.code,
            name=rule.name,
            path=path,
            span=span,
            message=(
                f"`{self._source(path, span)}`{backward} {_DOES[most.count.kind]}{where} in the observed run; "
                "this rule has no pattern for it."
            ),
            confidence=Confidence.HIGH,
            impact=Impact.HIGH if share >= _HIGH else Impact.MEDIUM if share >= _MEDIUM else Impact.LOW,
            heat=Heat.STEP,
            route=self._route(most),
            observed=evidence,
        )

    def _source(self, path: str, span: Span) -> str:
        """The expression, or as much of its first line as a message has room for."""
        lines = self.files.text(path).splitlines()
        if span.line > len(lines):
            return f"line {span.line}"
        line = lines[span.line - 1]
        end = span.end_column - 1 if span.end_line == span.line else len(line)
        shown = line[span.column - 1 : end].strip() or line.strip()
        shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
        return shown.replace("`", "'")

    def _route(self, happening: _Happening) -> tuple[Hop, ...]:
        """The observed stack inside the project, without the line itself."""
        hops = []
        for path, line in reversed(happening.frames):
            lines = self.files.text(path).splitlines()
            if (path, line) != (happening.site.path, happening.span.line) and line <= len(lines):
                hops.append(Hop(path, line, lines[line - 1].strip()))
        return tuple(hops)

    # The run

    def codes(self) -> dict[int, str]:
        """The rule of each line of the observation: of the finding that it confirms."""
        return {index: finding.code for index, finding in self._taken.items()}

    def run(self) -> ObservedRun:
        seen, time = self.observation, self._costs.time
        totals = seen.totals
        is_kept = seen.step is not None
        return ObservedRun(
            device=seen.device,
            hardware=self._on.name,
            steps=seen.steps,
            waits=sum(one.waits for one in totals) / max(len(totals), 1),
            launches=sum(one.launches for one in totals) / max(len(totals), 1),
            step_ms=time.step_ms if is_kept else None,
            without_waits_ms=time.without_waits_ms if is_kept else None,
            bound_by=time.bound_by if is_kept else None,
            changed=sum(map(len, self.files.changed.values())),
        )

    def notes(self) -> Iterator[str]:
        paths = set(self.observation.ran) | {site.path for site in self.observation.sites}
        if paths and not any(self.files.text(path) for path in paths):
            yield (
                "the whole observation: none of its files is here (was it made for other code, or in another folder?)"
            )
            return
        changed = sum(map(len, self.files.changed.values()))
        if changed:
            functions = "1 function" if changed == 1 else f"{changed} functions"
            yield f"evidence about {functions} changed since the observation (`perflint observe` renews it)"


_MOVING = frozenset({"to-host", "to-device", "host-allocation"})
_DOES: Mapping[Kind, str] = {
    "read": "reads a device tensor on the host and synchronizes",
    "shape": "synchronizes to learn the size of its result",
    "to-host": "copies to the host and synchronizes",
    "to-device": "copies to the device and synchronizes",
    "synchronize": "synchronizes",
    "host-allocation": "allocates on the host",
    "launch": "synchronizes",
}


def _called(site: Site) -> str:
    """The library's function that the site calls; empty where the site does it itself."""
    functions = ""
    for frame in reversed(site.stack):
        if not frame.library:
            break
        functions = frame.function
    return functions


def _key(count: LineCount) -> _Key:
    return count.site, count.kind, count.phase


def _key_of(event: Event) -> _Key:
    return event.site, event.kind, event.phase


def _share_lines(one: Span, other: Span) -> bool:
    return one.line <= other.end_line and other.line <= one.end_line


def _share_columns(one: Span, other: Span) -> bool:
    """Whether one expression is part of the other; a site of unknown columns is all of its line."""
    return (one.line, one.column) < (other.end_line, other.end_column) and (other.line, other.column) < (
        one.end_line,
        one.end_column,
    )


class _MoreTexts(Mapping[str, str]):
    """The texts of a report, which may be packed, and those of the files that only the observation named."""

    def __init__(self, first: Mapping[str, str], more: Mapping[str, str]) -> None:
        self._first = first
        self._more = {path: text for path, text in more.items() if path not in first}

    def __getitem__(self, path: str) -> str:
        return self._more[path] if path in self._more else self._first[path]

    def __contains__(self, path: object) -> bool:
        return path in self._more or path in self._first

    def __iter__(self) -> Iterator[str]:
        return iter([*self._first, *self._more])

    def __len__(self) -> int:
        return len(self._first) + len(self._more)


def text_on_disk(path: str) -> str | None:
    """The text of a source file as analysis reads it, None where it cannot be read."""
    try:
        return read_source(Path(path), path).text
    except SourceError:
        return None


def wanted_in(discovery: Discovery, options: Options) -> Callable[[str, type[Rule]], bool]:
    """Whether findings of a rule are wanted in a file: a reported one, whose configuration lets the rule run in it."""
    reported = {file.display: file for file in discovery.reported}

    def is_wanted(path: str, rule: type[Rule]) -> bool:
        if path not in reported:
            return False
        here = holding(reported[path], options)
        return rule.code in here.codes and not is_off(
            here.settings.ignored_in(reported[path].file), rule.code, rule.name
        )

    return is_wanted
