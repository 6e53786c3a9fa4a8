"""What an observed run says about findings, on a small project and an observation of it made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from observed_samples import MODEL, TEXTS, TRAIN, observation

from perflint.cli import app, schemas
from perflint.finding import Finding, Observed, Verdict, often, percent, with_article
from perflint.observe import document
from perflint.observe.functions import lines_of, regions_of
from perflint.observe.trace import KINDS, Frame, LineCount, Observation, Site
from perflint.rule_api.registry import load_rules

Check = Callable[..., Any]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Check:
    """Write the project and its observation, check one with the other, and give the JSON."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)

    def run(seen: Observation | None, *arguments: str, code: int = 1) -> Any:
        if seen is not None:
            document.write(seen, tmp_path / "seen.json")
            arguments = ("--observed", "seen.json", *arguments)
        if "--output-format" not in arguments:
            arguments = (*arguments, "--output-format", "json")
        if "--fail-on" not in arguments:
            arguments = ("--fail-on", "impact=low", *arguments)
        assert app.run(["check", "--no-cache", "--jobs", "1", *arguments]) == code
        out = capfd.readouterr().out
        return json.loads(out) if "json" in arguments else out

    return run


def seen_at(report: Any, code: str, line: int) -> Any:
    [found] = [one for one in report["findings"] if (one["code"], one["line"]) == (code, line)]
    return found.get("observed")


def test_a_finding_is_confirmed_by_what_happened_in_its_span(check: Check) -> None:
    report = check(observation())
    read = seen_at(report, "TPL203", 13)
    assert read["verdict"] == "confirmed"
    assert read["per_step"] == pytest.approx(2 / 3, abs=1e-6)
    assert 0 < read["modelled_share"] < 1
    assert read["hardware"] == "H100"
    assert seen_at(report, "TPL205", 6)["verdict"] == "confirmed"
    assert seen_at(report, "TPL101", 9)["bytes"] == 4 << 20


def test_what_happens_in_some_steps_costs_the_mean_step_less(check: Check) -> None:
    some = seen_at(check(observation()), "TPL203", 13)["modelled_ms"]
    every = observation()
    every.lines[4].counts = {1: 1, 2: 1, 3: 1}
    assert some == pytest.approx(seen_at(check(every), "TPL203", 13)["modelled_ms"] * 2 / 3, rel=1e-4)


def test_a_line_that_ran_without_it_refutes_and_one_that_did_not_run_is_not_reached(check: Check) -> None:
    assert seen_at(check(observation()), "TPL101", 10)["verdict"] == "refuted"
    elsewhere = observation()
    elsewhere.ran = {"train.py": frozenset({8, 9, 13})}
    assert seen_at(check(elsewhere), "TPL101", 10)["verdict"] == "not reached"


def test_a_part_of_a_line_that_may_be_left_out_is_refuted_only_where_it_is_seen_to_run(
    check: Check, tmp_path: Path
) -> None:
    guarded = TRAIN.replace("mask.to(device)", "mask.to(device) if len(mask) else mask")
    (tmp_path / "train.py").write_text(guarded)
    seen = observation()
    seen.regions = regions_of({**TEXTS, "train.py": guarded}, lines_of(seen.sites, seen.ran))
    assert seen_at(check(seen), "TPL101", 10) is None
    column = guarded.splitlines()[9].index("mask.to") + 1
    site = Site("train.py", 10, column, 10, column + 15, (Frame("train.py", 10, "train"),))
    seen.sites.append(site)
    seen.lines.append(LineCount(4, "launch", False, "other", {1: 1, 2: 1, 3: 1}))
    assert seen_at(check(seen), "TPL101", 10)["verdict"] == "refuted"


