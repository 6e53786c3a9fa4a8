"""Counts what happens on the device, per line and step.

A `Recorder` is told of every operation by whatever watches the device (`device.operation` on a pretended one,
`watching` on a real one) and of the ends of steps by `steps`. It keeps counts per line, and whole only the operations
of the steady steps it was asked for, of which the median one is handed over.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

import torch

from perflint.observe.model.clock import Clock
from perflint.observe.recording.stacks import Place, Stacks
from perflint.observe.trace import Event, Kind, LineCount, Observation, Phase, Step, StepTotal

#: A step with more operations than this is not kept whole.
_EVENTS = 300_000
#: So many nodes of the graph are remembered with the line that made them.
_NODES = 1_000_000

_task = torch._C._current_graph_task_id
_node = torch._C._current_autograd_node
_next_node = torch._C._autograd._get_sequence_nr

_Raw = tuple[str, Kind, bool, int, Phase, float, int, int, bool, str, "float | None"]


@dataclass(slots=True)
class _Sums:
    waits: int = 0
    launches: int = 0
    to_device: int = 0
    to_host: int = 0


class EnoughError(BaseException):
    """Ends the program once all steps were seen. Not an `Exception`, so that programs let it through."""


@dataclass
class Recorder:
    """What was seen so far. `steps` steady steps are wanted after `warmup` others; None: until the program ends.

    `on_end` is called once when they have been seen.
    """

    stacks: Stacks
    warmup: int = 1
    steps: int | None = None
    on_end: Callable[[], None] | None = None
    #: Called with True when steady steps begin, with False when they end.
    on_steady: Callable[[bool], None] | None = None
    #: Called after each step, `index` being the number of those that were made.
    on_step: Callable[[], None] | None = None
    index: int = 0
    errors: list[str] = field(default_factory=list)
    ended: bool = False
    #: Whether what happens now is counted.
    steady: bool = False
    #: Steps end by `close_step` only, whatever the program's optimizers do.
    by_hand: bool = False
    #: Without optimizers and loaders each call is a step, whatever runs backward in it.
    by_calls: bool = False
    #: While a CUDA graph is captured: what a replay calls for the steps that optimizers made in the capture.
    captured: list[Callable[[], None]] | None = None
    #: Runs from the first event with a time that the program records.
    clock: Clock | None = None
    _paused: bool = False
    _lines: dict[tuple[int, Kind, bool, Phase, bool], LineCount] = field(default_factory=dict)
    _events: list[_Raw] = field(default_factory=list)
    _kept: dict[int, list[_Raw]] = field(default_factory=dict)
    _sums: dict[int, _Sums] = field(default_factory=dict)
    _current: _Sums = field(default_factory=_Sums)
    _nodes: dict[int, Place] = field(default_factory=dict)
    _seen_node: int = 0
    #: Of the operation before: whose it was, and whether it wrote into a tensor. Where that is a view, autograd makes
    #: the node of the write (`CopySlices`) after its kernel has run.
    _before: Place | None = None
    wrote: bool = False

    def __post_init__(self) -> None:
        self.steady = self.warmup == 0
        os.register_at_fork(after_in_child=self._stop)

    @property
    def keeps(self) -> bool:
        """Whether what happens now may be handed over: in steady steps, and in the first, which may be the only one."""
        return self.steady or (self.index == 0 and not self._paused and not self.ended)

    @property
    def sizes(self) -> bool:
        """Whether bytes and flops of what happens now are asked for."""
        return self.clock is not None or self.keeps

    def _stop(self) -> None:
        """Workers of a `DataLoader` are not observed."""
        self.ended = True
        self.steady = False

    def place(self, frame: FrameType | None) -> tuple[Place, bool]:
        """Where an operation of `frame` belongs, and whether it is the backward pass of that line."""
        place = self.stacks.at(frame)
        if _task() == -1:
            number = _next_node()
            if number != self._seen_node:
                self._remember(number, place)
            self._before = place
            self.wrote = False
            return place, False
        if place.own_backward:
            return place, True
        node = _node()
        made = self._nodes.get(node._sequence_nr()) if node is not None else None
        return (made, True) if made is not None else (place, True)

    def record(
        self,
        operation: str,
        kind: Kind,
        frame: FrameType | None,
        *,
        waits: bool,
        size: int = 0,
        launches: int = 0,
        flops: float = 0.0,
        dtype: str = "",
        pinned: bool = False,
        host_us: float | None = None,
    ) -> None:
        """One operation, called from `frame`. `size` is in bytes, in the sense of `Event.bytes`."""
        if self.ended:
            return
        place, in_backward = self.place(frame)
        self.count(operation, kind, place, waits, in_backward, size, launches, flops, dtype, pinned, host_us)

    def count(
        self,
        operation: str,
        kind: Kind,
        place: Place,
        waits: bool,  # noqa: FBT001  positions are faster, and this runs for every operation
        in_backward: bool = False,  # noqa: FBT001, FBT002
        size: int = 0,
        launches: int = 0,
        flops: float = 0.0,
        dtype: str = "",
        pinned: bool = False,  # noqa: FBT001, FBT002
        host_us: float | None = None,
    ) -> None:
        """One operation, at a place known already."""
        if self.ended:
            return
        phase: Phase = "backward" if in_backward else place.phase
        if self.clock is not None:
            self.clock.add(
                Event(operation, kind, waits, place.site, phase, flops, size, launches, pinned, dtype, host_us)
            )
        if self._paused:
            return
        step = self._current
        if waits:
            step.waits += 1
        step.launches += launches
        if kind == "to-device":
            step.to_device += size
        elif kind in {"to-host", "read"}:
            step.to_host += size
        if not self.keeps:
            return
        key = (place.site, kind, waits, phase, in_backward)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = LineCount(
                place.site, kind, waits, phase, in_backward=in_backward, operation=operation
            )
        line.counts[self.index] = line.counts.get(self.index, 0) + (launches if kind == "launch" else 1)
        line.bytes += size
        if len(self._events) < _EVENTS:
            self._events.append(
                (operation, kind, waits, place.site, phase, flops, size, launches, pinned, dtype, host_us)
            )

    def end_step(self) -> None:
        """The program came to the end of a step. Raises what `on_end` raises after the last one."""
        if not self.by_hand:
            self.close_step()

    def pause(self) -> None:
        """Count nothing until `resume`."""
        self._paused = True
        self.steady = False

    def resume(self) -> None:
        self._paused = False
        self.steady = self.index >= self.warmup and not self.ended

    def restart(self) -> None:
        """Forget what was counted; which line made which node of the graph is kept."""
        for kept in (self._lines, self._events, self._kept, self._sums):
            kept.clear()
        self._events = []
        self._current = _Sums()
        self.index = 0
        self.resume()

    def close_step(self) -> None:
        """A step ends here. Raises what `on_end` raises after the last one."""
        if self.ended:
            return
        if self.steady:
            self._sums[self.index] = self._current
            if len(self._events) < _EVENTS:
                self._kept[self.index] = self._events
                self._drop_extremes()
        elif self.index == 0:
            self._lines.clear()
        self._events = []
        self._current = _Sums()
        self._forget_nodes()
        was = self.steady
        self.index += 1
        if self.steps is not None and self.index >= self.warmup + self.steps:
            self.ended = True
        self.steady = self.index >= self.warmup and not self.ended
        if self.on_steady is not None and was != self.steady:
            self.on_steady(self.steady)
        if self.on_step is not None:
            self.on_step()
        if self.ended and self.on_end is not None:
            self.on_end()

    def whole_program(self) -> None:
        """Take all that was seen for one steady step, where the program had none. No warm-up came before it."""
        self.warmup = 0
        self._sums[self.index] = self._current
        self._kept[self.index] = self._events

    def observation(self, *, device: str, hardware: str, program: tuple[str, ...] = (), ended: str = "") -> Observation:
        """All that was seen in complete steady steps, without what their lines are hashed and covered by."""
        totals = [
            StepTotal(index, sums.waits, sums.launches, sums.to_device, sums.to_host)
            for index, sums in sorted(self._sums.items())
        ]
        lines = [line for line in self._lines.values() if self._drop_incomplete(line)]
        return Observation(
            device=device,
            torch=str(torch.__version__),
            hardware=hardware,
            steps=len(totals),
            warmup=self.warmup,
            sites=list(self.stacks.sites),
            lines=sorted(lines, key=lambda line: (line.site, line.kind)),
            step=self._median(),
            totals=totals,
            errors=list(self.errors),
            ended=ended,
            program=program,
            python=".".join(map(str, sys.version_info[:3])),
        )

    def _drop_incomplete(self, line: LineCount) -> bool:
        """Leave out counts of the step that did not end. Bytes go in proportion. Whether anything is left."""
        whole = {index: count for index, count in line.counts.items() if index in self._sums}
        if len(whole) != len(line.counts):
            total = line.total
            line.counts = whole
            line.bytes = line.bytes * line.total // total if total else 0
        return bool(whole)

    def _median(self) -> Step | None:
        if not self._kept:
            return None
        ranked = sorted(self._kept, key=lambda index: (self._weight(index), index))
        index = ranked[(len(ranked) - 1) // 2]
        return Step(index, [Event(*raw) for raw in self._kept[index]])

    def _weight(self, index: int) -> tuple[int, int]:
        sums = self._sums[index]
        return sums.waits, sums.launches

    def _drop_extremes(self) -> None:
        """Keep at most five steps whole: the memory of the recorder is bounded."""
        if len(self._kept) > 5:
            ranked = sorted(self._kept, key=self._weight)
            del self._kept[ranked[0] if self.index % 2 else ranked[-1]]

    def _remember(self, number: int, place: Place) -> None:
        """The nodes made since the last operation are this line's: a node is made just before its kernel runs."""
        if number > self._seen_node and number - self._seen_node < 1000:
            for made in range(self._seen_node, number):
                self._nodes[made] = place
            if self.wrote and self._before is not None and number - self._seen_node > 1:
                self._nodes[self._seen_node] = self._before
        elif number:
            self._nodes[number - 1] = place
        self._seen_node = number

    def _forget_nodes(self) -> None:
        if len(self._nodes) > _NODES:
            for number in list(self._nodes)[: len(self._nodes) - _NODES // 2]:
                del self._nodes[number]
