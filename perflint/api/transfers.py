"""Copies between the host and the device."""

from __future__ import annotations

from perflint.analysis.transfers.copy_blocks import first_of_each_block
from perflint.analysis.transfers.data_copies import DataCopy, data_copy_at
from perflint.analysis.transfers.destinations import goes_to_accelerator, type_of
from perflint.analysis.transfers.empty_tensors import holds_no_elements
from perflint.analysis.transfers.host_casts import cast_before
from perflint.analysis.transfers.host_copies import (
    MOVES,
    Copy,
    What,
    asks_not_to_block,
    blocks_by_parameter,
    copy_at,
    is_pass,
    sized_type,
)
from perflint.analysis.transfers.host_data import is_written_out
from perflint.analysis.transfers.index_uses import counts_up_by_one, is_read_on_host
from perflint.analysis.transfers.indices import index_copied_at
from perflint.analysis.transfers.legacy import copied_data, drawn_by, dtype_of
from perflint.analysis.transfers.made_before import made_before
from perflint.analysis.transfers.module_moves import (
    comes_and_goes,
    goes_to_device,
    is_another_module,
    is_any_argument,
    is_moved_around,
)
from perflint.analysis.transfers.moved_modules import (
    follows_another,
    goes_by_table,
    is_a_layer,
    is_where_needed,
    may_be_module,
)
from perflint.analysis.transfers.moves import aligns, constructor
from perflint.analysis.transfers.own_memory import made_anew
from perflint.analysis.transfers.pageable import made_in_step, of_array, of_own_iterator
from perflint.analysis.transfers.redundant import copied_before, cut_later
from perflint.analysis.transfers.widenings import widens
from perflint.analysis.values.lists_of_arrays import are_small, holds_arrays, is_little

__all__ = [
    "MOVES",
    "Copy",
    "DataCopy",
    "What",
    "aligns",
    "are_small",
    "asks_not_to_block",
    "blocks_by_parameter",
    "cast_before",
    "comes_and_goes",
    "constructor",
    "copied_before",
    "copied_data",
    "copy_at",
    "counts_up_by_one",
    "cut_later",
    "data_copy_at",
    "drawn_by",
    "dtype_of",
    "first_of_each_block",
    "follows_another",
    "goes_by_table",
    "goes_to_accelerator",
    "goes_to_device",
    "holds_arrays",
    "holds_no_elements",
    "index_copied_at",
    "is_a_layer",
    "is_another_module",
    "is_any_argument",
    "is_little",
    "is_moved_around",
    "is_pass",
    "is_read_on_host",
    "is_where_needed",
    "is_written_out",
    "made_anew",
    "made_before",
    "made_in_step",
    "may_be_module",
    "of_array",
    "of_own_iterator",
    "sized_type",
    "type_of",
    "widens",
]
