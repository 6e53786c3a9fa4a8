"""What the processes of one training share: gradients, and when they are reduced."""

from __future__ import annotations

from perflint.analysis.frequency.accumulation import clips_each_time, gathers_for
from perflint.analysis.frequency.collectives import COLLECTIVES, is_collective, loop_over_values, row_of_collectives
from perflint.analysis.gradients.data_parallel import is_data_parallel, trains_under_ddp, trains_wrapped
from perflint.analysis.gradients.reductions import minds_reductions, no_sync_around_backward_only

__all__ = [
    "COLLECTIVES",
    "clips_each_time",
    "gathers_for",
    "is_collective",
    "is_data_parallel",
    "loop_over_values",
    "minds_reductions",
    "no_sync_around_backward_only",
    "row_of_collectives",
    "trains_under_ddp",
    "trains_wrapped",
]
