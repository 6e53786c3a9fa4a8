"""One defect is printed once in every format; formats for people also put neighbours together."""

import dataclasses
import json

import pytest
from report_samples import SYNC, TRAIN, TRANSFER, shown

from perflint.finding import Applicability, Edit, Finding, Fix, Heat, Hop, Impact, Report, Span
from perflint.report import FORMATS


def read(line: int, name: str, **changes: object) -> Finding:
    base = dataclasses.replace(SYNC, span=Span(line, 5, line, 15), fix=None, related=())
    base = dataclasses.replace(base, message=f"`{name}.item()` synchronizes.")
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def concise(*findings: Finding) -> list[str]:
    lines = shown(Report(findings, (), 1, {"train.py": TRAIN}), "concise").splitlines()
    return [line for line in lines if line.startswith("train.py:")]


def test_reads_of_one_block_are_one_finding_with_the_other_places() -> None:
    three = (read(5, "a"), read(6, "b"), read(8, "c"))
    assert concise(*three) == [
        "train.py:5:5: TPL201 `a.item()` synchronizes. 2 more occurrences here. Also at 6, 8. (high impact)"
    ]
    text = shown(Report(three, (), 1, {"train.py": TRAIN}), "text")
    assert "see also:   train.py:6 `b.item()`" in text
    assert "see also:   train.py:8 `c.item()`" in text
    assert text.endswith(
        "1 finding at 3 places in 1 of 1 file (1 high); `perflint explain TPL201` explains the rule.\n"
    )


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


def test_a_loop_that_names_the_read_it_repeats_is_told_with_it() -> None:
    loop = dataclasses.replace(
        read(5, "row"),
        code="TPL603",
        route=SYNC.route,
        related=(Hop("train.py", 6, "read on the host", code="TPL603"),),
    )
    assert len(concise(loop, read(6, "a"))) == 1
    assert len(concise(loop, read(7, "a"))) == 2


def test_a_fix_of_every_place_counts() -> None:
    fixed = [dataclasses.replace(TRANSFER, span=Span(line, 1, line, 9)) for line in (4, 5)]
    text = shown(Report(tuple(fixed), (), 1, {"train.py": TRAIN}), "text")
    assert "1 finding at 2 places" in text
    assert "2 fixable with `perflint fix`" in text


def test_tools_get_neighbours_one_by_one() -> None:
    report = Report((read(5, "a"), read(6, "b")), (), 1, {"train.py": TRAIN})
    assert len(json.loads(shown(report, "json"))["findings"]) == 2


def test_statistics_and_the_page_count_what_the_text_counts() -> None:
    report = Report((read(5, "a"), read(6, "b")), (), 1, {"train.py": TRAIN})
    assert "1 finding at 2 places" in shown(report, "text")
    assert shown(report, "text", statistics=True).startswith("1  TPL201")
    assert json.loads(shown(report, "json", statistics=True))["total"] == 2
    assert "<b>1 finding</b>" in shown(report, "html")


def test_no_line_is_said_to_be_elsewhere_twice() -> None:
    report = Report((read(5, "a"), read(6, "b"), read(6, "c")), (), 1, {"train.py": TRAIN})
    assert "Also at 6. (" in shown(report, "concise")


def block(first: Finding, *others: Finding) -> tuple[Finding, ...]:
    return tuple(dataclasses.replace(one, block=first.span) for one in (first, *others))


@pytest.mark.parametrize("output_format", ["json", "sarif", "concise"])
def test_waits_of_one_block_are_one_finding_in_every_format(output_format: str) -> None:
    found = block(read(5, "a"), read(60, "b", impact=Impact.LOW), read(90, "c", impact=Impact.LOW))
    text = shown(Report(found, (), 1, {"train.py": TRAIN}), output_format)
    assert "`a.item()` synchronizes. 2 more occurrences here." in text
    assert "`b.item()` synchronizes" not in text
    if output_format == "json":
        related = json.loads(text)["findings"][0]["related"]
        assert [(hop["line"], hop["text"]) for hop in related] == [(60, "`b.item()`"), (90, "`c.item()`")]


