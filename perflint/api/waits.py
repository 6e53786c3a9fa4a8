"""Where the host waits for the device, what for, and what it costs."""

from __future__ import annotations

from perflint.analysis.waits.accelerators import uses_accelerator
from perflint.analysis.waits.asked_for import is_asked_for
from perflint.analysis.waits.by_element import TurnRead, read_by_turns, reads_each_element
from perflint.analysis.waits.clocked import is_measurement, reads_clock_behind, trains
from perflint.analysis.waits.cost import (
    emptied_by,
    finds_little,
    finds_nothing,
    first_of_block,
    impact_at,
    impact_of_copy,
    impact_of_decision,
    waited_before,
    waits_for_little,
    waits_later,
    waits_spared_by,
)
from perflint.analysis.waits.counts import COUNTING_NAMES, Count, Counted, counted_at
from perflint.analysis.waits.distributions import DISTRIBUTIONS, checks_own, is_checked
from perflint.analysis.waits.exceptional import is_exceptional
from perflint.analysis.waits.graph_sizes import sparing
from perflint.analysis.waits.guarded import GuardedUse, rare_branch, used_under_guard
from perflint.analysis.waits.handed_over import hand_over_after, reads_events_after
from perflint.analysis.waits.host_answers import answers_on_host
from perflint.analysis.waits.host_search import in_host_search
from perflint.analysis.waits.host_work import in_forward, in_step, region_of, works_on_host
from perflint.analysis.waits.kept_results import is_beside_generation, is_kept_until_end
from perflint.analysis.waits.last_turn import only_last_counts
from perflint.analysis.waits.masks import is_boolean, mask_in, only_writes_masked
from perflint.analysis.waits.next_reads import is_read_next
from perflint.analysis.waits.numbers import (
    NUMBER_NAMES,
    device_number,
    may_be_tensor,
    numbers_of,
    roots,
    stored_on_host,
)
from perflint.analysis.waits.operators import NUMBER_METHODS, given_number
from perflint.analysis.waits.options import is_option_for
from perflint.analysis.waits.pass_copies import costs_little, waits_in_any_case
from perflint.analysis.waits.protected import meets_for_files, protects_data
from perflint.analysis.waits.reads import (
    READ_NAMES,
    Read,
    certainty_on_device,
    device_read,
)
from perflint.analysis.waits.repeated_reads import read_before, reads_after, was_read_before
from perflint.analysis.waits.rows import whole_of_rows
from perflint.analysis.waits.sparable import is_company
from perflint.analysis.waits.texts import (
    PRINTING_NAMES,
    Printed,
    certainty_of_text,
    formatter_around,
    is_formatter,
    is_tracker,
    names_a_file,
    printed_in,
)
from perflint.analysis.waits.timed_regions import timed_region, unfinished_work
from perflint.analysis.waits.truth_tests import (
    COMPREHENSIONS,
    certainty_asked,
    chooses_values,
    is_asked,
    is_tested,
    kept_answer,
    leaves,
    read_by_helper,
    tests,
)
from perflint.analysis.waits.value_uses import Use, check_around, is_fill_value, later_uses, use_of
from perflint.analysis.waits.wanted_on_host import is_wanted_on_host

__all__ = [
    "COMPREHENSIONS",
    "COUNTING_NAMES",
    "DISTRIBUTIONS",
    "NUMBER_METHODS",
    "NUMBER_NAMES",
    "PRINTING_NAMES",
    "READ_NAMES",
    "Count",
    "Counted",
    "GuardedUse",
    "Printed",
    "Read",
    "TurnRead",
    "Use",
    "answers_on_host",
    "certainty_asked",
    "certainty_of_text",
    "certainty_on_device",
    "check_around",
    "checks_own",
    "chooses_values",
    "costs_little",
    "counted_at",
    "device_number",
    "device_read",
    "emptied_by",
    "finds_little",
    "finds_nothing",
    "first_of_block",
    "formatter_around",
    "given_number",
    "hand_over_after",
    "impact_at",
    "impact_of_copy",
    "impact_of_decision",
    "in_forward",
    "in_host_search",
    "in_step",
    "is_asked",
    "is_asked_for",
    "is_beside_generation",
    "is_boolean",
    "is_checked",
    "is_company",
    "is_exceptional",
    "is_fill_value",
    "is_formatter",
    "is_kept_until_end",
    "is_measurement",
    "is_option_for",
    "is_read_next",
    "is_tested",
    "is_tracker",
    "is_wanted_on_host",
    "kept_answer",
    "later_uses",
    "leaves",
    "mask_in",
    "may_be_tensor",
    "meets_for_files",
    "names_a_file",
    "numbers_of",
    "only_last_counts",
    "only_writes_masked",
    "printed_in",
    "protects_data",
    "rare_branch",
    "read_before",
    "read_by_helper",
    "read_by_turns",
    "reads_after",
    "reads_clock_behind",
    "reads_each_element",
    "reads_events_after",
    "region_of",
    "roots",
    "sparing",
    "stored_on_host",
    "tests",
    "timed_region",
    "trains",
    "unfinished_work",
    "use_of",
    "used_under_guard",
    "uses_accelerator",
    "waited_before",
    "waits_for_little",
    "waits_in_any_case",
    "waits_later",
    "waits_spared_by",
    "was_read_before",
    "whole_of_rows",
    "works_on_host",
]
