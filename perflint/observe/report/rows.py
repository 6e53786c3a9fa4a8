"""The tables of a report: what happened at each place of the program, how often and at what modelled cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from perflint.finding import often
from perflint.observe.model.cost import Costs, Gain, StepTime, step_time
from perflint.observe.model.hardware import hardware
from perflint.observe.trace import Event, Frame, Kind, LineCount, Observation, Phase, Site

EVERY_STEP = "every step"
#: A place of the program: path, line, column, end line and end column.
Place: TypeAlias = "tuple[str, int, int, int, int]"


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of thing that happened at one place in one phase, over all stacks that lead there.

    `per_step` and `bytes` are means over the steady steps. `rhythm` says which steps it happened in, in words.
    `gain_ms` is what the mean step would be shorter without the waits of this place, `share` the part of the step that
    is, both modelled and None where nothing waits; `hidden`: they cost nothing as long as others are there.
    `finding` is the code of the rule that found the place, empty where none did.
    It happened in `steps` of the steady steps, `total` times in all.
    """

    place: Place
    kind: Kind
    waits: bool
    phase: Phase
    in_backward: bool
    per_step: float
    bytes: float
    rhythm: str
    operations: tuple[str, ...]
    site: Site
    gain_ms: float | None = None
    share: float | None = None
    hidden: bool = False
    finding: str = ""
    steps: int = 0
    total: int = 0
    #: Where in libraries that the place calls, innermost functions, the most frequent first.
    inside: tuple[Frame, ...] = ()

    @property
    def times(self) -> str:
        """`3 times a step`; of what happens in some steps only, how often it happens in these: `6 times`."""
        if self.rhythm == EVERY_STEP or not self.steps:
            return often(self.per_step)
        mean = self.total / self.steps
        return "once" if mean == 1 else f"{mean:.0f} times" if mean == int(mean) else f"{mean:.1f} times"


@dataclass(frozen=True, slots=True)
class Step:
    """Means of the steady steps, and the model's time of the kept one (None without one). `measured_ms` is that of a
    real device."""

    waits: float
    launches: float
    bytes_to_device: float
    bytes_to_host: float
    time: StepTime | None
    measured_ms: float | None


def step_of(observation: Observation) -> Step:
    totals = observation.totals
    count = max(len(totals), 1)
    measured = [one.measured_us for one in totals if one.measured_us is not None]
    kept = observation.step
    return Step(
        sum(one.waits for one in totals) / count,
        sum(one.launches for one in totals) / count,
        sum(one.bytes_to_device for one in totals) / count,
        sum(one.bytes_to_host for one in totals) / count,
        None if kept is None else step_time(kept.events, hardware(observation.hardware)),
        sum(measured) / len(measured) / 1000 if measured else None,
    )


def rows(observation: Observation, findings: Mapping[int, str] | None = None) -> list[Row]:
    """The dearest first; then what waits and costs nothing, then the rest, by how often it happens.

    `findings` has codes of rules by index into `Observation.lines`.
    """
    codes = {id(observation.lines[index]): code for index, code in (findings or {}).items()}
    costs = _costs(observation)
    grouped: dict[tuple[Place, Kind, bool, Phase, bool], list[LineCount]] = {}
    for one in observation.lines:
        place = place_of(observation.sites[one.site])
        grouped.setdefault((place, one.kind, one.waits, one.phase, one.in_backward), []).append(one)
    made = [_row(observation, key, lines, costs, codes) for key, lines in grouped.items()]
    return sorted(made, key=lambda row: (-(row.share or 0.0), not row.waits, -row.per_step, row.place))


def _row(
    observation: Observation,
    key: tuple[Place, Kind, bool, Phase, bool],
    lines: Sequence[LineCount],
    costs: Costs[tuple[Place, Kind, Phase]] | None,
    codes: Mapping[int, str],
) -> Row:
    place, kind, waits, phase, in_backward = key
    steps = max(observation.steps, 1)
    counts: dict[int, int] = {}
    for one in lines:
        for step, count in one.counts.items():
            counts[step] = counts.get(step, 0) + count
    most = max(lines, key=lambda one: one.total)
    gain = share = None
    hidden = False
    model = (place, kind, phase)
    if waits and costs is not None and costs.waits.get(model):
        # What happens in some steps only costs the mean step less than the one that was kept.
        gain = costs.alone_ms([model]) * min(sum(counts.values()) / steps / len(costs.waits[model]), 1.0)
        share = costs.time.share(gain)
        hidden = share < 0.001 <= costs.time.share(costs.last_ms([model]))
    return Row(
        place,
        kind,
        waits,
        phase,
        in_backward,
        sum(counts.values()) / steps,
        sum(one.bytes for one in lines) / steps,
        rhythm(counts, [one.index for one in observation.totals] or range(observation.steps)),
        tuple(dict.fromkeys(one.operation for one in lines if one.operation)),
        observation.sites[most.site],
        gain,
        share,
        hidden,
        next((codes[id(one)] for one in lines if id(one) in codes), ""),
        sum(count > 0 for count in counts.values()),
        sum(counts.values()),
        _inside(observation, lines),
    )


def _inside(observation: Observation, lines: Iterable[LineCount]) -> tuple[Frame, ...]:
    stacks = [observation.sites[one.site].stack for one in sorted(lines, key=lambda one: -one.total)]
    return tuple(dict.fromkeys(stack[-1] for stack in stacks if stack and stack[-1].library))


def _costs(observation: Observation) -> Costs[tuple[Place, Kind, Phase]] | None:
    if observation.step is None:
        return None
    places = [place_of(site) for site in observation.sites]

    def key(event: Event) -> tuple[Place, Kind, Phase]:
        return places[event.site], event.kind, event.phase

    return Costs(observation.step.events, hardware(observation.hardware), key)


def place_of(site: Site) -> Place:
    return (site.path, site.line, site.column, site.end_line, site.end_column)


def rhythm(counts: Mapping[int, int], steps: Iterable[int]) -> str:
    """Which of the steady `steps` (numbers) something happened in: "every step", "every 10 steps", "in step 4 only"."""
    every = sorted(steps)
    seen = sorted(step for step, count in counts.items() if count)
    if not seen:
        return "never"
    if len(seen) >= len(every):
        return EVERY_STEP
    if len(seen) == 1:
        return f"in step {seen[0]} only"
    gaps = {later - earlier for earlier, later in itertools.pairwise(seen)}
    # Two may be chance; a rhythm also has to go on to the end.
    if len(seen) >= 3 and len(gaps) == 1 and every[-1] - seen[-1] < min(gaps) > 1:
        return f"every {gaps.pop()} steps"
    return f"in {len(seen)} of {len(every)} steps"


def what_if(observation: Observation) -> list[Gain[Place]]:
    """What the step gains without the waits of each place, the dearest first; empty without a kept step."""
    if observation.step is None:
        return []
    places = [place_of(site) for site in observation.sites]
    costs = Costs(observation.step.events, hardware(observation.hardware), lambda event: places[event.site])
    return costs.gains()


def elsewhere(observation: Observation, keys: Iterable[str]) -> list[StepTime]:
    """The kept step on other accelerators; empty without one."""
    if observation.step is None:
        return []
    return [step_time(observation.step.events, hardware(key)) for key in dict.fromkeys(keys)]