def test_nothing_is_said_about_rules_that_no_observation_confirms(check: Check, tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(
        "import copy\n\ndef f(net):\n    net.load_state_dict(copy.deepcopy(net.state_dict()))\n"
    )
    [found] = [one for one in check(observation())["findings"] if one["path"] == "more.py"]
    assert found["code"] == "TPL301"
    assert "observed" not in found


def test_a_function_that_only_moved_keeps_its_evidence(check: Check, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("# moved\n\n" + TRAIN)
    report = check(observation())
    assert seen_at(report, "TPL203", 15)["verdict"] == "confirmed"
    assert seen_at(report, "TPL101", 12)["verdict"] == "refuted"
    assert report["observation"]["changed_functions"] == 0


def test_evidence_about_a_changed_function_is_ignored_and_counted(check: Check, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN.replace("optimizer.step()", "optimizer.step(None)"))
    report = check(observation())
    assert seen_at(report, "TPL203", 13) is None
    assert seen_at(report, "TPL101", 9) is None  # the copy of line 10 waits with it
    assert seen_at(report, "TPL205", 6)["verdict"] == "confirmed"
    assert report["observation"]["changed_functions"] == 1
    text = check(observation(), "--output-format", "text")
    assert "left out: evidence about 1 function changed since the observation" in text


def test_an_observation_of_other_code_is_a_note(check: Check, tmp_path: Path) -> None:
    other = observation()
    other.sites = [replace(site, path=f"other/{site.path}", stack=()) for site in other.sites]
    other.ran = {f"other/{path}": lines for path, lines in other.ran.items()}
    other.regions = {f"other/{path}": found for path, found in other.regions.items()}
    text = check(other, "--output-format", "text")
    assert "none of its files is here (was it made for other code, or in another folder?)" in text
    assert "confirmed" not in text


def _quiet(seen: Observation) -> Observation:
    """As it is, and besides `self.layer(kept)`, in which no rule finds a thing, was seen to wait twice a step."""
    seen.lines.append(LineCount(2, "read", True, "forward", {1: 2, 2: 2, 3: 2}, 24, operation="aten::is_nonzero"))
    assert seen.step is not None
    seen.step.events[3:3] = [
        replace(seen.step.events[-1], site=2),
        replace(seen.step.events[-1], site=2),
    ]
    return seen


def test_a_wait_that_no_rule_found_is_a_finding_of_the_rule_that_it_belongs_to(check: Check) -> None:
    report = check(_quiet(observation()))
    [found] = [one for one in report["findings"] if one["line"] == 7]
    assert (found["code"], found["path"], found["column"]) == ("TPL201", "model.py", 16)
    assert found["observed"]["verdict"] == "confirmed"
    assert found["observed"]["by_rule"] is False
    assert found["observed"]["per_step"] == 2
    assert found["message"].startswith("`self.layer(kept)` reads a device tensor on the host")
    assert [(hop["path"], hop["line"]) for hop in found["why_hot"]] == [("train.py", 17), ("train.py", 10)]
    assert "_wrapped_call_impl" not in found["message"]
    assert found["why_hot"][1]["text"] == "loss = net(images, mask.to(device)).sum()"


def test_the_library_that_waits_for_a_line_is_named(check: Check) -> None:
    seen = _quiet(observation())
    inner = Frame("/lib/torch/nn/utils/clip_grad.py", 40, "clip_grad_norm_", library=True)
    deeper = Frame("/lib/torch/_tensor.py", 10, "__bool__", library=True)
    seen.sites[2] = replace(seen.sites[2], stack=(*seen.sites[2].stack, inner, deeper))
    [found] = [one for one in check(seen)["findings"] if one["line"] == 7]
    assert "synchronizes, in `clip_grad_norm_` in the observed run" in found["message"]


def test_a_wait_of_few_steps_only_is_not_reported(check: Check) -> None:
    seen = _quiet(observation())
    seen.lines[-1].counts = {2: 1}
    assert not [one for one in check(seen)["findings"] if one["line"] == 7]


@pytest.mark.parametrize("settings", ['ignore = ["TPL201"]', 'per-file-ignores = {"model.py" = ["TPL201"]}'])
def test_settings_leave_such_findings_out_as_others(check: Check, tmp_path: Path, settings: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.perflint]\n{settings}\n")
    assert not [one for one in check(_quiet(observation()))["findings"] if one["line"] == 7]


def test_a_comment_silences_them_and_is_then_not_unused(check: Check, tmp_path: Path) -> None:
    silent = MODEL.replace("self.layer(kept)", "self.layer(kept)  # perflint: ignore[TPL201] known")
    (tmp_path / "model.py").write_text(silent)
    assert [one["code"] for one in check(None)["findings"] if one["path"] == "model.py"] == ["TPL205", "TPL001"]
    # The comment changes nothing that was observed.
    report = check(_quiet(observation()))
    assert [one["code"] for one in report["findings"] if one["path"] == "model.py"] == ["TPL205"]
    assert report["observation"]["changed_functions"] == 0


def test_what_happens_below_a_line_confirms_the_finding_on_it(check: Check, tmp_path: Path) -> None:
    """A helper of the project waits for its caller: the finding stands on the call."""
    seen = observation()
    seen.sites.append(Site("model.py", 7, 16, 7, 32, (Frame("train.py", 13, "train"), Frame("model.py", 7, "forward"))))
    seen.lines[4] = replace(seen.lines[4], site=4)
    assert seen_at(check(seen), "TPL203", 13)["verdict"] == "confirmed"


def test_what_was_seen_at_a_line_itself_is_not_taken_for_what_happens_below_it(check: Check) -> None:
    seen = observation()
    seen.lines.append(LineCount(1, "to-device", True, "forward", {1: 1, 2: 1, 3: 1}, 300))
    direct = Site("train.py", 10, 28, 10, 43, (Frame("train.py", 10, "train"),))
    seen.sites.append(direct)
    seen.lines.append(LineCount(4, "to-device", True, "data", {1: 1, 2: 1, 3: 1}, 30))
    report = check(seen)
    assert seen_at(report, "TPL101", 10)["bytes"] == 10
    [below] = [one for one in report["findings"] if (one["code"], one["path"]) == ("TPL101", "model.py")]
    assert below["observed"]["by_rule"] is False


def test_the_configuration_names_the_observation(check: Check, tmp_path: Path) -> None:
    document.write(observation(), tmp_path / "seen.json")
    (tmp_path / "pyproject.toml").write_text('[tool.perflint]\nobserved = "seen.json"\n')
    assert seen_at(check(None), "TPL205", 6)["verdict"] == "confirmed"


def test_a_missing_or_broken_observation_is_one_error(
    check: Check, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["check", "--observed", "nowhere.json"]) == 2
    assert "nowhere.json: cannot be read" in capfd.readouterr().err
    (tmp_path / "seen.json").write_text('{"version": 99}')
    assert app.run(["check", "--observed", "seen.json"]) == 2
    error = capfd.readouterr().err
    assert "another version (99" in error
    assert error.count("\n") == 1


def test_the_json_fits_its_schema(check: Check) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(check(_quiet(observation())), schemas.report())
    jsonschema.validate(check(None), schemas.report())


def test_dear_findings_come_first_and_refuted_ones_last(check: Check) -> None:
    report = check(_quiet(observation()), "--sort", "impact")
    verdicts = [one["observed"]["verdict"] for one in report["findings"]]
    assert verdicts == sorted(verdicts)
    shares = [one["observed"]["modelled_share"] for one in report["findings"] if one["observed"]["modelled_share"]]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    "shown_as", ["text", "full", "concise", "github", "gitlab", "junit", "rdjson", "markdown", "html", "sarif"]
)
def test_every_format_says_it(check: Check, shown_as: str) -> None:
    shown = check(_quiet(observation()), "--output-format", shown_as, "--impact", "low").replace("\\n", "\n")
    assert "of the step on an H100 (modelled)" in " ".join(shown.split())
    assert "this did not happen in the observed steps" in " ".join(shown.split())


def test_sarif_ranks_by_it(check: Check) -> None:
    [run] = json.loads(check(observation(), "--output-format", "sarif"))["runs"]
    ranks = {one["locations"][0]["physicalLocation"]["region"]["startLine"]: one["rank"] for one in run["results"]}
    assert ranks[13] > ranks[6] >= 60
    assert ranks[10] == 1
    assert run["results"][0]["properties"]["observed"]["verdict"] == "confirmed"


def test_the_page_has_a_picture_of_one_step_a_filter_and_an_order(check: Check) -> None:
    page = check(observation(), "--output-format", "html")
    assert page.count('<svg class="clocks"') == 1
    assert "One step (number 1) on an H100" in page
    assert page.count('<line class="mark"') == 3
    start = page.index('<section class="step">')
    picture = ET.fromstring(page[start : page.index("</section>", start) + 10])
    assert {"host", "wait", "device", "copy"} <= {one.get("class") for one in picture.iter("rect")}
    assert '<select id="observed">' in page
    assert '<option value="cost">' in page
    assert 'data-observed="refuted"' in page
    assert 'class="clocks"' not in check(None, "--output-format", "html")
    assert '<select id="observed">' not in check(None, "--output-format", "html")


def test_low_impact_does_not_hide_what_costs_much(check: Check, tmp_path: Path) -> None:
    slow = observation()
    assert slow.step is not None
    small = replace(slow.step.events[1], flops=0.0, bytes=1024)
    slow.step.events[3:3] = [small] * 400
    options = ("--output-format", "text", "--impact", "high")
    assert "TPL205" in check(slow, *options)
    assert "TPL205" not in check(None, *options)


def test_claims_are_of_kinds_that_are_observed() -> None:
    claims = [rule.claims for rule in load_rules() if rule.claims is not None]
    assert len(claims) >= 13
    assert all(claim.kinds <= set(KINDS) and claim.adopts <= claim.kinds for claim in claims)
    adopted = [kind for claim in claims for kind in claim.adopts]
    assert sorted(adopted) == ["read", "shape", "synchronize", "to-device", "to-host"]


def _seen(per_step: float, moved: float = 0, gain: float | None = None, share: float | None = None) -> Observed:
    return Observed(Verdict.CONFIRMED, per_step, moved, gain, share, hidden=share == 0, hardware="H100")


@pytest.mark.parametrize(
    ("observed", "said"),
    [
        (_seen(3, 0, 0.2, 0.0412), "3 times per step, 4.1 % of the step on an H100 (modelled)"),
        (_seen(1, 4_194_304), "once per step, 4.2 MB per step"),
        (_seen(2, 0, 0.0, 0.0), "2 times per step, no cost on an H100 while other synchronizations hide it (modelled)"),
        (Observed(Verdict.REFUTED), "the line ran, but this did not happen in the observed steps"),
        (Observed(Verdict.NOT_REACHED), "not reached by the observed run"),
    ],
)
def test_how_it_reads(observed: Observed, said: str) -> None:
    assert observed.phrase == said


def test_figures_in_words() -> None:
    assert [often(one) for one in (1, 2.0, 0.3333, 12.4)] == [
        "once per step", "2 times per step", "0.33 times per step", "12 times per step",
    ]  # fmt: skip
    assert [percent(one) for one in (0.5, 0.0123, 0.0001)] == ["50.0 %", "1.2 %", "under 0.1 %"]
    assert [with_article(one) for one in ("A100", "H200", "L4", "T4", "RTX 4090")] == [
        "an A100", "an H200", "an L4", "a T4", "an RTX 4090",
    ]  # fmt: skip


def test_the_hover_of_an_editor_says_it(check: Check, tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    from perflint.lsp.analysis import Analyst
    from perflint.lsp.convert import hover

    document.write(observation(), tmp_path / "seen.json")
    (tmp_path / "pyproject.toml").write_text('[tool.perflint]\nobserved = "seen.json"\n')
    file = tmp_path / "train.py"
    analyst = Analyst()

    def found(text: str) -> Finding:
        result = analyst.check({file: text}, lambda: False)[file]
        return next(one for one in result.findings if one.code == "TPL203")

    assert "*Observed:* 0.67 times per step" in hover(found(TRAIN), None)
    # What is typed changes the function, and the evidence is no longer about it.
    assert "*Observed:*" not in hover(found(TRAIN.replace("optimizer.step()", "optimizer.step(None)")), None)
    (tmp_path / "seen.json").unlink()
    assert "*Observed:*" not in hover(found(TRAIN), None)


def test_findings_that_were_seen_to_happen_are_printed_one_by_one(check: Check) -> None:
    seen = observation()
    seen.sites.append(Site("train.py", 10, 28, 10, 43, (Frame("train.py", 10, "train"),)))
    seen.lines.append(LineCount(4, "to-device", True, "data", {1: 1, 2: 1, 3: 1}, 30))
    text = check(seen, "--output-format", "text", "--impact", "low")
    assert text.count("TPL101") == 2
    assert check(None, "--output-format", "text", "--impact", "low").count("TPL101") == 1


def test_the_nearest_configuration_of_a_file_decides(check: Check, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "perflint.toml").write_text('ignore = ["TPL201"]\n')
    (inner / "model.py").write_text(MODEL)
    seen = _quiet(observation())
    seen.sites = [replace(one, path="inner/model.py") if one.path == "model.py" else one for one in seen.sites]
    seen.regions = {**seen.regions, "inner/model.py": seen.regions["model.py"]}
    assert not [one for one in check(seen)["findings"] if one["line"] == 7]
    (inner / "perflint.toml").write_text("")
    assert [one["path"] for one in check(seen)["findings"] if one["line"] == 7] == ["inner/model.py"]


def test_a_baseline_knows_what_only_the_observation_found(
    check: Check, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    document.write(_quiet(observation()), tmp_path / "seen.json")
    (tmp_path / "pyproject.toml").write_text('[tool.perflint]\nobserved = "seen.json"\n')
    assert app.run(["baseline", "write"]) == 0
    capfd.readouterr()
    assert check(None, "--baseline", "perflint-baseline.json", "--impact", "low", code=0)["findings"] == []


def test_add_ignores_silences_what_rules_found(check: Check, tmp_path: Path) -> None:
    """A comment on what only the observation found could not be tried: no rule finds it again."""
    text = check(_quiet(observation()), "--add-ignores", "--impact", "low", "--output-format", "text")
    assert "kept = x[mask]  # perflint: ignore[TPL205]" in (tmp_path / "model.py").read_text()
    assert "self.layer(kept)\n" in (tmp_path / "model.py").read_text()
    assert "1 finding in 1 of 2 files" in text


def test_columns_decide_between_two_findings_on_a_line(check: Check, tmp_path: Path) -> None:
    text = TRAIN.replace("        print(loss.item())", "        total = loss.item(), loss.norm().item()")
    (tmp_path / "train.py").write_text(text)
    seen = observation()
    seen.regions = regions_of({**TEXTS, "train.py": text}, lines_of(seen.sites, seen.ran))
    seen.sites[3] = replace(seen.sites[3], column=17, end_column=28)
    found = {one["column"]: one["observed"]["verdict"] for one in check(seen)["findings"] if one["code"] == "TPL201"}
    assert found == {17: "confirmed", 30: "refuted"}


def test_what_was_not_reached_stands_before_what_was_refuted(check: Check) -> None:
    seen = observation()
    seen.lines = [one for one in seen.lines if one.kind == "launch"]
    seen.ran = {"train.py": frozenset({10, 13})}
    verdicts = [one["observed"]["verdict"] for one in check(seen, "--sort", "impact")["findings"]]
    assert verdicts == ["not reached", "not reached", "refuted", "refuted"]


def test_without_coverage_nothing_is_refuted(check: Check) -> None:
    seen = observation()
    seen.ran = {}
    report = check(seen)
    assert seen_at(report, "TPL101", 10) is None
    assert seen_at(report, "TPL101", 9)["verdict"] == "confirmed"
