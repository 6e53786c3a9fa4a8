"""Where graphs are recorded, kept and wanted."""

from __future__ import annotations

from perflint.analysis.effects.kept_by_calls import kept_by_call
from perflint.analysis.gradients.carried import carries_graph, may_carry_graph
from perflint.analysis.gradients.discarded_gradients import Discarded, discarded_gradients, runs_between
from perflint.analysis.gradients.escaping import (
    grows_argument,
    handed_out,
    is_number_without_graph,
    made_from_forwards,
    shown_as_text,
)
from perflint.analysis.gradients.evaluated_calls import may_evaluate, only_evaluates
from perflint.analysis.gradients.evaluating_callers import evaluated_elsewhere
from perflint.analysis.gradients.evaluating_flags import flagged_evaluation
from perflint.analysis.gradients.evaluation_helpers import run_by_helper
from perflint.analysis.gradients.evaluation_loops import (
    evaluating_forwards,
    evaluating_passes,
    evaluating_script,
    first_with_gradients,
    goes_to_numpy,
    is_evaluated_as_a_whole,
    is_volatile,
    predicts,
    stands_in_training,
    tells_of_modes,
    walks_back,
)
from perflint.analysis.gradients.foreign_graphs import foreign_maker
from perflint.analysis.gradients.forwards import (
    is_forward,
    is_given_counts,
    is_method_of_values,
)
from perflint.analysis.gradients.frozen_encoders import frozen_forwards
from perflint.analysis.gradients.frozen_parts import runs_frozen_part
from perflint.analysis.gradients.fused import cannot_be_fused, is_over_few_tensors
from perflint.analysis.gradients.helper_forwards import (
    Behind,
    forward_behind,
    runs_every_turn,
)
from perflint.analysis.gradients.in_reach import (
    gradients_in_reach,
    has_fast_path,
    is_scripted,
    is_under_autocast,
    may_learn,
    outlasting,
    tells_of_gradients,
)
from perflint.analysis.gradients.method_forwards import network_of, runs_own_layers
from perflint.analysis.gradients.mode_switches import evaluated_by
from perflint.analysis.gradients.model_calls import (
    asks_for_gradients,
    is_model_call,
    may_differentiate,
    name_of_whole,
    runs_network,
)
from perflint.analysis.gradients.module_sizes import holds_nothing
from perflint.analysis.gradients.never_stepped import is_never_stepped
from perflint.analysis.gradients.never_trained import never_trained
from perflint.analysis.gradients.number_uses import becomes_text
from perflint.analysis.gradients.optimized import steps_no_model
from perflint.analysis.gradients.own_steps import trains_itself
from perflint.analysis.gradients.results import (
    Followed,
    forwards_behind,
    has_no_graph,
    learns,
    switches_itself,
)
from perflint.analysis.gradients.trained_after import (
    forwards_of_loss,
    is_differentiated,
    is_walked_again,
    trained_after,
)
from perflint.analysis.gradients.value_reads import read_for_values, reads_by_data, reads_texts_alone
from perflint.analysis.gradients.walked_back import (
    goes_back,
    holds_walked_back,
    is_itself_walked_back,
    is_part_of_walked_back,
    is_walked_back,
    is_walked_back_with,
    value_of_sum,
)
from perflint.analysis.gradients.walks_elsewhere import walks_back_elsewhere
from perflint.analysis.gradients.ways_without import (
    is_called_without_gradients,
)
from perflint.analysis.gradients.zeroed import (
    is_idle,
    zeroes_by_default,
    zeroes_gradients,
)
from perflint.analysis.values.chosen_attention import is_chosen_on_purpose, needs_eager
from perflint.analysis.values.compiled_handles import (
    CompiledHandle,
    called_uncompiled,
    compiled_handle,
    is_used_elsewhere,
    wrapped_uncompiled,
)
from perflint.analysis.values.first_results import first_taken, only_first_used
from perflint.analysis.values.item_reads import ItemReads
from perflint.analysis.values.module_paths import CompiledAround, compiled_around, module_path
from perflint.analysis.values.next_layers import next_in_forward, next_in_sequence
from perflint.analysis.values.own_tensors import has_own_tensors
from perflint.analysis.values.single_operations import single_operation

__all__ = [
    "Behind",
    "CompiledAround",
    "CompiledHandle",
    "Discarded",
    "Followed",
    "ItemReads",
    "asks_for_gradients",
    "becomes_text",
    "called_uncompiled",
    "cannot_be_fused",
    "carries_graph",
    "compiled_around",
    "compiled_handle",
    "discarded_gradients",
    "evaluated_by",
    "evaluated_elsewhere",
    "evaluating_forwards",
    "evaluating_passes",
    "evaluating_script",
    "first_taken",
    "first_with_gradients",
    "flagged_evaluation",
    "foreign_maker",
    "forward_behind",
    "forwards_behind",
    "forwards_of_loss",
    "frozen_forwards",
    "goes_back",
    "goes_to_numpy",
    "gradients_in_reach",
    "grows_argument",
    "handed_out",
    "has_fast_path",
    "has_no_graph",
    "has_own_tensors",
    "holds_nothing",
    "holds_walked_back",
    "is_called_without_gradients",
    "is_chosen_on_purpose",
    "is_differentiated",
    "is_evaluated_as_a_whole",
    "is_forward",
    "is_given_counts",
    "is_idle",
    "is_itself_walked_back",
    "is_method_of_values",
    "is_model_call",
    "is_never_stepped",
    "is_number_without_graph",
    "is_over_few_tensors",
    "is_part_of_walked_back",
    "is_scripted",
    "is_under_autocast",
    "is_used_elsewhere",
    "is_volatile",
    "is_walked_again",
    "is_walked_back",
    "is_walked_back_with",
    "kept_by_call",
    "learns",
    "made_from_forwards",
    "may_carry_graph",
    "may_differentiate",
    "may_evaluate",
    "may_learn",
    "module_path",
    "name_of_whole",
    "needs_eager",
    "network_of",
    "never_trained",
    "next_in_forward",
    "next_in_sequence",
    "only_evaluates",
    "only_first_used",
    "outlasting",
    "predicts",
    "read_for_values",
    "reads_by_data",
    "reads_texts_alone",
    "run_by_helper",
    "runs_between",
    "runs_every_turn",
    "runs_frozen_part",
    "runs_network",
    "runs_own_layers",
    "shown_as_text",
    "single_operation",
    "stands_in_training",
    "steps_no_model",
    "switches_itself",
    "tells_of_gradients",
    "tells_of_modes",
    "trained_after",
    "trains_itself",
    "value_of_sum",
    "walks_back",
    "walks_back_elsewhere",
    "wrapped_uncompiled",
    "zeroes_by_default",
    "zeroes_gradients",
]