def test_other_places_of_each_finding_of_a_block_are_kept() -> None:
    made = [(Hop("train.py", line, "made on the host here", code=SYNC.code),) for line in (2, 3)]
    first, second = block(read(5, "a", related=made[0]), read(6, "b", related=made[1]))
    (found,) = json.loads(shown(Report((first, second), (), 1, {"train.py": TRAIN}), "json"))["findings"]
    assert [hop["line"] for hop in found["related"]] == [2, 3, 6]


def test_what_is_said_in_the_same_words_in_two_branches_is_one_finding() -> None:
    route = (Hop("main.py", 1, "for b in loader"),)
    report = Report((read(5, "a", route=route), read(40, "a", route=route)), (), 1, {"train.py": TRAIN})
    (found,) = json.loads(shown(report, "json"))["findings"]
    assert [hop["line"] for hop in found["related"]] == [40]


def test_words_without_code_tell_tools_of_each_place_and_people_once() -> None:
    """A message that quotes no code is the same for any code: tools get each place, where each has its own edit."""
    route = (Hop("main.py", 1, "for epoch in range(epochs)"),)
    plain = [read(line, "a", route=route, message="The workers of this loader stop.") for line in (5, 40)]
    report = Report(tuple(plain), (), 1, {"train.py": TRAIN})
    assert [one["line"] for one in json.loads(shown(report, "json"))["findings"]] == [5, 40]
    assert len(concise(*plain)) == 1


def test_spaces_make_no_other_finding() -> None:
    route = (Hop("main.py", 1, "for b in loader"),)
    assert len(concise(read(5, "f(a, 1)", route=route), read(40, "f(a,1)", route=route))) == 1


def test_one_finding_makes_the_edits_of_all_its_places() -> None:
    fixes = [Fix("Do it", Applicability.SAFE, (Edit(Span(line, 1, line, 2), "x"),)) for line in (5, 6)]
    found = block(*(read(line, "a", fix=fix) for line, fix in zip((5, 6), fixes, strict=True)))
    (one,) = json.loads(shown(Report(found, (), 1, {"train.py": TRAIN}), "json"))["findings"]
    assert [edit["line"] for edit in one["fix"]["edits"]] == [5, 6]


def test_a_block_of_another_rule_or_with_another_fix_is_another_finding() -> None:
    fix = Fix("Do it", Applicability.SAFE, (Edit(Span(6, 1, 6, 2), "x"),))
    found = block(read(5, "a"), read(6, "b", code="TPL999"), read(7, "c", fix=fix))
    assert len(json.loads(shown(Report(found, (), 1, {"train.py": TRAIN}), "json"))["findings"]) == 3


def test_a_low_finding_behind_the_wait_of_another_rule_is_a_related_place_of_it() -> None:
    fix = Fix("Do it", Applicability.SAFE, (Edit(Span(6, 1, 6, 2), "x"),))
    behind = read(6, "b", code="TPL999", impact=Impact.LOW)
    (one,) = json.loads(shown(Report(block(read(5, "a"), behind), (), 1, {"train.py": TRAIN}), "json"))["findings"]
    assert [(hop["line"], hop["code"]) for hop in one["related"]] == [(6, "TPL999")]
    fixable = block(read(5, "a"), dataclasses.replace(behind, fix=fix))
    assert len(json.loads(shown(Report(fixable, (), 1, {"train.py": TRAIN}), "json"))["findings"]) == 2


