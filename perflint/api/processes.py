"""What the processes of one training share: gradients, and when they are reduced."""

from __future__ import annotations

from perflint.analysis.frequency.accumulated_elsewhere import gathered_before, step_of_caller
from perflint.analysis.frequency.accumulation import clips_each_time, gathers_for, has_one_by_default
from perflint.analysis.frequency.chance_turns import turns_once_as_a_rule
from perflint.analysis.frequency.collectives import COLLECTIVES, is_collective, loop_over_values, row_of_collectives
from perflint.analysis.gradients.data_parallel import (
    copies_module,
    has_process_for_each,
    is_data_parallel,
    is_offered,
    option_of_several,
    runs_forward,
    trains_wrapped,
)
from perflint.analysis.gradients.process_groups import gloo_backend, is_chosen
from perflint.analysis.gradients.reductions import minds_reductions, no_sync_around_backward_only
from perflint.analysis.gradients.under_ddp import callers_train_under_ddp, trains_under_ddp
from perflint.analysis.gradients.unused_parts import hands_to_others, leaves_out_parts

__all__ = [
    "COLLECTIVES",
    "callers_train_under_ddp",
    "clips_each_time",
    "copies_module",
    "gathered_before",
    "gathers_for",
    "gloo_backend",
    "hands_to_others",
    "has_one_by_default",
    "has_process_for_each",
    "is_chosen",
    "is_collective",
    "is_data_parallel",
    "is_offered",
    "leaves_out_parts",
    "loop_over_values",
    "minds_reductions",
    "no_sync_around_backward_only",
    "option_of_several",
    "row_of_collectives",
    "runs_forward",
    "step_of_caller",
    "trains_under_ddp",
    "trains_wrapped",
    "turns_once_as_a_rule",
]
