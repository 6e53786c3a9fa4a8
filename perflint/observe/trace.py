"""What a recorder hands over: the operations of one steady step in order, and counts per line over all steady steps.

Plain data, no torch. Paths are those of `check`: from the working directory, with forward slashes. Lines and columns
count from 1, columns in characters, ends are exclusive. Times are microseconds, sizes bytes.

A *steady* step is one after the warm-up. `Observation.ran` is the recorder's coverage of the project's files during
steady steps: without it no finding can be called refuted or not reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Kind = Literal["read", "shape", "to-host", "to-device", "synchronize", "host-allocation", "launch"]
"""What an operation did, as far as host and device meet:

- `read`: a value of a device tensor was used on the host (`.item()`, `bool`, `float`, formatting)
- `shape`: the host waited for the size of a result (`nonzero`, a mask, `unique`)
- `to-host`, `to-device`: a copy between the two
- `synchronize`: an explicit wait (`torch.cuda.synchronize()`, `Event.synchronize`, a library's error check)
- `host-allocation`: a tensor made on the host, and moved to the device in the same step
- `launch`: anything else that ran on the device
"""
Phase = Literal["forward", "backward", "optimizer", "data", "other"]

KINDS: tuple[Kind, ...] = get_args(Kind)
PHASES: tuple[Phase, ...] = get_args(Phase)


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on the stack: `line` of `path` is where `function` was when it called on.

    `library` frames are not of the project; their `path` is as Python names it, and they are for reading only.
    """

    path: str
    line: int
    function: str
    library: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """An expression of the project that made something happen: the innermost place that is the project's own.

    `stack` is outermost first. It ends with the site's own frame, or with the library's frames that it called.
    Where Python does not say columns (before 3.11) the span is the whole line: `column` 1, `end_column` one past
    its last character.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One operation of the kept step, in the order in which the host came to it.

    `operation` is its name (`aten::mm`). `site` is an index into `Observation.sites`. `waits`: the host could not go
    on before the device had done all that was queued. `bytes` are those copied between host and device for `read`,
    `to-host` and `to-device`, those read and written in the device's memory for `launch` and `shape`, those allocated
    for `host-allocation`. `launches` is the number of kernels (0 for a view or a copy). `pinned`: the host's side of
    a copy is page-locked. `dtype` is what `flops` are counted in, "tfloat32" where float32 products may use it, and
    empty where there are none. `host_us` is the measured time of the host in the operation, None on a pretended
    device, where the model of time supplies it.
    """

    operation: str
    kind: Kind
    waits: bool
    site: int
    phase: Phase
    flops: float = 0.0
    bytes: int = 0
    launches: int = 0
    pinned: bool = False
    dtype: str = ""
    host_us: float | None = None


@dataclass(slots=True)
class Step:
    """One steady step, whole. `index` counts steps from 0, warm-up included."""

    index: int
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class LineCount:
    """How often one thing happened at one site, for one phase.

    `counts` has the number for each steady step it happened in (key: step index); of kernels for `launch`, of
    operations otherwise. `bytes` is the sum over those steps, in the sense of `Event.bytes`. `in_backward`: it happened
    in the backward pass, and the site is the forward line that made the node. `operation` is the first one seen.
    """

    site: int
    kind: Kind
    waits: bool
    phase: Phase
    counts: dict[int, int] = field(default_factory=dict)
    bytes: int = 0
    in_backward: bool = False
    operation: str = ""

    @property
    def total(self) -> int:
        """Over all steady steps."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class StepTotal:
    """The sums of one steady step. `measured_us` is its length on a real device, None on a pretended one."""

    index: int
    waits: int
    launches: int
    bytes_to_device: int
    bytes_to_host: int
    measured_us: float | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """The text of one function, or of one top-level statement outside all: lines `line` to `end_line`, both included.

    `hash` is that of its text without indentation and comments, so that a function that only moved keeps it.
    """

    line: int
    end_line: int
    name: str
    hash: str


@dataclass(slots=True)
class Observation:
    """One observed run.

    `device` is "simulated" or "cuda". `hardware` is a key of the hardware table (`h100`). `steps` is the number of
    steady steps, `warmup` of those before. `step` is the one kept whole, None if the program ended before.
    `ran` has the lines of the project's files that ran in steady steps, and `regions` the functions that these, the
    sites and their project frames stand in (`functions.regions_of` of `functions.lines_of`). `errors` are what the
    user should read, a sentence each.
    `ended` is empty when the observation came to its end, else how the program ended ("exit code 1", "interrupted").
    """

    device: str
    torch: str
    hardware: str
    steps: int
    warmup: int
    sites: list[Site] = field(default_factory=list)
    lines: list[LineCount] = field(default_factory=list)
    step: Step | None = None
    totals: list[StepTotal] = field(default_factory=list)
    ran: Mapping[str, frozenset[int]] = field(default_factory=dict)
    regions: Mapping[str, tuple[Region, ...]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    ended: str = ""
    program: tuple[str, ...] = ()
    python: str = ""
