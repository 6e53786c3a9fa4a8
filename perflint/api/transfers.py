"""Copies between the host and the device."""

from __future__ import annotations

from perflint.analysis.transfers.data_copies import DataCopy, data_copy_at
from perflint.analysis.transfers.host_copies import (
    MOVES,
    Copy,
    What,
    asks_not_to_block,
    copies_in,
    copy_at,
    is_pass,
    sized_type,
)
from perflint.analysis.transfers.host_data import is_written_out
from perflint.analysis.transfers.indices import index_copied_at
from perflint.analysis.transfers.legacy import copied_data, drawn_by, dtype_of
from perflint.analysis.transfers.moves import aligns, constructor
from perflint.analysis.transfers.redundant import copied_before, cut_later

__all__ = [
    "MOVES",
    "Copy",
    "DataCopy",
    "What",
    "aligns",
    "asks_not_to_block",
    "constructor",
    "copied_before",
    "copied_data",
    "copies_in",
    "copy_at",
    "cut_later",
    "data_copy_at",
    "drawn_by",
    "dtype_of",
    "index_copied_at",
    "is_pass",
    "is_written_out",
    "sized_type",
]
