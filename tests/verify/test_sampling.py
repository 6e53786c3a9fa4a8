"""From calls to a verdict by a clock that only the calls move: what is judged is the mean of all calls."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from perflint.verify.judging import ORDER, Block, Judgement, Reading, judge
from perflint.verify.modes import modes_of
from perflint.verify.results import Verdict
from perflint.verify.sampling import Sampler


@dataclass
class _Machine:
    """One process: each call takes the next of `costs`; `preempted` says how long it then had no processor."""

    costs: Iterator[float]
    preempted: Callable[[int], float] = lambda _: 0.0
    reports_waiting: bool = True
    time: float = 0.0
    lost: float = 0.0
    switches: int = 0
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def call(self, *_: object) -> None:
        away = self.preempted(next(self.numbers))
        self.time += next(self.costs) + away
        self.lost += away
        self.switches += away > 0

    def now(self) -> float:
        self.time += 1e-9  # so that a loop until a time ends
        return self.time

    def waited(self) -> float | None:
        return self.lost if self.reports_waiting else None

    def interruptions(self) -> int:
        return self.switches

    def shares(self) -> bool:
        return False


def _pattern(scale: float, *costs: float) -> Callable[[], Iterator[float]]:
    return lambda: itertools.cycle([scale * cost for cost in costs])


def _judged(
    before: Callable[[], Iterator[float]], after: Callable[[], Iterator[float]], scale: float, **machine: Any
) -> Judgement:
    """Four groups of fresh processes, each with twelve blocks."""
    groups = []
    for _ in range(6):
        group = []
        for is_after in ORDER:
            process = _Machine((after if is_after else before)(), **machine)
            sampler = Sampler(process.call, process, 0.01, scale)
            blocks = [json.loads(json.dumps(sampler.block())) for _ in range(12)]
            group.append(
                Reading(
                    tuple(
                        Block(one["seconds"], one["disturbed"], one["calls"], one["waited"], tuple(one["times"]))
                        for one in blocks
                    )
                )
            )
        groups.append(group)
    judgement = judge(groups)
    assert judgement is not None
    return judgement


_LENGTHS = [3e-6, 2e-4, 1.5e-3, 1.9e-3, 4e-3, 9e-3, 0.012, 0.6]


@pytest.mark.parametrize("scale", _LENGTHS)
def test_a_slow_path_in_every_second_call_is_found(scale: float) -> None:
    judgement = _judged(_pattern(scale, 1.0, 1.68), _pattern(scale, 1.0), scale)
    assert judgement.verdict is Verdict.FASTER
    assert judgement.ratio.middle == pytest.approx(1.34, rel=0.03)
    assert judgement.before == pytest.approx(1.34 * scale, rel=0.03)


@pytest.mark.parametrize("scale", _LENGTHS)
def test_a_slow_path_in_two_of_three_calls_counts_as_often_as_it_is_taken(scale: float) -> None:
    judgement = _judged(_pattern(scale, 1.0, 1.63, 1.63), _pattern(scale, 1.0), scale)
    assert judgement.verdict is Verdict.FASTER
    assert judgement.ratio.middle == pytest.approx(1.42, rel=0.03)


def test_a_fix_that_is_faster_in_most_calls_and_slower_on_the_whole_is_slower() -> None:
    judgement = _judged(_pattern(0.004, 1.0), _pattern(0.004, 0.5, 0.5, 0.5, 6.0), 0.004)
    assert judgement.verdict is Verdict.SLOWER
    assert judgement.ratio.middle == pytest.approx(1 / 1.875, rel=0.05)


@pytest.mark.parametrize("scale", _LENGTHS)
def test_bimodal_calls_are_said_to_be(scale: float) -> None:
    one, other = _judged(_pattern(scale, 1.0, 1.68), _pattern(scale, 1.0), scale).modes
    assert one is not None
    assert one.share == pytest.approx(0.5, abs=0.05)
    assert one.ratio == pytest.approx(1.68, rel=0.01)
    assert str(one).endswith("of its calls take 1.7x as long as the others")
    assert other is None


def test_one_bell_or_an_even_spread_is_not_bimodal() -> None:
    import numpy as np

    random = np.random.default_rng(0)
    for times in (random.normal(1, 0.2, 500), random.uniform(0.5, 1.5, 500), 1 + random.exponential(0.3, 500)):
        assert modes_of([float(time) for time in times if time > 0]) is None
    assert modes_of([1.0] * 11) is None


@pytest.mark.parametrize("scale", [2e-4, 4e-3, 0.012])
def test_preemption_of_one_side_is_no_slowness_of_it(scale: float) -> None:
    # Longer calls are preempted more often; so the slow calls must not be left out for it.
    def preempted(number: int) -> float:
        return 0.05 if number % 7 == 0 or number % 2 else 0.0

    judgement = _judged(_pattern(scale, 1.0, 1.68), _pattern(scale, 1.0), scale, preempted=preempted)
    assert judgement.ratio.middle == pytest.approx(1.34, rel=0.03)
    assert judgement.waited > 0.5
    assert judgement.disturbed == 0


def test_where_waiting_is_not_reported_bimodal_rounds_are_not_left_out_for_a_switch() -> None:
    judgement = _judged(
        _pattern(0.012, 1.0, 1.68),
        _pattern(0.012, 1.0),
        0.012,
        # Every slow call comes with a switch, which costs next to nothing.
        preempted=lambda number: 1e-6 if number % 2 else 0.0,
        reports_waiting=False,
    )
    assert judgement.ratio.middle == pytest.approx(1.34, rel=0.03)


def test_waiting_is_subtracted_from_both_sides_or_from_none() -> None:
    known = Reading((Block(2.0, waited=1.0),) * 12)
    unknown = Reading((Block(2.0),) * 12)
    judgement = judge([[known, unknown, unknown, known]] * 4)
    assert judgement is not None
    assert judgement.ratio.middle == pytest.approx(1.0)
    assert judgement.waited == 0.0


def test_each_block_is_seeded_otherwise_and_alike_in_all_processes() -> None:
    seeds: list[list[int]] = [[], []]
    for own in seeds:
        process = _Machine(itertools.repeat(0.004))
        sampler = Sampler(process.call, process, 0.01, 0.004, reseed=own.append)
        for _ in range(3):
            sampler.block()
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3


def test_a_call_that_needs_a_state_gets_a_fresh_one_untimed() -> None:
    process = _Machine(itertools.repeat(0.004))
    states: list[object] = []

    def prepare() -> object:
        process.time += 5.0
        states.append(object())
        return states[-1]

    given: list[object] = []

    def call(state: object) -> None:
        given.append(state)
        process.call()

    block = Sampler(call, process, 0.01, 0.0, prepare=prepare).block()
    assert given == states
    assert block["seconds"] / block["calls"] == pytest.approx(0.004)


def test_a_device_clock_times_the_calls_that_are_judged_and_no_others() -> None:
    process = _Machine(itertools.repeat(0.004))

    @dataclass
    class _Watch:
        seconds: float = 0.003

        def __enter__(self) -> None:
            """Starts it."""

        def __exit__(self, *_: object) -> None:
            """Ends it."""

    block = Sampler(process.call, process, 0.01, 0.004, stopwatch=_Watch, is_host=False).block()
    assert next(process.numbers) == block["calls"]
    assert block["device_seconds"] == pytest.approx(0.003)
    # What the host waits may pass while the device works.
    assert block["waited"] is None
