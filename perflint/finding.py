"""What perflint says: findings, their routes and their fixes. Plain frozen data, no syntax trees, no I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Heat(enum.IntEnum):
    """How often code runs, coldest first. `PERIODIC` is code under an every-N guard of a hotter loop."""

    ONCE = 0
    EPOCH = 1
    PERIODIC = 2
    STEP = 3
    MICROBATCH = 4
    SAMPLE = 5

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def phrase(self) -> str:
        """How the heat reads in a message: "runs every step"."""
        return _PHRASES[self]


_PHRASES = {
    Heat.ONCE: "runs once",
    Heat.EPOCH: "runs every epoch",
    Heat.PERIODIC: "runs every few steps",
    Heat.STEP: "runs every step",
    Heat.MICROBATCH: "runs every micro-batch",
    Heat.SAMPLE: "runs for every sample",
}


class Confidence(enum.IntEnum):
    """How sure the analysis is that the finding is right."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2

    @property
    def label(self) -> str:
        return self.name.lower()


class Impact(enum.IntEnum):
    """What the finding is worth when it is right."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2

    @property
    def label(self) -> str:
        return self.name.lower()


class Paid(enum.IntEnum):
    """How often a step that trains pays for a finding: what orders findings of one impact.

    `ASIDE` is paid by no such step: in an evaluation, in generation, once in an epoch, or by others' programs alone.
    """

    ASIDE = 0
    ONCE = 1
    REPEATEDLY = 2
    DOZENS = 3


class Applicability(enum.IntEnum):
    """`SHOWN` is for reading only, `UNSAFE` needs a person's look, `SAFE` is proven the same from the source."""

    SHOWN = 0
    UNSAFE = 1
    SAFE = 2

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A region of a file. Lines and columns count from 1, columns in characters, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a route, or a related place: `path:line` and the source text or words that say what is there.

    In a notebook, `cell` counts its cells from 1 and `line` is the line in it. `code` is the rule that found the same
    defect there: the finding's own, where one defect has two places, or that of a finding which reports print with
    this one. It is empty for any other place.
    """

    path: str
    line: int
    text: str
    cell: int | None = None
    code: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text in `span` by `text`. An empty span inserts. Newlines in `text` are `\\n`.

    In a notebook, `cell` counts its cells from 1 and `span` is in it.
    """

    span: Span
    text: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """A titled, non-overlapping group of edits of one file.

    `title` is a verb phrase. `reason` says why a fix is not SAFE ("the device may be MPS").
    `numerics` is the numerics class: "same bits", "same to rounding" or "changes training"; empty where nobody
    has said.
    """

    title: str
    applicability: Applicability
    edits: tuple[Edit, ...]
    reason: str = ""
    numerics: str = ""