def test_a_block_in_a_block_belongs_to_the_outer_one() -> None:
    first, second, third = read(5, "a"), read(60, "b"), read(90, "c")
    first = dataclasses.replace(first, block=first.span)
    second = dataclasses.replace(second, block=first.span)
    third = dataclasses.replace(third, block=second.span)
    (one,) = json.loads(shown(Report((first, second, third), (), 1, {"train.py": TRAIN}), "json"))["findings"]
    assert [hop["line"] for hop in one["related"]] == [60, 90]


def test_two_places_in_one_line_are_one_finding_in_every_format() -> None:
    found = (read(5, "a"), dataclasses.replace(read(5, "b"), span=Span(5, 30, 5, 40)))
    (one,) = json.loads(shown(Report(found, (), 1, {"train.py": TRAIN}), "json"))["findings"]
    assert (one["column"], [hop["text"] for hop in one["related"]]) == (5, ["`b.item()`"])


@pytest.mark.parametrize(("impact", "lead"), [(Impact.HIGH, "TPL201"), (Impact.LOW, "TPL603")])
def test_a_loop_and_the_read_that_it_repeats_are_one_finding_for_tools(impact: Impact, lead: str) -> None:
    loop = dataclasses.replace(
        read(5, "row"),
        code="TPL603",
        impact=Impact.MEDIUM,
        route=SYNC.route,
        related=(Hop("train.py", 6, "read on the host", code="TPL603"),),
    )
    report = Report((loop, read(6, "a", impact=impact)), (), 1, {"train.py": TRAIN})
    (one,) = json.loads(shown(report, "json"))["findings"]
    assert one["code"] == lead
    assert {lead} | {hop["code"] for hop in one["related"]} == {"TPL201", "TPL603"}


FUNCTION = "def step(batch):\n" + "".join(f"    x{i} = batch + {i}\n" for i in range(12)) + "    return x3.item()\n"


def copied(*texts: str) -> Report:
    """The same finding in files with these texts, each behind a comment line of its own if it is not the first."""
    found, by_path = [], {}
    for number, text in enumerate(texts):
        path = f"{'abc'[number]}.py"
        by_path[path] = text
        line = 1 + text[: text.index("x3.item()")].count("\n")
        route = (Hop(path, 1, "for b in loader"),)
        found.append(dataclasses.replace(read(line, "x3"), path=path, route=route))
    return Report(tuple(found), (), len(texts), by_path)


def test_copies_of_a_file_are_one_finding_that_names_them() -> None:
    (one,) = json.loads(shown(copied(FUNCTION, FUNCTION, FUNCTION), "json"))["findings"]
    assert one["message"].endswith("The same code is in 2 more files.")
    assert [(hop["path"], hop["line"], hop["code"]) for hop in one["related"]] == [
        ("b.py", 14, "TPL201"),
        ("c.py", 14, "TPL201"),
    ]


def test_copies_of_a_function_are_one_finding_for_people() -> None:
    report = copied(FUNCTION, "import torch\n\n" + FUNCTION)
    assert len(json.loads(shown(report, "json"))["findings"]) == 2
    text = shown(report, "text")
    assert "The same code is in 1 more file." in text
    assert "see also:   b.py:16 the same code" in text


def test_the_same_words_of_code_are_one_finding_for_people() -> None:
    """A line that each program of a project has: a reader decides once about it."""
    report = copied(FUNCTION, FUNCTION.replace("+ 7", "+ 8"))
    other = dataclasses.replace(report.findings[1], advice="Another way.")
    assert len(json.loads(shown(report, "json"))["findings"]) == 2
    assert "The same code is in 1 more file." in shown(report, "text")
    apart = dataclasses.replace(report, findings=(report.findings[0], other))
    assert "The same code" not in shown(apart, "text")


