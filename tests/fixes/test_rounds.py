"""The engine with rules made up of regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from perflint.finding import Applicability, Confidence, Edit, Finding, Fix, Impact, Problem, Report, Span
from perflint.fixes.rounds import Outcome, fix_files
from perflint.syntax.file import SourceFile

#: Code, what it finds, and what the fix makes of it; None for a finding without a fix.
Toy = tuple[str, str, "str | None"]


def findings_of(path: str, text: str, toys: Sequence[Toy]) -> list[Finding]:
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for code, pattern, replacement in toys:
            for match in re.finditer(pattern, line):
                span = Span(number, match.start() + 1, number, match.end() + 1)
                made = None
                if replacement is not None:
                    made = Fix(f"Mend {code}", Applicability.SAFE, (Edit(span, match.expand(replacement)),))
                found.append(Finding(code, code.lower(), path, span, "It is.", Confidence.HIGH, Impact.LOW, fix=made))
    return found


def fixed(
    texts: Mapping[str, str] | str, *toys: Toy, errors: Callable[[str], bool] = lambda _: False
) -> tuple[dict[str, str], Outcome, list[Mapping[str, str]]]:
    texts = {"a.py": texts} if isinstance(texts, str) else texts
    checked: list[Mapping[str, str]] = []

    def recheck(overlay: Mapping[str, str]) -> Report:
        checked.append(dict(overlay))
        found = [item for path, text in overlay.items() for item in findings_of(path, text, toys)]
        problems = tuple(Problem(path, "rule T1 failed") for path, text in overlay.items() if errors(text))
        return Report(tuple(found), problems, len(overlay))

    sources = {path: SourceFile(path, text) for path, text in texts.items()}
    before = [item for path, text in texts.items() for item in findings_of(path, text, toys)]
    outcome = fix_files(sources, before, recheck, lambda fix: fix.applicability >= Applicability.SAFE)
    return {file.source.path: file.text for file in outcome.files}, outcome, checked


def reasons(outcome: Outcome) -> list[tuple[str, str]]:
    return [(item.finding.code, item.reason) for item in outcome.dropped]


def test_all_fixes_that_do_not_touch_are_made_in_one_round() -> None:
    texts, outcome, checked = fixed({"a.py": "x\ny", "b.py": "x", "c.py": "z"}, ("T1", r"\b[xy]\b", "m"))
    assert texts == {"a.py": "m\nm", "b.py": "m"}
    assert (outcome.dropped, outcome.findings, len(checked)) == ((), (), 1)
    assert [len(file.taken) for file in outcome.files] == [2, 1]


def test_fixes_that_touch_are_made_in_the_next_round() -> None:
    texts, outcome, _ = fixed("f(x)", ("T1", r"f\((\w+)\)", r"g(\1)"), ("T2", "x", "y"))
    assert texts == {"a.py": "g(y)"}
    assert not outcome.dropped


def test_nothing_to_do_is_nothing_done() -> None:
    texts, outcome, checked = fixed("f(x)", ("T1", "q", "r"), ("T2", "x", None))
    assert (texts, outcome.dropped, checked) == ({}, (), [])


def test_a_fix_whose_result_does_not_parse_is_dropped_alone() -> None:
    texts, outcome, _ = fixed("bad\ngood\ngood2 + bad", ("T1", "bad", "(("), ("T2", "good", "fine"))
    assert texts == {"a.py": "bad\nfine\nfine2 + bad"}
    assert [item.finding.span.line for item in outcome.dropped] == [1, 3]
    assert "the result does not parse" in outcome.dropped[0].reason


def test_fixes_that_are_only_wrong_together_are_both_made_when_there_is_a_way() -> None:
    # Deleting both statements at once would leave an empty block; the second is then told to leave `pass`.
    def toy(text: str) -> list[Finding]:
        lines = text.split("\n")
        found = []
        for number, line in enumerate(lines, 1):
            if line.strip() == "drop()":
                alone = sum(other.startswith(" ") for other in lines) == 1
                span = Span(number, 5, number, 11) if alone else Span(number, 1, number + 1, 1)
                made = Fix("Drop", Applicability.SAFE, (Edit(span, "pass" if alone else ""),))
                found.append(Finding("T1", "t", "a.py", span, "It is.", Confidence.HIGH, Impact.LOW, fix=made))
        return found

    text = "def f():\n    drop()\n    drop()\n\n"
    outcome = fix_files(
        {"a.py": SourceFile("a.py", text)},
        toy(text),
        lambda overlay: Report(tuple(toy(overlay["a.py"])), (), 1),
        lambda _: True,
    )
    assert outcome.files[0].text == "def f():\n    pass\n\n"
    assert not outcome.dropped


def test_a_fix_that_leaves_its_finding_is_dropped() -> None:
    texts, outcome, _ = fixed("xx\ny", ("T1", "^x", "x1 + x"), ("T2", "y", "z"))
    assert texts == {"a.py": "xx\nz"}
    ((code, reason),) = reasons(outcome)
    assert code == "T1"
    assert "T1 would be reported as often as before (line 1: " in reason


def test_a_fix_that_brings_about_another_finding_is_dropped() -> None:
    texts, outcome, _ = fixed("x\ny", ("T1", "x", "worse"), ("T2", "worse", None), ("T3", "y", "z"))
    assert texts == {"a.py": "x\nz"}
    assert reasons(outcome) == [("T1", "it would cause T2: It is.")]


def test_another_finding_may_appear_when_its_own_fix_removes_it() -> None:
    texts, outcome, _ = fixed("x", ("T1", "x", "half"), ("T2", "half", "done"))
    assert (texts, outcome.dropped) == ({"a.py": "done"}, ())


def test_a_fix_is_taken_back_when_the_finding_it_brought_about_stays_after_all() -> None:
    texts, outcome, _ = fixed("x\ny", ("T1", "x", "half"), ("T2", "half", "(("), ("T3", "y", "z"))
    assert texts == {"a.py": "x\nz"}
    assert [code for code, _ in reasons(outcome)] == ["T1"]
    assert outcome.dropped[0].reason.startswith("it would cause T2, which stays because the result does not parse")


def test_rules_that_undo_each_other_are_cut_off_and_named() -> None:
    texts, outcome, _ = fixed("x\ny", ("T1", "x", "w"), ("T2", "w", "x"), ("T3", "y", "z"))
    assert texts == {"a.py": "x\nz"}
    assert any("T1 and T2 undo each other: stopped after 10 rounds" in reason for _, reason in reasons(outcome))


def test_a_fix_that_grows_for_ever_is_cut_off() -> None:
    texts, outcome, _ = fixed("x = 0\ny", ("T1", "(x = )", r"\g<1>0, "), ("T3", "y", "z"))
    assert texts == {"a.py": "x = 0\nz"}
    assert len(outcome.dropped) == 1


def test_a_rule_that_fails_on_the_result_keeps_nothing() -> None:
    texts, outcome, _ = fixed("x\ny", ("T1", "x", "w"), ("T2", "y", "z"), errors=lambda text: "w" in text)
    assert texts == {"a.py": "x\nz"}
    assert reasons(outcome) == [("T1", "rule T1 failed")]


def test_what_the_encoding_lacks_is_not_written() -> None:
    source = SourceFile("a.py", "# coding: ascii\nx", encoding="ascii")
    found = [item for item in findings_of("a.py", source.text, [("T1", "x", "é")]) if item.span.line == 2]
    outcome = fix_files({"a.py": source}, found, lambda _: Report((), (), 1), lambda _: True)
    assert outcome.files == ()
    assert "cannot be written as ascii" in outcome.dropped[0].reason


def test_findings_left_stand_where_they_are_in_the_new_text() -> None:
    texts, outcome, _ = fixed("x\ny", ("T1", "x", "w\nw"), ("T2", "y", None))
    assert texts == {"a.py": "w\nw\ny"}
    assert [(item.code, item.span.line) for item in outcome.findings] == [("T2", 3)]
