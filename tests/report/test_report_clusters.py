"""One defect is printed once in formats for people; formats for tools keep every place."""

import dataclasses
import json

import pytest
from report_samples import SYNC, TRAIN, TRANSFER, shown

from perflint.finding import Finding, Heat, Hop, Impact, Report, Span


def read(line: int, name: str, **changes: object) -> Finding:
    base = dataclasses.replace(SYNC, span=Span(line, 5, line, 15), fix=None, related=())
    return dataclasses.replace(base, message=f"`{name}.item()` synchronizes.", **changes)  # type: ignore[arg-type]


def concise(*findings: Finding) -> list[str]:
    lines = shown(Report(findings, (), 1, {"train.py": TRAIN}), "concise").splitlines()
    return [line for line in lines if line.startswith("train.py:")]


def test_reads_of_one_block_are_one_finding_with_the_other_places() -> None:
    three = (read(5, "a"), read(6, "b"), read(8, "c"))
    assert concise(*three) == [
        "train.py:5:5: TPL201 `a.item()` synchronizes. The same here 2 more times. (high impact)"
    ]
    text = shown(Report(three, (), 1, {"train.py": TRAIN}), "text")
    assert "see also:   train.py:6 `b.item()`" in text
    assert "see also:   train.py:8 `c.item()`" in text
    assert text.endswith("1 finding at 3 places in 1 of 1 file (1 high); `perflint explain TPL201` says more.\n")


@pytest.mark.parametrize(
    "other",
    [
        read(12, "far"),
        read(6, "rare", heat=Heat.EPOCH),
        read(6, "elsewhere", route=(Hop("main.py", 1, "for b in loader"),)),
        read(6, "lesser", impact=Impact.MEDIUM),
        read(6, "cell", cell=2),
    ],
    ids=lambda one: one.message,
)
def test_what_has_another_cause_stays_a_finding_of_its_own(other: Finding) -> None:
    assert len(concise(read(5, "a"), other)) == 2


def test_two_rules_at_one_expression_are_one_finding_of_the_worse() -> None:
    other = dataclasses.replace(TRANSFER, span=SYNC.span)
    assert len(concise(SYNC, other)) == 1
    assert concise(SYNC, other)[0].startswith("train.py:5:11: TPL201")
    assert "see also:   train.py:5 `TPL101` blocking-transfer" in shown(
        Report((SYNC, other), (), 1, {"train.py": TRAIN}), "text"
    )


def test_a_fix_of_every_place_counts() -> None:
    fixed = [dataclasses.replace(TRANSFER, span=Span(line, 1, line, 9)) for line in (4, 5)]
    text = shown(Report(tuple(fixed), (), 1, {"train.py": TRAIN}), "text")
    assert "1 finding at 2 places" in text
    assert "2 fixable with `perflint fix`" in text


def test_tools_and_statistics_keep_every_place() -> None:
    report = Report((read(5, "a"), read(6, "b")), (), 1, {"train.py": TRAIN})
    assert len(json.loads(shown(report, "json"))["findings"]) == 2
    assert shown(report, "text", statistics=True).startswith("2  TPL201")
