"""Observes what runs in this process: the device, the recorder, the steps, the coverage, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perflint.observe.device.install import simulated
from perflint.observe.functions import lines_of, regions_of
from perflint.observe.model.hardware import DEFAULT, hardware
from perflint.observe.recording import steps
from perflint.observe.recording.coverage import Coverage
from perflint.observe.recording.recorder import Recorder
from perflint.observe.recording.stacks import Stacks
from perflint.observe.trace import Observation


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to observe: on which device (`simulated` or `cuda`), which model of GPU, how many steps."""

    device: str = "simulated"
    hardware: str = DEFAULT
    steps: int | None = None
    warmup: int = 0
    root: Path = field(default_factory=Path.cwd)
    project: Sequence[Path] = ()
    #: Implementations for operations without one on the host: `namespace::name` to a function of host tensors.
    stubs: dict[str, Callable[..., object]] = field(default_factory=dict)
    coverage: bool = True


@dataclass
class Session:
    """One observation that is under way."""

    wanted: Wanted
    recorder: Recorder
    coverage: Coverage
    program: tuple[str, ...] = ()

    def observation(self, ended: str = "", *, is_hashed: bool = True) -> Observation:
        """What was seen so far. Without hashes `check` cannot tell whether the code has changed since."""
        recorder = self.recorder
        found = recorder.observation(
            device=self.wanted.device,
            hardware=hardware(self.wanted.hardware).key,
            program=self.program,
            ended=ended,
        )
        found.ran = self.coverage.ran()
        if is_hashed:
            found.regions = regions_of(*_texts(found, recorder.stacks.root))
        return found


def _texts(found: Observation, root: Path) -> tuple[dict[str, str], dict[str, set[int]]]:
    """The files that lines, sites and their stacks are in, and those lines."""
    lines = lines_of(found.sites, found.ran)
    texts = {}
    for path in lines:
        try:
            texts[path] = (root / path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
    return texts, lines


@contextmanager
def observing(wanted: Wanted, on_end: Callable[[], None] | None = None) -> Iterator[Session]:
    """While the block runs, what happens on the device is recorded. Raises PerflintError."""
    stacks = Stacks(wanted.root.resolve(), [folder.resolve() for folder in wanted.project])
    coverage = Coverage(stacks)
    recorder = Recorder(stacks, wanted.warmup, wanted.steps, on_end)
    if wanted.coverage:
        recorder.on_steady = lambda on: coverage.switch(on=on)
    session = Session(wanted, recorder, coverage)
    with _device(wanted, recorder), steps.watched(recorder):
        if wanted.coverage and recorder.steady:
            coverage.switch(on=True)
        try:
            yield session
        finally:
            coverage.switch(on=False)


@contextmanager
def _device(wanted: Wanted, recorder: Recorder) -> Iterator[None]:
    if wanted.device == "cuda":
        from perflint.observe.recording.watching import watching

        with watching(recorder):
            yield
    else:
        with simulated(wanted.hardware, recorder, wanted.stubs):
            yield
