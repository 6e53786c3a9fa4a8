from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from observed_samples import TEXTS, observation

from perflint.cli.joining import codes
from perflint.errors import PerflintError
from perflint.observe.model.cost import StepTime
from perflint.observe.report import FORMATS, Options, render
from perflint.observe.report.launch_bound import launch_bound
from perflint.observe.report.rows import rhythm, rows
from perflint.observe.trace import Frame, LineCount, Observation, Site

OPTIONS = Options(what_if=True, hardware=("t4", "a100"), text_of=TEXTS.get)


def shown(output_format: str = "text", seen: Observation | None = None, options: Options = OPTIONS) -> str:
    return render(observation() if seen is None else seen, output_format, options)


def test_text_begins_with_the_step_and_says_what_is_modelled() -> None:
    lines = shown().splitlines()
    assert lines[0] == "3 steady steps after 1 of warm-up, simulated H100, torch 2.13.0: python train.py"
    assert lines[1] == "a step: 2.7 waits, 7 kernel launches, 4.2 MB to the device, 3 bytes to the host"
    assert re.match(r"modelled on an H100: \S+ ms a step, \S+ ms without its waits; bound by the device", lines[2])
    figures = [line for line in lines if re.search(r"\d ms", line)]
    block = shown().split("\n\n")
    assert figures
    assert all("modelled" in part for part in block if " ms" in part)


def test_a_step_that_the_host_is_too_slow_for_is_said_to_be_launch_bound() -> None:
    time = StepTime("h100", 12.0, 12.0, 12.0, 3.0, 0.1, "host")
    said = launch_bound(time, 4300.0)
    assert said.startswith("launch-bound (modelled): the host is busy for 12 ms with 4300 launches")
    assert "torch.compile" in said
    assert not launch_bound(replace(time, device_ms=11.0), 4300.0)  # closer than the model knows
    assert not launch_bound(replace(time, bound_by="device", device_ms=13.0), 4300.0)
    assert not launch_bound(time, 12.0)  # busy with something else
    assert not launch_bound(time, 4300.0, ["torch.compile was passed over: ..."])
    assert "launch-bound" not in shown()


def test_what_waits_is_listed_by_cost_with_its_source_and_rhythm() -> None:
    [section] = [part for part in shown().split("\n\n") if part.startswith("waits")]
    places = re.findall(r"(\w+\.py:\d+:\d+)  (.+)$", section, re.MULTILINE)
    assert places[0] == ("train.py:13:15", "loss.item()")
    assert ("model.py:6:16", "x[mask]") in places
    assert "in 2 of 3 steps" in section
    assert "every step" in section
    assert "to-device, data, 4.2 MB" in section


def test_the_functions_of_libraries_that_wait_are_named() -> None:
    seen = observation()
    site = seen.sites[3]
    epoch = Frame("/lib/trainer.py", 1911, "Trainer._run_epoch", library=True)
    logs = Frame("/lib/trainer.py", 2249, "Trainer._log", library=True)
    seen.sites[3] = replace(site, stack=(*site.stack, epoch))
    seen.sites.append(replace(site, stack=(*site.stack, logs)))
    seen.lines.append(LineCount(4, "read", True, "forward", {2: 1}, 4))
    text = shown("text", seen)
    assert "loss.item()  in Trainer._run_epoch (trainer.py:1911), Trainer._log (trainer.py:2249)\n" in text
    assert "loss.item()  in" not in shown()


def test_what_launches_is_told_apart_by_phase() -> None:
    [section] = [part for part in shown().split("\n\n") if part.startswith("launches")]
    assert "launch, forward" in section
    assert "launch, backward of this line" in section
    assert "cost" not in section


def test_what_if_and_other_hardware_come_when_they_are_asked_for() -> None:
    text = shown()
    assert "what removing waits gives on an H100 (modelled)" in text
    assert "with those above" in text
    assert re.search(r"^  T4 +\S+ ms a step", text, re.MULTILINE)
    plain = shown(options=Options())
    assert "what removing waits gives" not in plain
    assert "T4" not in plain


