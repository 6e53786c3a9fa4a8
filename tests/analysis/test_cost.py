"""The classes of cost, and what limits them."""

from __future__ import annotations

import pytest

from perflint.analysis.cost import Standing, limit
from perflint.finding import Confidence, Impact

SURE = Standing(Confidence.HIGH, costs_every_step=True, is_promised=False)


def test_what_is_certain_and_paid_by_each_step_may_be_high() -> None:
    assert limit(SURE) is Impact.HIGH


@pytest.mark.parametrize(
    "standing",
    [
        SURE._replace(confidence=Confidence.MEDIUM),
        SURE._replace(costs_every_step=False),
        SURE._replace(is_promised=True),
    ],
)
def test_one_doubt_is_enough_for_medium(standing: Standing) -> None:
    assert limit(standing) is Impact.MEDIUM


def test_what_is_paid_dozens_of_times_need_only_be_probable() -> None:
    doubted = SURE._replace(confidence=Confidence.MEDIUM, is_promised=True)
    assert limit(doubted._replace(is_multiplied=True)) is Impact.HIGH
    assert limit(doubted._replace(is_multiplied=True, confidence=Confidence.LOW)) is Impact.LOW


def test_what_hangs_on_a_guess_is_low() -> None:
    assert limit(SURE._replace(confidence=Confidence.LOW)) is Impact.LOW
