"""What part of a program code belongs to, and how seldom it runs."""

from __future__ import annotations

from perflint.analysis.effects.debug_switches import debug_setting, debug_switch
from perflint.analysis.feasibility.file_options import accumulates_by_default, is_option, names_of_option, steps_here
from perflint.analysis.feasibility.hardware import asks_hardware, is_on_a_mac
from perflint.analysis.feasibility.unconditional import is_in_every_run
from perflint.analysis.phases.generation import (
    beside_generation,
    generates_or_predicts,
    leads_to_a_search,
)
from perflint.analysis.phases.generation_helpers import Helper, one_text_helper
from perflint.analysis.phases.grown_sequences import forward_on_grown
from perflint.analysis.phases.measuring import is_for_a_profiler, is_measured_each_turn
from perflint.analysis.phases.memory_pressure import (
    gives_up_the_step,
    has_run_a_whole_loop,
    is_beside_an_engine,
    is_load_shedding,
    is_outside_training,
    is_weighed,
    is_where_something_moved,
    measures_memory,
)
from perflint.analysis.phases.pictures import is_for_a_picture
from perflint.analysis.phases.scripts import is_trial_run, main_guard
from perflint.analysis.phases.seldom import (
    hands_over,
    is_between_phases,
    is_conversion,
    is_empty_case,
    is_export,
    is_for_evaluation,
    is_line_per_epoch,
    is_tried_out,
    runs_rarely,
)
from perflint.analysis.phases.step_texts import comes_from_step, makes_text, opens_data, stands_in_step
from perflint.analysis.phases.training_loops import (
    BACKWARD,
    identifiers_below,
    identifiers_near,
    is_about_agents,
    is_training_loop,
    shares_on_the_host,
    trains_one_layer,
)
from perflint.analysis.phases.wide_products import (
    first_loop_of_model,
    is_loop_of_model,
    is_narrow,
    multiplies,
    own_factories,
)
from perflint.analysis.values.autocasts import autocast_in_wide_range, branch_for_wide, switches_float16

__all__ = [
    "BACKWARD",
    "Helper",
    "accumulates_by_default",
    "asks_hardware",
    "autocast_in_wide_range",
    "beside_generation",
    "branch_for_wide",
    "comes_from_step",
    "debug_setting",
    "debug_switch",
    "first_loop_of_model",
    "forward_on_grown",
    "generates_or_predicts",
    "gives_up_the_step",
    "hands_over",
    "has_run_a_whole_loop",
    "identifiers_below",
    "identifiers_near",
    "is_about_agents",
    "is_beside_an_engine",
    "is_between_phases",
    "is_conversion",
    "is_empty_case",
    "is_export",
    "is_for_a_picture",
    "is_for_a_profiler",
    "is_for_evaluation",
    "is_in_every_run",
    "is_line_per_epoch",
    "is_load_shedding",
    "is_loop_of_model",
    "is_measured_each_turn",
    "is_narrow",
    "is_on_a_mac",
    "is_option",
    "is_outside_training",
    "is_training_loop",
    "is_trial_run",
    "is_tried_out",
    "is_weighed",
    "is_where_something_moved",
    "leads_to_a_search",
    "main_guard",
    "makes_text",
    "measures_memory",
    "multiplies",
    "names_of_option",
    "one_text_helper",
    "opens_data",
    "own_factories",
    "runs_rarely",
    "shares_on_the_host",
    "stands_in_step",
    "steps_here",
    "switches_float16",
    "trains_one_layer",
]
