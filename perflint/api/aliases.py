"""Which values share memory, and who may write into it."""

from __future__ import annotations

from perflint.analysis.aliases.accumulators import (
    Accumulated,
    accumulated,
    begins_here,
    is_read_for_numbers,
    outlives_iteration,
    uses_of_accumulated,
)
from perflint.analysis.aliases.entries import ClonedEntries, cloned_entries, only_rebinds_entries, value_cloned
from perflint.analysis.aliases.fresh_values import just_made, may_change
from perflint.analysis.aliases.idle_copies import is_idle_copy
from perflint.analysis.aliases.idle_layouts import is_idle_layout
from perflint.analysis.aliases.kept_objects import is_kept_object
from perflint.analysis.aliases.modules import (
    comes_from,
    is_only_looped_over,
    is_part,
    is_same,
    loads_in_its_own_way,
    takes_in_others,
)
from perflint.analysis.aliases.new_tensors import crosses_devices, is_new_tensor
from perflint.analysis.aliases.overwritten import overwritten_by
from perflint.analysis.aliases.owned_modules import is_owned
from perflint.analysis.aliases.read_only import is_mutated_within, stays_here, unread
from perflint.analysis.aliases.writes import changes_later, is_written_in

__all__ = [
    "Accumulated",
    "ClonedEntries",
    "accumulated",
    "begins_here",
    "changes_later",
    "cloned_entries",
    "comes_from",
    "crosses_devices",
    "is_idle_copy",
    "is_idle_layout",
    "is_kept_object",
    "is_mutated_within",
    "is_new_tensor",
    "is_only_looped_over",
    "is_owned",
    "is_part",
    "is_read_for_numbers",
    "is_same",
    "is_written_in",
    "just_made",
    "loads_in_its_own_way",
    "may_change",
    "only_rebinds_entries",
    "outlives_iteration",
    "overwritten_by",
    "stays_here",
    "takes_in_others",
    "unread",
    "uses_of_accumulated",
    "value_cloned",
]
