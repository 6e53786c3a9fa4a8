"""Where graphs are recorded, kept and wanted."""

from __future__ import annotations

from perflint.analysis.effects.kept_by_calls import kept_by_call
from perflint.analysis.gradients.carried import GRAPH_CARRIERS, carries_graph, may_carry_graph
from perflint.analysis.gradients.drawn_anew import draws_anew
from perflint.analysis.gradients.escaping import (
    grows_argument,
    handed_out,
    is_number_without_graph,
    made_from_forwards,
    shown_as_text,
)
from perflint.analysis.gradients.evaluated_calls import may_evaluate, only_evaluates
from perflint.analysis.gradients.evaluating_callers import evaluated_by_callers
from perflint.analysis.gradients.evaluation_helpers import run_by_helper
from perflint.analysis.gradients.evaluation_loops import (
    evaluated,
    evaluating_forwards,
    evaluating_passes,
    first_with_gradients,
    goes_to_numpy,
    is_evaluated_as_a_whole,
    is_volatile,
    predicts,
    script_parts,
    stands_in_training,
    tells_of_modes,
)
from perflint.analysis.gradients.forwards import (
    CHANGES,
    DRAWS,
    FORWARD_METHODS,
    arguments,
    arguments_by_name,
    is_forward,
    is_given_counts,
    is_method_of_values,
    is_pure,
    only_shapes,
)
from perflint.analysis.gradients.helper_forwards import (
    Behind,
    forward_behind,
    is_changed,
    runs_every_turn,
    runs_given_model,
)
from perflint.analysis.gradients.in_reach import (
    ASKING,
    gradients_in_reach,
    has_fast_path,
    is_scripted,
    is_under_autocast,
    may_learn,
    outlasting,
    tells_of_gradients,
)
from perflint.analysis.gradients.model_calls import (
    asks_for_gradients,
    is_loss_function,
    is_loss_name,
    is_model_call,
    is_of_the_host,
    makes_instance,
    may_differentiate,
    name_of_whole,
    runs_network,
)
from perflint.analysis.gradients.module_sizes import holds_nothing
from perflint.analysis.gradients.number_uses import becomes_text, reads_number
from perflint.analysis.gradients.results import (
    Followed,
    forwards_behind,
    has_no_graph,
    learns,
    may_hold_parameters,
    switches_itself,
)
from perflint.analysis.gradients.walked_back import (
    goes_back,
    holds_walked_back,
    is_itself_walked_back,
    is_part_of_walked_back,
    is_walked_back,
    is_walked_back_with,
    value_of_sum,
)
from perflint.analysis.gradients.ways_without import (
    is_called_without_gradients,
    is_switched_off_by_some,
    may_run_without_gradients,
)
from perflint.analysis.values.item_reads import ItemReads
from perflint.analysis.values.own_tensors import has_own_tensors

__all__ = [
    "ASKING",
    "CHANGES",
    "DRAWS",
    "FORWARD_METHODS",
    "GRAPH_CARRIERS",
    "Behind",
    "Followed",
    "ItemReads",
    "arguments",
    "arguments_by_name",
    "asks_for_gradients",
    "becomes_text",
    "carries_graph",
    "draws_anew",
    "evaluated",
    "evaluated_by_callers",
    "evaluating_forwards",
    "evaluating_passes",
    "first_with_gradients",
    "forward_behind",
    "forwards_behind",
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
    "is_changed",
    "is_evaluated_as_a_whole",
    "is_forward",
    "is_given_counts",
    "is_itself_walked_back",
    "is_loss_function",
    "is_loss_name",
    "is_method_of_values",
    "is_model_call",
    "is_number_without_graph",
    "is_of_the_host",
    "is_part_of_walked_back",
    "is_pure",
    "is_scripted",
    "is_switched_off_by_some",
    "is_under_autocast",
    "is_volatile",
    "is_walked_back",
    "is_walked_back_with",
    "kept_by_call",
    "learns",
    "made_from_forwards",
    "makes_instance",
    "may_carry_graph",
    "may_differentiate",
    "may_evaluate",
    "may_hold_parameters",
    "may_learn",
    "may_run_without_gradients",
    "name_of_whole",
    "only_evaluates",
    "only_shapes",
    "outlasting",
    "predicts",
    "reads_number",
    "run_by_helper",
    "runs_every_turn",
    "runs_given_model",
    "runs_network",
    "script_parts",
    "shown_as_text",
    "stands_in_training",
    "switches_itself",
    "tells_of_gradients",
    "tells_of_modes",
    "value_of_sum",
]
