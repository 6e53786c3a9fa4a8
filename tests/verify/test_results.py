"""What is printed, drawn and kept of results, and how results of workloads are compared."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import torch

from perflint.errors import PerflintError, SettingsError
from perflint.settings import Settings
from perflint.verify import evidence, outcome
from perflint.verify.options import options_from
from perflint.verify.plot import write_plot
from perflint.verify.results import Machine, Result, Verdict, result_from_json
from perflint.verify.tables import markdown, table

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
    ],
)
def test_results_are_compared_leaf_by_leaf(one: object, other: object, said: str, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    outcome.keep(one, file)
    found = outcome.difference(file, other, (1e-5, 1e-8))
    assert said in found
    assert bool(said) == bool(found)


def test_the_command_line_goes_above_the_file_and_wrong_keys_are_named() -> None:
    settings = Settings(file=Path("pyproject.toml"), verify={"bench": "a:b", "budget": "2m", "min-speedup": 1.02})
    assert options_from(settings, {}).budget == 120
    assert options_from(settings, {"command": "python a.py"}).bench == ""
    with pytest.raises(SettingsError, match="budgte"):
        options_from(Settings(file=Path("pyproject.toml"), verify={"budgte": "1s"}), {})
    with pytest.raises(SettingsError, match="must be a time"):
        options_from(Settings(file=Path("pyproject.toml"), verify={"budget": "soon"}), {})
