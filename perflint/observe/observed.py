"""Observation as a block of code: for tests of libraries, and wherever a program is not run by `perflint observe`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflint.observe.model.hardware import DEFAULT

if TYPE_CHECKING:
    from perflint.observe.recording.session import Session
    from perflint.observe.trace import Observation

#: Lines that a report names at most.
_LINES = 20


class Observed:
    """What happens on the device inside an `observed` block.

    Blocks of `step` are counted, one step each; a program's own optimizer steps are then of no account. Without such
    a block, all of the `observed` block is one step.
    """

    def __init__(self, session: Session, device: Any) -> None:
        #: The device as `torch.device`, for `.to(seen.device)`.
        self.device = device
        self._session = session
        self._steps = 0
        self._observation: Observation | None = None
        session.recorder.by_hand = True

    @contextmanager
    def step(self) -> Iterator[None]:
        """What runs inside is one step. What runs outside of all steps is not counted."""
        recorder = self._session.recorder
        if self._steps == 0:
            recorder.restart()
        self._steps += 1
        recorder.resume()
        try:
            yield
        finally:
            recorder.close_step()
            recorder.pause()

    @property
    def observation(self) -> Observation:
        """All of it, as `perflint observe` writes it. Inside the block: the steps that are over."""
        return self._observation or self._session.observation()

    @property
    def waits(self) -> int:
        """Times that the host waited for the device, in the step that has most."""
        return self._most("waits")

    @property
    def launches(self) -> int:
        """Kernels launched, in the step that has most."""
        return self._most("launches")

    @property
    def bytes_to_host(self) -> int:
        """Bytes copied from the device, in the step that has most."""
        return self._most("bytes_to_host")

    @property
    def bytes_to_device(self) -> int:
        """Bytes copied to the device, in the step that has most."""
        return self._most("bytes_to_device")

    def report(self) -> str:
        """The lines that waited, most often first, a line each. Empty where none did."""
        found = self.observation
        counted: dict[str, int] = {}
        for line in found.lines:
            if line.waits:
                site = found.sites[line.site]
                place = f"{site.path}:{site.line}:{site.column}: {line.kind} ({line.operation})"
                counted[place] = counted.get(place, 0) + line.total
        ranked = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
        return "\n".join(f"{place}, {count} times" for place, count in ranked[:_LINES])

    def _most(self, name: str) -> int:
        return max((getattr(total, name) for total in self.observation.totals), default=0)

    def restart(self) -> None:
        """Forget what was counted so far."""
        self._session.recorder.restart()
        self._steps = 0

    def finish(self) -> None:
        """Count no further. The end of the block does it, if nothing did before."""
        if self._observation is not None:
            return
        if self._steps == 0:
            self._session.recorder.close_step()
        self._session.recorder.pause()
        self._observation = self._session.observation()


@contextmanager
def observed(
    device: str = "simulated",
    *,
    hardware: str = DEFAULT,
    root: str | os.PathLike[str] | None = None,
    project: Sequence[str | os.PathLike[str]] = (),
) -> Iterator[Observed]:
    """While the block runs, `cuda` is the simulated device (or the real one, for `device="cuda"`), and what happens on
    it is counted. `hardware` names the model of GPU, `root` the folder that paths are given from (the working
    directory), `project` folders whose code counts as the user's own although it is installed.

    Raises PerflintError: PyTorch older than 2.9, no such hardware, no CUDA device, a block inside another.

        with perflint.observe.observed() as seen:
            model, batch = Net().to(seen.device), torch.randn(8, 3, device=seen.device)
            with seen.step():
                model(batch)
        assert seen.waits == 0
    """
    from perflint.observe.recording.session import Wanted, observing

    wanted = Wanted(
        device=device,
        hardware=hardware,
        root=Path(root) if root is not None else Path.cwd(),
        project=[Path(one) for one in project],
        coverage=False,
    )
    with observing(wanted) as session:
        import torch

        seen = Observed(session, torch.device("cuda", 0))
        try:
            yield seen
        finally:
            seen.finish()
