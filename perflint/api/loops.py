"""What loops are for, and how many turns they take."""

from __future__ import annotations

from perflint.analysis.frequency.elementwise_steps import launches_of_step
from perflint.analysis.frequency.few_parts import (
    goes_over_a_handful,
    goes_over_names_of_parts,
    need_not_be_many,
)
from perflint.analysis.frequency.few_turns import is_for_one_turn, is_now_and_then, is_of_a_kind, turns_few_times
from perflint.analysis.frequency.growth_cost import impact_of_growth
from perflint.analysis.frequency.listed import goes_through_list
from perflint.analysis.frequency.run_again import runs_again
from perflint.analysis.invariants.bound_in import carries_names, is_assigned_in, is_bound_before_steps
from perflint.analysis.invariants.caller_numbers import are_numbers_of_callers
from perflint.analysis.invariants.turn_dependence import regions_of_turns
from perflint.analysis.phases.loop_purpose import (
    drains,
    is_between_clocks,
    is_forever,
    is_timed_each_turn,
    is_timing,
    names_in,
    only_repeats,
    starts_afresh,
    trains_inside,
    tries_until,
)
from perflint.analysis.phases.turn_work import are_generated, encodes_items, goes_from_file_to_file
from perflint.analysis.values.built_texts import built_text, is_same_text
from perflint.analysis.values.by_index import computed_by_index, stacked_rows
from perflint.analysis.values.element_loops import ElementLoop, goes_by_element
from perflint.analysis.values.growing import (
    NUMPY_JOINS,
    TORCH_JOINS,
    Grown,
    adds_the_same,
    growing_loop,
    grown_at,
    may_be_a_number,
    size_reads,
)
from perflint.analysis.values.grown_attributes import WRITTEN_IN_METRICS, GrownAttribute, grown_attributes
from perflint.analysis.values.one_by_one import indexed_one_by_one, read_one_by_one
from perflint.analysis.values.pieces import are_elements, are_moved_over
from perflint.analysis.waits.batch_rows import launches_by_row

__all__ = [
    "NUMPY_JOINS",
    "TORCH_JOINS",
    "WRITTEN_IN_METRICS",
    "ElementLoop",
    "Grown",
    "GrownAttribute",
    "adds_the_same",
    "are_elements",
    "are_generated",
    "are_moved_over",
    "are_numbers_of_callers",
    "built_text",
    "carries_names",
    "computed_by_index",
    "drains",
    "encodes_items",
    "goes_by_element",
    "goes_from_file_to_file",
    "goes_over_a_handful",
    "goes_over_names_of_parts",
    "goes_through_list",
    "growing_loop",
    "grown_at",
    "grown_attributes",
    "impact_of_growth",
    "indexed_one_by_one",
    "is_assigned_in",
    "is_between_clocks",
    "is_bound_before_steps",
    "is_for_one_turn",
    "is_forever",
    "is_now_and_then",
    "is_of_a_kind",
    "is_same_text",
    "is_timed_each_turn",
    "is_timing",
    "launches_by_row",
    "launches_of_step",
    "may_be_a_number",
    "names_in",
    "need_not_be_many",
    "only_repeats",
    "read_one_by_one",
    "regions_of_turns",
    "runs_again",
    "size_reads",
    "stacked_rows",
    "starts_afresh",
    "trains_inside",
    "tries_until",
    "turns_few_times",
]