def test_one_function_that_reads_often_is_one_finding_for_people() -> None:
    """Statistics of one step, each in a branch of its own: one way there, and one thing to change."""
    lines = ["def step(batch):", *(f"    x{number} = batch + {number}" for number in range(30)), "    return x3", ""]
    way = (Hop("a.py", 1, "for batch in loader"),)
    reads = [dataclasses.replace(read(line, f"x{line}"), path="a.py", route=way) for line in (5, 12, 20)]
    report = Report((*reads, dataclasses.replace(reads[0], span=Span(25, 1, 25, 9), advice="Another way.")), (), 1)
    report = dataclasses.replace(report, texts={"a.py": "\n".join(lines)})
    text = shown(report, "text")
    assert "2 more occurrences here." in text
    assert "2 findings at 4 places" in text
    assert len(json.loads(shown(report, "json"))["findings"]) == 4


def test_a_copy_keeps_its_own_fix() -> None:
    fix = Fix("Do it", Applicability.SAFE, (Edit(Span(14, 12, 14, 21), "x3"),))
    report = copied(FUNCTION, FUNCTION)
    fixed = tuple(dataclasses.replace(one, fix=fix) for one in report.findings)
    (one,) = json.loads(shown(dataclasses.replace(report, findings=fixed), "json"))["findings"]
    assert len(one["fix"]["edits"]) == 1


@pytest.mark.parametrize("output_format", [*FORMATS])
def test_every_format_names_the_other_places(output_format: str) -> None:
    found = block(read(5, "a"), read(61, "b"), read(97, "c"))
    text = shown(Report(found, (), 1, {"train.py": TRAIN}), output_format)
    assert "61" in text
    assert "97" in text


def test_a_wait_of_another_file_is_a_related_place_with_its_own_path() -> None:
    first = read(5, "a")
    other = dataclasses.replace(read(7, "b", impact=Impact.LOW), path="eval.py", behind=(Hop("train.py", 5, "a"),))
    report = Report((other, first), (), 2, {"train.py": TRAIN, "eval.py": TRAIN})
    for output_format in FORMATS:
        text = shown(report, output_format)
        assert "eval.py" in text or output_format == "html", output_format
    (one,) = json.loads(shown(report, "json"))["findings"]
    assert one["message"] == "`a.item()` synchronizes. 1 more wait behind it in 1 other file."
    assert one["related"] == [{"path": "eval.py", "line": 7, "text": "`b.item()`", "code": "TPL201"}]
    (result,) = json.loads(shown(report, "sarif"))["runs"][0]["results"]
    places = [place["physicalLocation"] for place in result["relatedLocations"]]
    assert [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in places][-1] == ("eval.py", 7)


def test_the_wait_that_drains_the_queue_stands_for_one_as_bad_behind_it() -> None:
    first = read(5, "a", impact=Impact.LOW)
    other = dataclasses.replace(read(7, "b", impact=Impact.LOW), path="a.py", behind=(Hop("train.py", 5, "a"),))
    report = Report((other, first), (), 2, {"train.py": TRAIN, "a.py": TRAIN})
    (one,) = json.loads(shown(report, "json"))["findings"]
    assert (one["path"], [hop["path"] for hop in one["related"]]) == ("train.py", ["a.py"])


def test_waits_behind_each_other_are_one_finding() -> None:
    low = {"impact": Impact.LOW}
    one = dataclasses.replace(read(5, "a", **low), behind=(Hop("b.py", 7, "b"),))
    other = dataclasses.replace(read(7, "b", **low), path="b.py", behind=(Hop("train.py", 5, "a"),))
    report = Report((one, other), (), 2, {"train.py": TRAIN, "b.py": TRAIN})
    assert len(json.loads(shown(report, "json"))["findings"]) == 1


def test_a_report_does_not_begin_with_one_rule_alone() -> None:
    """Of findings that weigh as much, the first of each rule come first."""
    reads = [read(line, f"x{line}") for line in (10, 30, 50)]
    copy = dataclasses.replace(read(70, "x70"), code="TPL107")
    shown_first = [line.split(" ")[1] for line in concise(*reads, copy)]
    assert shown_first == ["TPL201", "TPL107", "TPL201", "TPL201"]