class Verdict(enum.Enum):
    """What an observed run says about a finding: seen to happen, the line ran without it, or the line never ran."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_REACHED = "not reached"


@dataclass(frozen=True, slots=True)
class Observed:
    """What an observed run showed at a finding's place, in its steady steps.

    `per_step` is how often it happened, `moved` the bytes copied or allocated, both means per step. `gain_ms` is what
    the step would be shorter without these waits and `share` (0 to 1) the part of the step that is, on `hardware`
    ("H100"); both are modelled, and None where nothing waits. `hidden`: the waits cost nothing as long as others are
    there. `by_rule` is False for a finding that only the observation made.
    """

    verdict: Verdict
    per_step: float = 0.0
    moved: float = 0.0
    gain_ms: float | None = None
    share: float | None = None
    hidden: bool = False
    hardware: str = ""
    by_rule: bool = True

    @property
    def phrase(self) -> str:
        """How it reads after "observed:": "3 times a step, 4.1 % of the step on an H100 (modelled)"."""
        if self.verdict is Verdict.REFUTED:
            return "the line ran, but this did not happen in the observed steps"
        if self.verdict is Verdict.NOT_REACHED:
            return "not reached by the observed run"
        parts = [often(self.per_step)]
        if self.share is None:
            parts += [f"{amount(self.moved)} per step"] if self.moved else []
        elif self.hidden:
            parts.append(f"no cost on {with_article(self.hardware)} while other synchronizations hide it (modelled)")
        else:
            parts.append(f"{percent(self.share)} of the step on {with_article(self.hardware)} (modelled)")
        return ", ".join(parts)


def often(per_step: float) -> str:
    """`3 times a step`; what happens less than once a step is told by its mean."""
    if per_step == 1:
        return "once per step"
    shown = (
        f"{per_step:.0f}" if per_step == int(per_step) else f"{per_step:.2g}" if per_step < 10 else f"{per_step:.0f}"
    )
    return f"{shown} times per step"


def percent(share: float) -> str:
    """`4.1 %`, `under 0.1 %`."""
    return "under 0.1 %" if share < 0.001 else f"{share * 100:.1f} %"


def amount(size: float) -> str:
    """`812 bytes`, `4.2 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def with_article(hardware: str) -> str:
    """`an H100`, `a T4`, as the names are spoken."""
    return f"{'an' if hardware[:1] in set('AEFHILMNORSX') else 'a'} {hardware}"


class Part(enum.Enum):
    """The part of the program that a finding costs; `UNSEEN` is code of which no program in sight trains."""

    TRAINING = "training"
    DATA = "data loading"
    EVALUATION = "evaluation"
    UNSEEN = "no program in sight"
    OTHER = "other"

    @property
    def rank(self) -> int:
        """What training pays is read before what an evaluation pays, and that before what no program here runs."""
        return {Part.TRAINING: 0, Part.DATA: 0, Part.UNSEEN: 2}.get(self, 1)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong at one place. Made by `Rule.finding`, which stamps code and name.

    `message` states the cost at this place in one or two sentences; its first sentence stands alone.
    `route` leads from a root of heat to the line (outermost first), empty for code that is not hot.
    `advice` is what to write instead, with the names used here; empty when the message says it all.
    In a notebook, `cell` counts its cells of every type from 1 and `span` is in it.
    `observed` is what an observed run showed there, None where there is no evidence for or against.
    `block` is the expression whose finding this one belongs to: the first wait of a block, say, after which the others
    cost little. None for a finding that stands alone, or that is the first itself. Reports print a block once.
    `part` is the part of the program that makes it hot: that of the outermost step of the route.
    `behind` are the places in other files one of which is that first wait, empty where it is in the finding's own file;
    `is_next` says that those are waits to fix as well, after which this one waits in their place.
    `paid` says how often a step that trains pays for it; reports print what is paid more often first.
    """

    code: str
    name: str
    path: str
    span: Span
    message: str
    confidence: Confidence
    impact: Impact
    heat: Heat = Heat.ONCE
    route: tuple[Hop, ...] = ()
    fix: Fix | None = None
    advice: str = ""
    related: tuple[Hop, ...] = ()
    cell: int | None = None
    observed: Observed | None = None
    block: Span | None = None
    behind: tuple[Hop, ...] = ()
    is_next: bool = False
    part: Part = Part.OTHER
    paid: Paid = Paid.ONCE

    @property
    def sort_key(self) -> tuple[str, Span, str, str]:
        return (self.path, self.span, self.code, self.message)


@dataclass(frozen=True, slots=True)
class Problem:
    """One entry of `errors`: input or tool at fault. `line` and `column` are None where there is no position."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    detail: str = ""  # a traceback, shown under --debug only


@dataclass(frozen=True, slots=True)
class Silenced:
    """A finding a comment silenced, and where the comment stands."""

    finding: Finding
    line: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """The observation that findings were compared with. Milliseconds are modelled for `hardware` ("H100").

    `changed` is the number of functions whose evidence is ignored, because their text is not what was observed.
    """

    device: str
    hardware: str
    steps: int
    waits: float
    launches: float
    step_ms: float | None = None
    without_waits_ms: float | None = None
    bound_by: str | None = None
    changed: int = 0


@dataclass(frozen=True)
class Report:
    """The outcome of one run: what every output format prints.

    `texts` holds the source text of every file with a finding (key: finding path).
    `notes` say what was left out, as in "12 known to the baseline".
    `observation` is the run that findings were compared with, None where none was given.
    """

    findings: tuple[Finding, ...]
    errors: tuple[Problem, ...]
    files: int
    texts: Mapping[str, str] = field(default_factory=dict)
    silenced: tuple[Silenced, ...] = ()
    notes: tuple[str, ...] = ()
    observation: ObservedRun | None = None
