"""Data loaders: what they are given, and what a sample costs."""

from __future__ import annotations

from perflint.analysis.loading.array_loops import filled_by_element, masked_by_class
from perflint.analysis.loading.asked_devices import (
    goes_back_to_device,
    is_asked_for_device,
    is_replay_buffer,
    is_run_in_workers,
    is_told_by_device,
    makes_batches,
)
from perflint.analysis.loading.copied_batches import is_copied
from perflint.analysis.loading.decoded_for_size import is_decoded_for_size
from perflint.analysis.loading.evidence import confidence_by_use, loader_confidence
from perflint.analysis.loading.few_workers import is_short_of_workers
from perflint.analysis.loading.fixed_files import is_picked_from, reads_one_file
from perflint.analysis.loading.inference_passes import is_inference_pass
from perflint.analysis.loading.item_reads import earlier_reads
from perflint.analysis.loading.loaders import (
    LOADER_NAMES,
    SAMPLERS,
    builds_data_loader,
    can_be_pinned,
    has_no_workers,
    is_derived_loader,
    is_one_batch,
    is_plain_loader,
    is_sampling_loader,
    is_zero,
    option,
    purpose,
    uses_accelerator,
    workers,
)
from perflint.analysis.loading.option_dicts import bound_options, is_given_one_of, loader_with
from perflint.analysis.loading.passes import (
    Run,
    only_looks,
    runs,
)
from perflint.analysis.loading.pinned_batches import is_left_off, why_not_pinned
from perflint.analysis.loading.prepared import prepares_training_data
from perflint.analysis.loading.rebuilt import begins_often, begun_by_next, runs_on_some_turns, stays_the_same
from perflint.analysis.loading.sample_cost import (
    dataset_work,
    hands_samples_on,
    is_moved,
    is_of_notebook,
    makes_own_batches,
    moves_to_device,
    needs_workers,
    works_on_device,
)
from perflint.analysis.loading.sample_functions import decodes_beside, earlier_calls
from perflint.analysis.loading.spread_options import hides_options, option_of
from perflint.analysis.loading.worker_starts import has_short_passes, is_made_each_epoch, spawns_workers, starts_show
from perflint.analysis.values.rows import has_rows
from perflint.analysis.values.text_lengths import is_cut_to_length, is_short_length

__all__ = [
    "LOADER_NAMES",
    "SAMPLERS",
    "Run",
    "begins_often",
    "begun_by_next",
    "bound_options",
    "builds_data_loader",
    "can_be_pinned",
    "confidence_by_use",
    "dataset_work",
    "decodes_beside",
    "earlier_calls",
    "earlier_reads",
    "filled_by_element",
    "goes_back_to_device",
    "hands_samples_on",
    "has_no_workers",
    "has_rows",
    "has_short_passes",
    "hides_options",
    "is_asked_for_device",
    "is_copied",
    "is_cut_to_length",
    "is_decoded_for_size",
    "is_derived_loader",
    "is_given_one_of",
    "is_inference_pass",
    "is_left_off",
    "is_made_each_epoch",
    "is_moved",
    "is_of_notebook",
    "is_one_batch",
    "is_picked_from",
    "is_plain_loader",
    "is_replay_buffer",
    "is_run_in_workers",
    "is_sampling_loader",
    "is_short_length",
    "is_short_of_workers",
    "is_told_by_device",
    "is_zero",
    "loader_confidence",
    "loader_with",
    "makes_batches",
    "makes_own_batches",
    "masked_by_class",
    "moves_to_device",
    "needs_workers",
    "only_looks",
    "option",
    "option_of",
    "prepares_training_data",
    "purpose",
    "reads_one_file",
    "runs",
    "runs_on_some_turns",
    "spawns_workers",
    "starts_show",
    "stays_the_same",
    "uses_accelerator",
    "why_not_pinned",
    "workers",
    "works_on_device",
]
