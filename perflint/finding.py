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

    In a notebook, `cell` counts its cells from 1 and `line` is the line in it.
    """

    path: str
    line: int
    text: str
    cell: int | None = None


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
    `numerics` is the numerics class: "same bits", "same to rounding" or "changes training".
    """

    title: str
    applicability: Applicability
    edits: tuple[Edit, ...]
    reason: str = ""
    numerics: str = "same bits"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong at one place. Made by `Rule.finding`, which stamps code and name.

    `message` states the cost at this place in one or two sentences; its first sentence stands alone.
    `route` leads from a root of heat to the line (outermost first), empty for code that is not hot.
    `advice` is what to write instead, with the names used here; empty when the message says it all.
    In a notebook, `cell` counts its cells of every type from 1 and `span` is in it.
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


@dataclass(frozen=True)
class Report:
    """The outcome of one run: what every output format prints.

    `texts` holds the source text of every file with a finding (key: finding path).
    `notes` say what was left out, as in "12 known to the baseline".
    """

    findings: tuple[Finding, ...]
    errors: tuple[Problem, ...]
    files: int
    texts: Mapping[str, str] = field(default_factory=dict)
    silenced: tuple[Silenced, ...] = ()
    notes: tuple[str, ...] = ()
