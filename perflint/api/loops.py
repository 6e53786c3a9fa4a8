"""What loops are for, and how many turns they take."""

from __future__ import annotations

from perflint.analysis.frequency.elementwise_steps import launches_of_step
from perflint.analysis.frequency.few_turns import is_for_one_turn, is_of_a_kind, turns_few_times
from perflint.analysis.phases.loop_purpose import (
    CLOCKS,
    is_between_clocks,
    is_forever,
    is_timing,
    names_in,
    starts_afresh,
    trains_inside,
)

__all__ = [
    "CLOCKS",
    "is_between_clocks",
    "is_for_one_turn",
    "is_forever",
    "is_of_a_kind",
    "is_timing",
    "launches_of_step",
    "names_in",
    "starts_afresh",
    "trains_inside",
    "turns_few_times",
]