def test_long_tables_are_cut_and_say_so() -> None:
    assert "and 1 more place\n" in shown(options=Options(most=2))
    assert "and 2 more places\n" in shown(options=Options(most=1))


def test_nothing_recorded_is_said() -> None:
    text = shown(seen=Observation("simulated", "2.13.0", "h100", 0, 0, errors=["no step began"], ended="exit code 3"))
    assert "The program ended early: exit code 3." in text
    assert "note: no step began" in text
    assert "No synchronization" in text
    page = shown("html", Observation("simulated", "2.13.0", "h100", 0, 0, errors=["no <step>"]))
    assert "Nothing was recorded." in page
    assert "no &lt;step&gt;" in page


def test_json_is_the_document() -> None:
    assert json.loads(shown("json"))["step"]["launches"] == 7
    with pytest.raises(PerflintError, match="unknown output format 'pdf'; known: text, json, html"):
        shown("pdf")
    assert FORMATS == ("text", "json", "html")


def test_the_page_has_the_picture_the_lines_and_links_between_them() -> None:
    page = shown("html")
    assert 'class="clocks"' in page
    targets = set(re.findall(r'<a href="#(l\d+)">', page))
    assert targets
    assert targets <= set(re.findall(r'<tr id="(l\d+)">', page))
    assert "The same step elsewhere (modelled)" in page
    assert "<code>loss.item()</code>" in page
    assert "http" not in re.sub(r'http-equiv="[^"]+"', "", page)


def test_nothing_from_outside_is_markup() -> None:
    seen = observation()
    seen.program = ("<script>alert(1)</script>",)
    seen.sites[3] = Site("<b>.py", 13, 15, 13, 26, seen.sites[3].stack)
    page = shown("html", seen)
    assert "<script>alert" not in page
    assert "<b>.py" not in page
    seen.program = ("\x1b[31m",)
    assert "\x1b" not in shown("text", seen)


def test_rows_of_one_place_are_one_whatever_the_stack() -> None:
    seen = observation()
    seen.sites.append(Site(seen.sites[3].path, 13, 15, 13, 26, ()))
    seen.lines.append(LineCount(4, "read", True, "forward", {2: 1}, 4, operation="aten::is_nonzero"))
    [row] = [one for one in rows(seen) if one.kind == "read"]
    assert row.per_step == 1
    assert row.rhythm == "every step"
    assert row.operations == ("aten::_local_scalar_dense", "aten::is_nonzero")


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        ([3, 4, 5, 6, 7, 8], "every step"),
        ([5], "in step 5 only"),
        ([3, 5, 7], "every 2 steps"),
        ([3, 4, 5], "in 3 of 6 steps"),
        ([3, 8], "in 2 of 6 steps"),
        ([], "never"),
    ],
)
def test_rhythm(happened: list[int], said: str) -> None:
    assert rhythm(dict.fromkeys(happened, 1), range(3, 9)) == said


def test_what_happens_in_some_steps_is_counted_in_these() -> None:
    seen = observation()
    seen.lines[2].counts = {3: 6}
    [row] = [one for one in rows(seen) if one.kind == "launch" and not one.in_backward]
    assert (row.per_step, row.times, row.rhythm) == (2, "6 times", "in step 3 only")


def test_rules_that_found_a_line_are_named_where_somebody_looked() -> None:
    options = Options(findings={4: "TPL203"}, text_of=TEXTS.get)
    text = shown(options=options)
    assert "found by" in text
    assert re.search(r"TPL203 +train\.py:13:15", text)
    assert re.search(r"no rule +model\.py:6:16", text)
    assert "found by" not in shown()
    assert "TPL203" in shown("html", options=options)
    assert json.loads(shown("json", options=options))["lines"][4]["finding"] == "TPL203"


def test_the_project_around_is_asked_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert codes(observation()) == {}
    (tmp_path / "pyproject.toml").write_text("")
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    assert codes(observation()) == {0: "TPL101", 1: "TPL205", 4: "TPL203"}
    (tmp_path / "pyproject.toml").write_text("[tool.perflint]\nselct = []\n")
    assert codes(observation()) == {}
