"""A program is told the same when its parameters and local names say nothing: names may make a finding surer, and never
make or kill one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from renaming import renamed

from perflint import testing

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = {str(case): case for case in testing.find_cases(FIXTURES) if case.group[0] != "_"}
#: What a name alone still decides, by what it names. Take a case out when a fact tells; put none in.
LEFT: dict[str, tuple[str, ...]] = {
    "what turns texts into tokens": (
        "TPL101-blocking-transfer/forwards_of_a_library",
        "TPL109-tokenize-in-step/constant_prompt",
        "TPL109-tokenize-in-step/example",
        "TPL109-tokenize-in-step/texts_to_calibrate_with",
        "TPL109-tokenize-in-step/through_helpers_of_the_step",
        "TPL115-pad-to-max-length/example",
        "TPL115-pad-to-max-length/generation_finetuning",
        "TPL115-pad-to-max-length/one_shape_for_xla",
        "TPL115-pad-to-max-length/padded_in_the_loop",
        "TPL201-sync-in-hot-loop/in_a_forward_and_beside_generation",
        "TPL601-per-sample-forward/gradients_of_each_sample",
        "TPL602-per-sample-generate/example",
        "TPL602-per-sample-generate/prompts_written_in_the_loop",
        "TPL607-eager-attention/example",
    ),
    "a model, a loss or a part of one": (
        "TPL203-tensor-formatting/writers_handed_on",
        "TPL201-sync-in-hot-loop/one_or_the_other",
        "TPL204-explicit-synchronize/between_phases",
        "TPL201-sync-in-hot-loop/texts_one_by_one",
        "TPL201-sync-in-hot-loop/wanted_on_the_host",
        "TPL202-tensor-in-condition/losses_of_unknown_models",
        "TPL204-explicit-synchronize/after_generation",
        "TPL301-deepcopy-state-dict/snapshot_on_every_step",
        "TPL306-graph-kept-by-accumulator/ways_to_keep",
        "TPL307-zero-grad-to-zeros/wrappers_of_an_optimizer",
        "TPL308-grad-in-evaluation/loops_of_a_training_function",
        "TPL309-growing-cat/one_number_for_each_row",
        "TPL314-teacher-forward-with-grad/computed_and_detached",
        "TPL314-teacher-forward-with-grad/example",
        "TPL314-teacher-forward-with-grad/places_have_no_graph",
        "TPL314-teacher-forward-with-grad/ways_to_detach",
        "TPL506-invariant-recompute/frozen_forward_and_grid",
        "TPL506-invariant-recompute/models_that_draw",
        "TPL506-invariant-recompute/timed_from_outside",
        "TPL601-per-sample-forward/example",
        "TPL601-per-sample-forward/moved_key_by_key",
        "TPL601-per-sample-forward/through_a_function_for_one_sample",
        "TPL603-python-loop-over-tensor/fetched_before",
        "TPL603-python-loop-over-tensor/rows_that_are_not_alike",
        "TPL604-decode-without-kv-cache/grown_in_two_ways",
        "TPL604-decode-without-kv-cache/other_spellings",
        "TPL608-prefix-loop-loss/example",
    ),
    "what gives batches, or is one": (
        "TPL101-blocking-transfer/entry_by_entry",
        "TPL101-blocking-transfer/iterators_as_they_were_once",
        "TPL101-blocking-transfer/legacy_classes",
        "TPL101-blocking-transfer/loader_known_by_its_name",
        "TPL101-blocking-transfer/mapped_by_a_lambda",
        "TPL111-batch-size-one/batches_by_other_means",
        "TPL116-cast-before-transfer/example",
        "TPL201-sync-in-hot-loop/batch_moved_but_for_some_keys",
        "TPL201-sync-in-hot-loop/steps_of_a_library",
        "TPL201-sync-in-hot-loop/trains_beside_a_scheduler",
        "TPL205-data-dependent-shape/read_next_anyway",
        "TPL308-grad-in-evaluation/forwards_of_a_helper",
        "TPL308-grad-in-evaluation/runners_with_gradients_off",
        "TPL309-growing-cat/over_a_handful",
        "TPL309-growing-cat/ways_to_grow",
        "TPL404-graph-break-in-compiled/switch_that_nothing_sets",
        "TPL501-regex-compile-in-loop/lost_beside_other_work",
        "TPL508-params-walk-per-step/penalties_against_another_model",
        "TPL802-ddp-sync-every-microbatch/example",
    ),
    "a device": (
        "TPL101-blocking-transfer/reads_back_each_turn",
        "TPL103-loader-without-workers/dataset_on_the_device",
        "TPL202-tensor-in-condition/moved_where_there_is_a_device",
        "TPL205-data-dependent-shape/functions_inside_of_a_forward",
        "TPL402-compile-in-hot-path/settings_that_are_tried",
        "TPL504-module-switch-in-step/moved_for_a_reason",
        "TPL703-tf32-off/attention_of_a_factory",
    ),
    "what a container holds": (
        "TPL104-respawned-workers/dataset_told_the_epoch",
        "TPL201-sync-in-hot-loop/gathered_on_the_host",
        "TPL201-sync-in-hot-loop/on_the_way_to_a_file",
        "TPL301-deepcopy-state-dict/entries_replaced",
        "TPL309-growing-cat/beside_a_generation",
        "TPL309-growing-cat/cut_into_parts",
        "TPL501-regex-compile-in-loop/built_again_over_a_state_dict",
        "TPL501-regex-compile-in-loop/names_of_no_model_and_numbers",
        "TPL605-per-parameter-update/example",
        "TPL609-row-by-row-decode/shown_as_it_comes",
    ),
    "how much there is of something, and how long it goes on": (
        "TPL101-blocking-transfer/more_than_is_used",
        "TPL101-blocking-transfer/pageable_all_the_same",
        "TPL617-projection-in-recurrence/ways_to_apply",
        "TPL115-pad-to-max-length/short_questions",
        "TPL201-sync-in-hot-loop/around_the_decoding",
        "TPL201-sync-in-hot-loop/search_on_the_host",
        "TPL201-sync-in-hot-loop/host_values_in_a_forward",
        "TPL201-sync-in-hot-loop/losses_of_unknown_origin",
        "TPL202-tensor-in-condition/sums_of_unknown_shapes",
        "TPL204-explicit-synchronize/helpers_and_latencies",
        "TPL204-explicit-synchronize/timed_in_production",
        "TPL303-gc-in-hot-loop/a_few_steps",
        "TPL309-growing-cat/few_by_their_names_or_options",
        "TPL310-constant-tensor-in-hot-path/masks_of_l_by_l",
        "TPL405-uncompiled-model/small_networks_and_full_batches",
        "TPL505-repeated-forward/once_or_drawn",
        "TPL506-invariant-recompute/inputs_that_change",
        "TPL603-python-loop-over-tensor/once_a_search_is_over",
        "TPL603-python-loop-over-tensor/once_a_text_is_decoded",
    ),
    "what a turn of a loop is": (
        "TPL304-empty-cache-in-hot-loop/speed_given_up_for_memory",
        "TPL603-python-loop-over-tensor/sums_and_lists_of_rows",
        "TPL201-sync-in-hot-loop/first_turn_of_an_inner_loop",
        "TPL201-sync-in-hot-loop/read_once_in_a_while",
        "TPL203-tensor-formatting/only_when_asked_for",
        "TPL203-tensor-formatting/said_rarely",
        "TPL206-log-every-microbatch/once_per_epoch_of_a_graph",
        "TPL503-model-built-in-loop/fresh_models_are_needed",
        "TPL505-repeated-forward/helpers_that_may_differ",
        "TPL505-repeated-forward/runs_that_may_differ",
    ),
    "what is asked for": (
        "TPL103-loader-without-workers/chosen_by_its_name",
        "TPL104-respawned-workers/many_by_default",
        "TPL101-blocking-transfer/batches_that_can_be_told",
        "TPL101-blocking-transfer/cuda_or_the_host",
        "TPL101-blocking-transfer/kept_on_the_host",
        "TPL103-loader-without-workers/data_in_memory_and_evaluation",
        "TPL201-sync-in-hot-loop/made_as_a_file_says",
        "TPL201-sync-in-hot-loop/options_of_configurations",
        "TPL208-device-stats-every-step/where_memory_is_measured",
        "TPL302-clone-before-load/copies_that_are_needed",
        "TPL304-empty-cache-in-hot-loop/between_phases_and_after_errors",
        "TPL508-params-walk-per-step/behind_a_switch",
        "TPL609-row-by-row-decode/beside_generation",
        "TPL702-scaler-with-bfloat16/kept_for_checkpoints",
    ),
    "several at once": (
        "TPL201-sync-in-hot-loop/helpers_with_other_callers",
        "TPL201-sync-in-hot-loop/what_no_call_asks_for",
        "TPL107-alloc-then-transfer/once_per_epoch",
        "TPL308-grad-in-evaluation/results_only_read",
        "TPL501-regex-compile-in-loop/constant_named_in_the_loop",
    ),
}
_LEFT = {name: why for why, names in LEFT.items() for name in names}


def findings(texts: dict[str, str], rules: list[type]) -> set[tuple[str, int, str]]:
    found = testing.checked(texts, [rule() for rule in rules]).findings
    return {(finding.path, finding.span.line, finding.code) for finding in found}


@pytest.mark.parametrize("name", sorted(CASES))
def test_names_decide_nothing(name: str) -> None:
    marked = dict(CASES[name].read())
    texts = {path: item.text for path, item in marked.items()}
    meaningless = renamed(texts, "parameters") or texts
    meaningless = renamed(meaningless, "locals") or meaningless
    if meaningless == texts:
        pytest.skip("nothing in it has a name of its own")
    rules = testing.rules_for(CASES[name], marked)
    told, whole = findings(meaningless, rules), findings(texts, rules)
    if name in _LEFT:
        assert told != whole, "a name decides nothing here any more: take the case out of LEFT"
        return
    assert told == whole, f"lost {sorted(whole - told)}, new {sorted(told - whole)}"


def test_what_is_left_is_there() -> None:
    assert not _LEFT.keys() - CASES.keys()
