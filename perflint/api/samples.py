"""Loops that hand out one sample per iteration, and what is given it."""

from __future__ import annotations

from perflint.analysis.frequency.handed_out import handed_out, hands_out_parts, is_several_texts, shows_each
from perflint.analysis.frequency.per_item_calls import edge_of_items, loop_header
from perflint.analysis.gradients.in_batches import changes_model, gives_the_same_in_batches
from perflint.analysis.invariants.recurrences import steps_through
from perflint.analysis.invariants.turn_dependence import (
    Turning,
    bound_by,
    feeds_itself,
    is_of_own_size,
    needed,
    turning_loops,
)
from perflint.analysis.values.prefixes import forward_of_prefix, prefixes_in, reads_next
from perflint.analysis.values.single_samples import (
    is_of_nesting,
    is_of_unstacked,
    is_row_of_tensor,
    makes_batch_of_one,
    makes_tokens,
    rows_of,
)
from perflint.analysis.values.takers import takers
from perflint.analysis.values.tokenizers import is_tokenizer
from perflint.analysis.values.turn_texts import adds_to_inputs, is_one_text, text_of_turn

__all__ = [
    "Turning",
    "adds_to_inputs",
    "bound_by",
    "changes_model",
    "edge_of_items",
    "feeds_itself",
    "forward_of_prefix",
    "gives_the_same_in_batches",
    "handed_out",
    "hands_out_parts",
    "is_of_nesting",
    "is_of_own_size",
    "is_of_unstacked",
    "is_one_text",
    "is_row_of_tensor",
    "is_several_texts",
    "is_tokenizer",
    "loop_header",
    "makes_batch_of_one",
    "makes_tokens",
    "needed",
    "prefixes_in",
    "reads_next",
    "rows_of",
    "shows_each",
    "steps_through",
    "takers",
    "text_of_turn",
    "turning_loops",
]
