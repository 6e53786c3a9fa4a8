"""What configuration files set, as far as their text says it plainly."""

from __future__ import annotations

import pytest

from perflint.project.configured_values import values


def _set(path: str, text: str) -> set[str]:
    return {word.decode().removeprefix(":3 ") for word in values(path, text.encode(), 3)}


def test_maps_are_told_by_their_indentation_and_scalars_by_their_notation() -> None:
    text = """
# what is trained
model:
    depth: 4   # layers
    rate: 1e-4
    heads: [4, 8]
    name: "net # one"
    fast: no
    part: null
    inner:
      deep: True

seed: 1
"""
    assert _set("a.yaml", text) == {
        "model.depth=4", "model.rate=0.0001", "model.heads=[4, 8]", 'model.name="net # one"', "model.fast=false",
        "model.part=null", "model.inner.deep=true", "seed=1",
    }  # fmt: skip


def test_lists_say_how_many_they_hold_and_what_stands_in_their_maps() -> None:
    text = "steps:\n- kind: warm\n  turns: 2\n- kind: cool\nscales:\n  - 1\n  - 2\nlast: 3\n"
    assert _set("a.yml", text) == {
        'steps.0.kind="warm"', "steps.0.turns=2", 'steps.1.kind="cool"', "steps=[2]*", "scales=[1, 2]", "last=3",
    }  # fmt: skip


@pytest.mark.parametrize("value", ["*known", "{a: 1}", "[[1, 2], [3]]", "|\n  b: 1\n  c: 2", ">-\n  b: 1"])
def test_what_is_not_read_is_unknown_and_says_nothing_of_what_follows(value: str) -> None:
    assert _set("a.yaml", f"a: {value}\nd: 1\n") == {"a=?", "d=1"}


def test_a_part_with_a_name_for_others_is_read_as_it_stands() -> None:
    assert _set("a.yaml", "a: &base\n  b: 1\nc: !new:nets.Net\n  d: 2\n") == {"a.b=1", 'c="!new:nets.Net"', "c.d=2"}


def test_json_is_read_and_what_is_none_says_nothing() -> None:
    assert _set("a.json", '{"a": {"b": [1, 2], "c d": 1}, "e": "x"}') == {"a.b=[1, 2]", 'e="x"'}
    assert _set("a.json", "{") == set()


def test_a_file_of_data_says_nothing() -> None:
    assert _set("a.json", '{"a": 1' + " " * 70_000 + "}") == set()


def test_commands_set_what_they_name_by_its_path() -> None:
    text = "python train.py --gpu 1 MODEL.DEPTH 4 SOLVER.FAST=False \\\n agent.turns=2 +data.part='x' a.py b=3\n"
    assert _set("run.sh", text) == {"MODEL.DEPTH=4", "SOLVER.FAST=false", "agent.turns=2", 'data.part="x"'}


def test_hocon_is_read_by_its_braces() -> None:
    text = """
# what is trained
train {
    model_class = nets.Net   // by its name
    rate = 1.0e-4, steps : 5
    milestones = [250,500]
    inner = { deep : true }
}
seed = 1
"""
    assert _set("a.conf", text) == {
        'train.model_class="nets.Net"', "train.rate=0.0001", "train.steps=5", "train.milestones=[250, 500]",
        "train.inner.deep=true", "seed=1",
    }  # fmt: skip
