"""What stays the same from step to step, or from turn to turn."""

from __future__ import annotations

from perflint.analysis.invariants.between_calls import comes_before, is_switched_between, managers_around
from perflint.analysis.invariants.constant_tensors import (
    constant_copied,
    is_constant_copy,
    is_fallback_copy,
    is_number,
    is_of_numpy,
    is_only_read,
    is_traced,
    single,
)
from perflint.analysis.invariants.in_loops import (
    has_constant_inputs,
    has_same_inputs,
    is_of_new_object,
    is_thrown_away,
)
from perflint.analysis.invariants.number_sources import Source, is_kept, origin_of, round_trip
from perflint.analysis.invariants.repeated_projections import Repeated, repeated_projections
from perflint.analysis.invariants.same_results import meaning_of, means_the_same
from perflint.analysis.invariants.step_constants import is_step_constant
from perflint.analysis.invariants.unchanging_work import unchanging_work

__all__ = [
    "Repeated",
    "Source",
    "comes_before",
    "constant_copied",
    "has_constant_inputs",
    "has_same_inputs",
    "is_constant_copy",
    "is_fallback_copy",
    "is_kept",
    "is_number",
    "is_of_new_object",
    "is_of_numpy",
    "is_only_read",
    "is_step_constant",
    "is_switched_between",
    "is_thrown_away",
    "is_traced",
    "managers_around",
    "meaning_of",
    "means_the_same",
    "origin_of",
    "repeated_projections",
    "round_trip",
    "single",
    "unchanging_work",
]
