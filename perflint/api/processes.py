"""What the processes of one training share: gradients, and when they are reduced."""

from __future__ import annotations

from perflint.analysis.frequency.accumulation import clips_each_time, gathers_for
from perflint.analysis.gradients.data_parallel import trains_under_ddp
from perflint.analysis.gradients.reductions import minds_reductions, no_sync_around_backward_only

__all__ = [
    "clips_each_time",
    "gathers_for",
    "minds_reductions",
    "no_sync_around_backward_only",
    "trains_under_ddp",
]
