"""How models are made small and get inputs: what has to be equal stays so, and errors tell what inputs lack."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from small_configurations import Sizes, _small, _tie_heads
from small_inputs import VARIANTS, Inputs, that_run

torch = pytest.importorskip("torch")


class Model:
    """Takes sound as (batch, time, bins) of exactly so many bins, and words only with a mask of their own."""

    main_input_name = "input_features"
    config = SimpleNamespace(num_mel_bins=80)

    def __init__(self, bins: int) -> None:
        self.bins = bins

    def forward(self, input_features: Any, gate_mask: Any = None) -> Any:
        if gate_mask is None:
            raise ValueError("You have to specify gate_mask")
        return input_features @ torch.ones(self.bins, 4)

    __call__ = forward


def test_errors_tell_what_inputs_lack() -> None:
    found = that_run(Model(560), VARIANTS[0])
    assert found["input_features"].shape[-1] == 560
    assert "gate_mask" in found


@pytest.mark.parametrize(
    ("message", "before", "after"),
    [
        (
            "Given groups=1, expected input[2, 64, 80] to have 128 channels, but got 64 channels",
            (2, 64, 80),
            (2, 128, 80),
        ),
        ("`input_values` length 8000 is not a multiple of 1920", (2, 8000), (2, 9600)),
        ("Given normalized_shape=[96], expected input with [*, 96], but got input of size[2, 80]", (2, 80), (2, 96)),
        ("Given groups=1, expected input[1, 2, 8000] to have 1 channels, but got 2 channels", (2, 8000), (2, 1, 8000)),
    ],
)
def test_an_error_about_an_axis_changes_it(message: str, before: tuple[int, ...], after: tuple[int, ...]) -> None:
    inputs = Inputs(Model(80), VARIANTS[0])
    assert inputs.learns_from(message)
    assert inputs._fitting(torch.rand(before)).shape == after
    assert not inputs.learns_from("CUDA error"), "what tells nothing ends the attempts"


def test_widths_that_nothing_is_equal_to_are_multiples_of_eight() -> None:
    assert _small("moe_intermediate_size", 1407, Sizes(8), 2) == 176
    assert _small("hidden_size", 1280, Sizes(8), 2) == 160


def test_heads_divide_the_width_and_keys_the_heads() -> None:
    one = SimpleNamespace(hidden_size=144, num_attention_heads=14, num_key_value_heads=14, head_dim=None)
    _tie_heads(one)
    assert (one.num_attention_heads, one.num_key_value_heads, one.head_dim) == (8, 2, 18)
