"""Order, groups and limits, the same for all formats, and the lines that they end with."""

import dataclasses
import json

import pytest
from report_samples import REPORT, RULES, SYNC, TRAIN, TRANSFER, shown

from perflint.finding import Confidence, Finding, Impact, Paid, Part, Report, Span
from perflint.report import render
from perflint.report.order import EVERYTHING, Layout

LOW = dataclasses.replace(TRANSFER, impact=Impact.LOW, span=Span(3, 1, 3, 4))
OTHER = dataclasses.replace(SYNC, path="a.py", impact=Impact.MEDIUM, confidence=Confidence.LOW, fix=None)
ALL = Report((SYNC, TRANSFER, LOW, OTHER), (), 9, {"train.py": TRAIN})


def places(text: str) -> list[str]:
    """Where each line of `concise` points."""
    return [line.split(": ")[0] for line in text.splitlines() if line[:1] in "at" and ".py:" in line]


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        (Layout(), ["train.py:5:11", "train.py:4:24", "a.py:5:11"]),
        (Layout(impact=Impact.LOW), ["train.py:5:11", "train.py:4:24", "a.py:5:11", "train.py:3:1"]),
        (Layout(impact=Impact.HIGH), ["train.py:5:11"]),
        (Layout(sort="path"), ["a.py:5:11", "train.py:4:24", "train.py:5:11"]),
        (Layout(most=2), ["train.py:5:11", "train.py:4:24"]),
        (Layout(most=2, sort="path"), ["train.py:4:24", "train.py:5:11"]),
    ],
)
def test_the_worst_comes_first_and_low_impact_is_counted(layout: Layout, wanted: list[str]) -> None:
    assert places(shown(ALL, "concise", layout=layout)) == wanted


def test_what_is_not_printed_is_counted_with_what_to_do() -> None:
    last = shown(ALL, "text", layout=Layout(most=1)).splitlines()[-1]
    assert "1 finding in 1 of 9 files (1 high)" in last
    assert "left out: 1 of low impact, 1 fixable (`--impact low` prints all)" in last
    assert "left out: 2 more findings (`--max-findings`)" in last


def test_nothing_above_low_is_no_clean_bill() -> None:
    text = shown(Report((LOW,), (), 3), "text", layout=Layout())
    assert text.startswith("3 files checked, nothing to print; left out: 1 of low impact")


@pytest.mark.parametrize("output_format", ["json", "json-lines", "gitlab", "rdjson", "sarif", "junit"])
def test_tools_get_every_finding_unless_told_otherwise(output_format: str) -> None:
    key = "Odd low one"
    report = Report((*REPORT.findings, dataclasses.replace(LOW, message=key)), (), 3, {"train.py": TRAIN})
    assert key in shown(report, output_format, layout=Layout())
    assert key not in shown(report, output_format, layout=Layout(impact=Impact.MEDIUM))


def test_groups_have_headings_and_are_in_order_of_their_worst() -> None:
    by_file = shown(ALL, "text", layout=Layout(group_by="file"))
    assert by_file.index("train.py: 2 findings\n") < by_file.index("train.py:4:24") < by_file.index("train.py:5:11")
    assert by_file.index("train.py:5:11") < by_file.index("a.py: 1 finding\n")
    by_rule = shown(ALL, "grouped", layout=Layout(group_by="rule"))
    assert by_rule.index("TPL201 sync-in-hot-loop: 2 findings") < by_rule.index("TPL101 blocking-transfer: 1 finding")
    assert "  train.py:5:11  TPL201" in by_rule


TRAINED, EVALUATED, UNSEEN = (
    dataclasses.replace(SYNC, path=f"{part.name.lower()}.py", message=part.name, part=part, confidence=sure)
    for part, sure in (
        (Part.TRAINING, Confidence.LOW),
        (Part.EVALUATION, Confidence.HIGH),
        (Part.UNSEEN, Confidence.HIGH),
    )
)


def test_training_stands_before_evaluation_and_that_before_what_no_program_runs() -> None:
    report = Report((UNSEEN, EVALUATED, TRAINED), (), 3)
    said = shown(report, "concise")
    assert said.index("training.py") < said.index("evaluation.py") < said.index("unseen.py")
    text = shown(report, "text", layout=Layout(group_by="part"))
    assert text.index("training: 1 finding") < text.index("evaluation: 1 finding")
    assert text.index("evaluation: 1 finding") < text.index("no program in sight: 1 finding")
    assert "(3 high; 1 in training, 1 in evaluation, 1 in no program in sight)" in text
    assert " in training" not in shown(Report((TRAINED,), (), 3), "text")


def test_grouped_is_by_file_by_itself() -> None:
    assert shown(Report((SYNC,), (), 1), "grouped") == (
        "train.py: 1 finding\n"
        "  5:11  TPL201 [-] `loss.item()` makes the host wait for the device (high impact)\n"
        "\n"
        "1 finding in 1 of 1 file (1 high); 1 fixable with `perflint fix --unsafe`.\n"
    )


def rendered(fails: object) -> str:
    return render(ALL, "text", RULES, version="1", layout=EVERYTHING, fails=fails)  # type: ignore[arg-type]


def test_findings_that_fail_the_check_are_marked_where_not_all_do() -> None:
    def is_high(finding: Finding) -> bool:
        return finding.impact is Impact.HIGH

    assert rendered(is_high).count("fails the check]") == 1
    assert "[high impact, medium confidence, fails the check]" in rendered(is_high)
    assert "fails the check" not in rendered(lambda _finding: True)
    assert "fails the check" not in rendered(None)


def test_places_are_links_only_where_asked() -> None:
    linked = render(REPORT, "text", RULES, version="1", links=True)
    assert "\x1b]8;;file:///" in linked
    assert "train.py#L4\x1b\\train.py:4:24\x1b]8;;\x1b\\" in linked
    assert "\x1b" not in shown(REPORT, "text")


def test_seconds_are_said_where_given() -> None:
    assert "; 1.3 s" in render(REPORT, "text", RULES, version="1", seconds=1.26).splitlines()[-1]


def test_json_lines_are_the_objects_of_json() -> None:
    whole = json.loads(shown(REPORT, "json"))
    lines = [json.loads(line) for line in shown(REPORT, "json-lines").splitlines()]
    assert lines == [*whole["findings"], *whole["errors"]]


def test_of_one_impact_what_a_step_pays_most_often_comes_first_whatever_is_certain_of_it() -> None:
    found = [
        dataclasses.replace(
            OTHER,
            message=f"Wait {line}.",
            path=f"a{line}.py",
            span=Span(line, 1, line, 4),
            paid=paid,
            confidence=confidence,
        )
        for line, paid, confidence in (
            (1, Paid.ASIDE, Confidence.HIGH),
            (2, Paid.ONCE, Confidence.HIGH),
            (3, Paid.DOZENS, Confidence.MEDIUM),
            (4, Paid.REPEATEDLY, Confidence.MEDIUM),
            (5, Paid.ONCE, Confidence.MEDIUM),
        )
    ]
    report = Report((*found, SYNC), (), 9, {"train.py": TRAIN})
    wanted = ["train.py:5:11", "a3.py:3:1", "a4.py:4:1", "a2.py:2:1", "a5.py:5:1", "a1.py:1:1"]
    assert places(shown(report, "concise", layout=Layout())) == wanted
