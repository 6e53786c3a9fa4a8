"""Verdicts on planted numbers: no process runs here, and no clock is read."""

import math

import numpy as np
import pytest

from perflint.verify.judging import Reading, judge, turns
from perflint.verify.results import Verdict


def _readings(ratio: float, noise: float, seed: int, pairs: int = 16) -> tuple[list[Reading], list[Reading]]:
    """Trials in turn on a machine that drifts and is disturbed now and then. `ratio` is before over after."""
    random = np.random.default_rng(seed)
    before: list[Reading] = []
    after: list[Reading] = []
    for number, is_after in enumerate(turns(pairs // 2)):
        drift = 1 + 0.1 * math.sin(number / 5)
        seconds = drift * math.exp(random.normal(0, noise)) * (1 / ratio if is_after else 1.0)
        if random.random() < 0.05:
            seconds *= 1.5
        (after if is_after else before).append(Reading(seconds))
    return before, after


def _verdicts(ratio: float, noise: float, runs: int, pairs: int = 16) -> list[Verdict]:
    judged = (judge(*_readings(ratio, noise, seed, pairs)) for seed in range(runs))
    return [judgement.verdict for judgement in judged if judgement is not None]


def test_the_same_side_twice_is_no_difference() -> None:
    found = _verdicts(1.0, 0.03, 100)
    assert found.count(Verdict.NO_DIFFERENCE) >= 95


def test_a_tenth_more_is_slower() -> None:
    # As many trials as the default budget has room for.
    found = _verdicts(1 / 1.1, 0.02, 100, pairs=60)
    assert found.count(Verdict.SLOWER) >= 95


def test_noise_as_large_as_the_effect_gives_no_verdict() -> None:
    found = _verdicts(1.1, 0.3, 50)
    assert found.count(Verdict.NO_DIFFERENCE) >= 45


@pytest.mark.parametrize(("ratio", "verdict"), [(2.0, Verdict.FASTER), (0.5, Verdict.SLOWER)])
def test_the_ratio_is_before_over_after(ratio: float, verdict: Verdict) -> None:
    judgement = judge(*_readings(ratio, 0.01, seed=1))
    assert judgement is not None
    assert judgement.verdict is verdict
    assert judgement.ratio.low <= judgement.ratio.middle <= judgement.ratio.high
    assert judgement.ratio.middle == pytest.approx(ratio, rel=0.05)


def test_trials_beside_which_the_machine_was_slow_are_left_out_and_counted() -> None:
    before = [Reading(1.0, spin=1.0) for _ in range(16)]
    after = [Reading(1.0, spin=1.0) for _ in range(13)] + [Reading(9.0, spin=2.0) for _ in range(3)]
    judgement = judge(before, after)
    assert judgement is not None
    assert judgement.disturbed == 3
    assert judgement.verdict is Verdict.NO_DIFFERENCE
    assert judgement.ratio.middle == pytest.approx(1.0)


def test_few_trials_allow_no_verdict() -> None:
    assert judge([Reading(1.0)] * 4, [Reading(2.0)] * 4) is None
