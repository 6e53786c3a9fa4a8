"""Verdicts on planted numbers: no process runs here, and no clock is read."""

import math

import numpy as np
import pytest

from perflint.verify.judging import ORDER, Block, Judgement, Reading, judge
from perflint.verify.results import BAND, Verdict


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
    assert found.count(Verdict.NO_DIFFERENCE) >= 85
    assert set(found) <= {Verdict.NO_DIFFERENCE, Verdict.UNDECIDED}


def test_a_tenth_more_is_slower() -> None:
    found = _verdicts(1 / 1.1, 0.05, 100)
    assert found.count(Verdict.SLOWER) >= 95


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_noise_far_above_the_effect_leaves_it_undecided(ratio: float) -> None:
    assert set(_verdicts(ratio, 0.8, 50)) == {Verdict.UNDECIDED}


def _steady(ratio: float, spread: float) -> Judgement:
    """Pairs whose ratios alternate around `ratio`, over null pairs without any noise."""
    groups = []
    for number in range(8):
        after = Reading((Block(1 / ratio * (1 + spread * (-1) ** number)),))
        groups.append([Reading((Block(1.0),)), after, after, Reading((Block(1.0),))])
    judgement = judge(groups)
    assert judgement is not None
    return judgement


def test_no_difference_needs_the_whole_interval_within_the_band() -> None:
    assert _steady(1.0, 0.03).verdict is Verdict.NO_DIFFERENCE
    wide = _steady(1.0, 0.5)
    assert wide.ratio.low < 1 / (1 + BAND)
    assert wide.verdict is Verdict.UNDECIDED
    assert not wide.is_settled(0.025)


def test_undecided_says_the_interval_how_many_pairs_and_what_would_decide() -> None:
    near = _steady(1.0, 0.15)
    assert near.verdict is Verdict.UNDECIDED
    said = near.why_undecided(10.0)
    assert f"the interval {near.ratio.low:.3g} to {near.ratio.high:.3g} after 16 pairs" in said
    assert "5% to a side" in said
    assert "--budget" in said
    assert "longer calls" in said
    assert "--budget" not in _steady(1.0, 0.9).why_undecided(10.0)


def test_an_effect_within_the_noise_of_the_same_code_is_undecided_and_says_so() -> None:
    noisy = [
        [Reading((Block(seconds),)) for seconds in (1.0, 1 / 1.2, 1 / (1.2 * off), 1.0 * off)]
        for off in (1.4, 1 / 1.4, 1.4, 1 / 1.4, 1.4, 1.4)
    ]
    judgement = judge(noisy)
    assert judgement is not None
    assert judgement.ratio.low > 1
    assert judgement.verdict is Verdict.UNDECIDED
    assert "no further from 1 than the same code from itself" in judgement.why_undecided(1.0)


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


def test_rounds_far_off_the_others_count_unless_something_shows_why() -> None:
    quiet = Reading((Block(1.0),) * 12)
    slow_once = Reading((*quiet.blocks[:11], Block(13.0)))
    judgement = judge([[quiet, slow_once, slow_once, quiet]] * 4)
    assert judgement is not None
    assert judgement.disturbed == 0
    assert judgement.verdict is Verdict.SLOWER
    assert judgement.ratio.middle == pytest.approx(0.5)


def test_commands_beside_which_the_machine_was_slow_are_left_out_and_counted() -> None:
    quiet, slow = Reading((Block(1.0),), spin=1.0), Reading((Block(9.0),), spin=2.0)
    judgement = judge([[quiet, slow, quiet, quiet], *[[quiet] * 4] * 7])
    assert judgement is not None
    assert judgement.disturbed == 1
    assert judgement.ratio.middle == pytest.approx(1.0)


def test_few_processes_allow_no_verdict_however_many_rounds() -> None:
    many = Reading((Block(1.0),) * 1000)
    assert judge([[many] * 4] * 2) is None
