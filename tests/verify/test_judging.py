"""Verdicts on planted numbers: no process runs here, and no clock is read."""

import math

import numpy as np
import pytest

from perflint.verify.judging import ORDER, Block, Reading, judge
from perflint.verify.results import Verdict


def _groups(ratio: float, noise: float, seed: int, groups: int = 8, rounds: int = 12) -> list[list[Reading]]:
    """A machine that drifts and is disturbed now and then, with processes that differ. `ratio` is before over after."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(groups):
        own = [math.exp(random.normal(0, 0.01)) * (1 / ratio if is_after else 1.0) for is_after in ORDER]
        blocks: list[list[Block]] = [[] for _ in ORDER]
        for turn in range(rounds):
            drift = 1 + 0.1 * math.sin(number + turn / 5)
            for place, seconds in enumerate(own):
                disturbance = 1.5 if random.random() < 0.05 else 1.0
                blocks[place].append(Block(drift * disturbance * seconds * math.exp(random.normal(0, noise))))
        found.append([Reading(tuple(those)) for those in blocks])
    return found


def _verdicts(ratio: float, noise: float, runs: int, groups: int = 8) -> list[Verdict]:
    judged = (judge(_groups(ratio, noise, seed, groups)) for seed in range(runs))
    return [judgement.verdict for judgement in judged if judgement is not None]


def test_the_same_side_twice_is_no_difference() -> None:
    found = _verdicts(1.0, 0.05, 100)
    assert found.count(Verdict.NO_DIFFERENCE) >= 95


def test_a_tenth_more_is_slower() -> None:
    found = _verdicts(1 / 1.1, 0.05, 100)
    assert found.count(Verdict.SLOWER) >= 95


def test_noise_far_above_the_effect_gives_no_verdict() -> None:
    found = _verdicts(1.1, 0.8, 50)
    assert found.count(Verdict.NO_DIFFERENCE) >= 45


@pytest.mark.parametrize(("ratio", "verdict"), [(2.0, Verdict.FASTER), (0.5, Verdict.SLOWER)])
def test_the_ratio_is_before_over_after(ratio: float, verdict: Verdict) -> None:
    judgement = judge(_groups(ratio, 0.01, seed=1))
    assert judgement is not None
    assert judgement.verdict is verdict
    assert judgement.ratio.low <= judgement.ratio.middle <= judgement.ratio.high
    assert judgement.ratio.middle == pytest.approx(ratio, rel=0.05)


def test_rounds_in_which_the_processor_was_taken_away_are_left_out_and_counted() -> None:
    quiet = Reading((Block(1.0),) * 12)
    taken = Reading((Block(1.0),) * 9 + (Block(9.0, disturbed=True),) * 3)
    judgement = judge([[quiet, taken, quiet, quiet]] * 4)
    assert judgement is not None
    assert judgement.disturbed == 3 * 4
    assert not judgement.crowded
    assert judgement.verdict is Verdict.NO_DIFFERENCE
    assert judgement.ratio.middle == pytest.approx(1.0)


def test_where_the_processor_is_always_shared_every_round_counts_and_that_is_said() -> None:
    crowded = Reading((Block(1.0, disturbed=True),) * 12)
    judgement = judge([[crowded] * 4] * 4)
    assert judgement is not None
    assert judgement.crowded
    assert judgement.disturbed == 0


def test_rounds_far_off_the_others_are_left_out_and_counted() -> None:
    quiet = Reading(tuple(Block(1.0 + 0.001 * number) for number in range(12)))
    odd = Reading((*quiet.blocks[:11], Block(5.0)))
    judgement = judge([[quiet, odd, odd, quiet]] * 4)
    assert judgement is not None
    assert judgement.disturbed == 2 * 4


def test_commands_beside_which_the_machine_was_slow_are_left_out_and_counted() -> None:
    quiet, slow = Reading((Block(1.0),), spin=1.0), Reading((Block(9.0),), spin=2.0)
    judgement = judge([[quiet, slow, quiet, quiet], *[[quiet] * 4] * 7])
    assert judgement is not None
    assert judgement.disturbed == 1
    assert judgement.ratio.middle == pytest.approx(1.0)


def test_few_processes_allow_no_verdict_however_many_rounds() -> None:
    many = Reading((Block(1.0),) * 1000)
    assert judge([[many] * 4] * 2) is None
