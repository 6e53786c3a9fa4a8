"""What is printed, drawn and kept of results, and how results of workloads are compared."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import random
import re
from collections import OrderedDict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch

from perflint.errors import PerflintError, SettingsError
from perflint.project.settings import Settings
from perflint.verify import evidence, outcome
from perflint.verify.options import options_from, threads_of
from perflint.verify.plot import write_plot
from perflint.verify.results import Machine, Result, Verdict, result_from_json
from perflint.verify.tables import markdown, table


@dataclass
class Thing:
    value: int

    def __hash__(self) -> int:
        return self.value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Hidden(random.Random):
    """Its state is no attribute."""


class Point(NamedTuple):
    x: int
    y: float


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def _linear(weight: float, grad: float | None = None) -> torch.nn.Linear:
    linear = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(linear.weight, weight)
    if grad is not None:
        linear.weight.grad = torch.full((1, 1), grad)
    return linear


MACHINE = Machine("cpu", "Some Processor", "2.9.0", python="3.11.7", system="Linux x86_64")
FASTER = Result(
    "TPL301", "Loading one state dict " * 8, "100 x 1k", Verdict.FASTER, 0.002, 0.001, 2.0, 1.9, 2.1, 2048, 1024, True
)
NEEDS_CUDA = Result("TPL101", "Copies", "", Verdict.NOT_MEASURABLE, reason="needs CUDA")
COMPILED = Result(
    "TPL405",
    "Steps",
    "1 x 16",
    Verdict.FASTER,
    0.002,
    0.001,
    2.0,
    1.9,
    2.1,
    first_before_s=0.01,
    first_after_s=10.01,
)


def test_nothing_of_a_table_is_cut_or_folded() -> None:
    text = table(MACHINE, [FASTER, NEEDS_CUDA], color=False)
    assert FASTER.workload in text
    row = next(line for line in text.splitlines() if line.startswith("TPL301"))
    assert "100 x 1k  2.00 ms  1.00 ms  2.00x  1.90 to 2.10" in row
    assert row.endswith("faster")


def test_what_cannot_be_measured_here_has_no_ratio() -> None:
    row = next(line for line in table(MACHINE, [NEEDS_CUDA], color=False).splitlines() if line.startswith("TPL101"))
    assert row.split(maxsplit=1)[1] == "not measurable here: needs CUDA"
    values = NEEDS_CUDA.to_json()
    assert {values[name] for name in ("before_s", "after_s", "ratio", "ratio_low", "ratio_high", "equal")} == {None}


def test_compiling_has_columns_of_its_own() -> None:
    text = table(MACHINE, [COMPILED], color=False)
    assert "10.0 ms > 10.0 s" in text
    assert "10,000 calls" in text
    assert "first call" not in table(MACHINE, [FASTER], color=False)


def test_markdown_cannot_be_broken_by_what_was_measured() -> None:
    text = markdown(MACHINE, [Result("TPL301", "a | b\n<script>", "x|y", Verdict.NO_DIFFERENCE)])
    assert "<script>" not in text.replace("\\<", "")
    assert "x\\|y" in text


def test_a_terminal_is_not_driven_by_what_a_workload_says() -> None:
    text = table(MACHINE, [Result("TPL301", "w", "", Verdict.DIFFERENT_RESULT, reason="\x1b[2J")], color=False)
    assert "\x1b" not in text


def test_a_plot_holds_each_ratio(tmp_path: Path) -> None:
    file = tmp_path / "plot.svg"
    write_plot(file, MACHINE, [FASTER, NEEDS_CUDA])
    root = ET.parse(file).getroot()
    assert len([item for item in root.iter() if item.tag.endswith("circle")]) == 1
    with pytest.raises(PerflintError, match=r"must end in \.svg or \.png"):
        write_plot(tmp_path / "plot.pdf", MACHINE, [FASTER])


def test_evidence_comes_back_with_device_version_and_date(tmp_path: Path) -> None:
    folder = evidence.folder_of(tmp_path)
    assert evidence.store(folder, MACHINE, [FASTER, NEEDS_CUDA], memory="") is not None
    lines = evidence.lines("TPL301", tmp_path)
    own = next(number for number, line in enumerate(lines) if "Some Processor" in line)
    assert "torch 2.9.0" in lines[own]
    assert "faster, 2x (1.9 to 2.1)" in lines[own + 1]


def test_what_has_no_figure_is_kept_beside_what_has_and_says_why(tmp_path: Path) -> None:
    late = Result("TPL301", FASTER.workload, FASTER.size, Verdict.NOT_MEASURABLE, reason="hung", failed=True)
    other = Result("TPL998", "Other", "large", Verdict.NOT_MEASURABLE, reason="only 4 trials", failed=True)
    folder = evidence.folder_of(tmp_path)
    evidence.store(folder, MACHINE, [FASTER, other], memory="")
    evidence.store(folder, MACHINE, [COMPILED, late], memory="")
    assert evidence.lines("TPL998", tmp_path)[0] == "not measured yet"
    assert evidence.lines("TPL998", tmp_path)[1].endswith("large: only 4 trials")
    # A run that failed does not take away what an earlier one measured.
    assert any("2x (1.9 to 2.1)" in line for line in evidence.lines("TPL301", tmp_path))


def test_nothing_measured_is_nothing_kept(tmp_path: Path) -> None:
    assert evidence.store(evidence.folder_of(tmp_path), MACHINE, [NEEDS_CUDA], memory="") is None
    assert evidence.lines("TPL999", tmp_path) == ["not measured yet"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"results": [{"code": 1}]}', '{"device": 1, "results": []}'])
def test_damaged_evidence_is_no_evidence(text: str, tmp_path: Path) -> None:
    folder = evidence.folder_of(tmp_path)
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(text)
    assert evidence.lines("TPL999", tmp_path) == ["not measured yet"]


def test_a_result_survives_json() -> None:
    assert result_from_json(json.loads(json.dumps(COMPILED.to_json()))) == COMPILED


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"a": torch.ones(2)}, {"a": torch.ones(2)}, ""),
        ({"a": torch.ones(2)}, {"a": torch.ones(2) + 1}, "differs by up to 1"),
        ([1, 2.0], [1, 2.5], "is 2.5 instead of 2.0"),
        ([1, 2], [1], "len"),
        ({"a": 1}, {"b": 1}, "is missing"),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), "has the type"),
        (float("nan"), float("nan"), ""),
        (torch.tensor([float("nan")]), torch.tensor([float("nan")]), ""),
        (torch.tensor([float("nan")]), torch.tensor([1.0]), "differs"),
        (torch.ones(1, requires_grad=True), torch.ones(1), "result.requires_grad is False instead of True"),
        (torch.eye(2).to_sparse(), torch.eye(2), "result.layout is 'torch.strided'"),
        (torch.eye(2).to_sparse(), 2 * torch.eye(2).to_sparse(), "differs by up to 1"),
        ([1], (1,), "is 'tuple' instead of 'list'"),
        ({1, 2}, {1, 3}, "is '{1, 3}'"),
        (None, 1, "is 1 instead of"),
        ([None], [1], "is 1 instead of 'None'"),
        (Thing(1), Thing(1), ""),
        (Thing(1), Thing(2), "result.value is 2 instead of 1"),
        (Slotted(torch.ones(1)), Slotted(torch.zeros(1)), "result.value differs by up to 1"),
        (Point(1, 2.0), Point(1, 2.5), "result[1] is 2.5"),
        (Color.RED, Color.BLUE, "Color.BLUE"),
        (np.array([1, 2]), np.array([1, 3]), "differs by up to 1"),
        (np.array([1, 2]), np.array([1.0, 2.0]), "dtype(result) is 'float64'"),
        (np.array(["a", None], dtype=object), np.array(["b", None], dtype=object), "is 'b'"),
        (np.array(["2020", "NaT"], dtype="M8[s]"), np.array(["2021", "NaT"], dtype="M8[s]"), "differs"),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0]), "result.mask differs"),
        (np.float32(1), np.float32(2), "differs by up to 1"),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), "order of result"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ""),
        (deque([1]), deque([2]), "is 2"),
        (torch.float32, torch.float64, "is 'torch.float64'"),
        (_linear(1.0), _linear(1.0), ""),
        (_linear(1.0), _linear(2.0), "result.weight differs"),
        (_linear(1.0), _linear(1.0).eval(), "result.training is False"),
        (_linear(1.0), _linear(1.0).requires_grad_(requires_grad=False), "requires_grad is False"),
        (_linear(1.0, grad=1.0), _linear(1.0, grad=3.0), "result.weight.grad differs by up to 2"),
        (ValueError("a"), ValueError("b"), "is 'b'"),
    ],
)
def test_results_are_compared_leaf_by_leaf(one: object, other: object, said: str, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    outcome.keep([outcome.snapshot(one)], file)
    found = outcome.compare(file, [outcome.snapshot(other)], (1e-5, 1e-8)).difference
    assert said in found
    assert bool(said) == bool(found)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (None, "result (the workload returns nothing)"),
        ({"a": 1, "b": object()}, "result['b'] (object)"),
        ({Thing(1): 1}, "key 0 of result (test_results.Thing)"),
        ({Thing(1)}, "result (a set of test_results.Thing)"),
        (iter([1]), "result (list_iterator)"),
        (re.compile("a"), "result (re.Pattern)"),
        (functools.partial(print), "result (functools.partial)"),
        (torch.ones(2, device="meta"), "result (a meta tensor of shape (2,))"),
        (Hidden(), "result (test_results.Hidden)"),
    ],
)
def test_what_cannot_be_read_is_not_equal_but_named(value: object, part: str, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    snapshot = outcome.snapshot(value)
    outcome.keep([snapshot], file)
    found = outcome.compare(file, [snapshot], (1e-5, 1e-8))
    assert (found.difference, found.unread) == ("", [part.replace("test_results", __name__)])


def test_a_later_call_is_compared_too_and_named(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    outcome.keep([outcome.snapshot(value) for value in (1, 1, 1)], file)
    assert outcome.count(file) == 3
    found = outcome.compare(file, [outcome.snapshot(value) for value in (1, 1, 2)], True)
    assert found.difference == "in call 3 result is 2 instead of 1"


def test_the_same_bits_tell_the_sign_of_zero(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    for one, other in ((0.0, -0.0), (torch.zeros(1), -torch.zeros(1))):
        outcome.keep([outcome.snapshot(one)], file)
        assert outcome.compare(file, [outcome.snapshot(other)], True).difference
        assert not outcome.compare(file, [outcome.snapshot(other)], (1e-5, 1e-8)).difference


def test_a_result_keeps_what_it_was_when_the_call_gave_it() -> None:
    buffer = torch.zeros(1)
    first = outcome.snapshot(buffer)
    buffer += 1
    assert first["result"].item() == 0


def test_the_folder_of_a_copy_is_no_difference(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    outcome.keep([outcome.snapshot([Path("/tmp/a/x.pt"), "at /tmp/a/y"], "/tmp/a")], file)
    other = outcome.snapshot([Path("/tmp/b/x.pt"), "at /tmp/b/y"], "/tmp/b")
    assert not outcome.compare(file, [other], True).difference


def test_a_wide_interval_that_an_older_version_called_no_difference_is_undecided() -> None:
    table = Result("TPL301", "w", "", Verdict.NO_DIFFERENCE, 1.0, 1.0, 0.9, 0.1, 1.07).to_json()
    assert result_from_json(table).verdict is Verdict.UNDECIDED
    table = Result("TPL301", "w", "", Verdict.NO_DIFFERENCE, 1.0, 1.0, 1.0, 0.99, 1.01).to_json()
    assert result_from_json(table).verdict is Verdict.NO_DIFFERENCE


def test_a_table_says_whether_results_are_equal_and_how_many_threads() -> None:
    unread = Result("TPL301", "w", "a:1", Verdict.FASTER, 2.0, 1.0, 2.0, 1.9, 2.1, not_compared=("result (Net)",))
    text = table(dataclasses.replace(MACHINE, threads=1), [FASTER, unread], color=False)
    assert ", 1 thread" in text.splitlines()[0]
    rows = [line for line in text.splitlines() if line.startswith("TPL301")]
    assert rows[0].split("  ")[-2:] == ["equal", "faster"] or "equal" in rows[0]
    assert "not compared" in rows[1]
    assert "TPL301 a:1: not compared: result (Net)" in text


def test_the_command_line_goes_above_the_file_and_wrong_keys_are_named() -> None:
    settings = Settings(file=Path("pyproject.toml"), verify={"bench": "a:b", "budget": "2m", "min-speedup": 1.02})
    assert options_from(settings, {}).budget == 120
    assert options_from(settings, {"command": "python a.py"}).bench == ""
    with pytest.raises(SettingsError, match="budgte"):
        options_from(Settings(file=Path("pyproject.toml"), verify={"budgte": "1s"}), {})
    with pytest.raises(SettingsError, match="must be a time"):
        options_from(Settings(file=Path("pyproject.toml"), verify={"budget": "soon"}), {})


@pytest.mark.parametrize(
    ("given", "variable", "threads"),
    [(None, None, 1), (None, "6", 6), (None, "4,2", 1), (3, "6", 3), (0, "6", None)],
)
def test_one_thread_unless_the_options_or_the_environment_say_otherwise(
    given: int | None, variable: str | None, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    settings = Settings(file=Path("pyproject.toml"), verify={} if given is None else {"threads": given})
    assert threads_of(options_from(settings, {})) == threads
