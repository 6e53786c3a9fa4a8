"""What the cache keeps of a report is all of it."""

from __future__ import annotations

import json

from perflint.engine.stored import report_from_json, report_to_json
from perflint.finding import (
    Applicability,
    Confidence,
    Edit,
    Finding,
    Fix,
    Heat,
    Hop,
    Impact,
    Problem,
    Report,
    Silenced,
    Span,
)

HOP = Hop("a.py", 3, "for x in loader", 2, "TPL201")
FINDING = Finding(
    code="TPL603",
    name="python-loop-over-tensor",
    path="a.py",
    span=Span(1, 2, 3, 4),
    message="This loop reads.",
    confidence=Confidence.MEDIUM,
    impact=Impact.LOW,
    heat=Heat.STEP,
    route=(HOP,),
    fix=Fix("Do it", Applicability.UNSAFE, (Edit(Span(1, 1, 1, 1), "x", 2),), "it may differ", "same bits"),
    advice="Read once.",
    related=(HOP,),
    cell=2,
    block=Span(5, 6, 7, 8),
)


def test_a_report_that_was_kept_is_the_report() -> None:
    problem = Problem("b.py", "cannot be read", 1, 2, "why")
    report = Report((FINDING,), (problem,), 2, {}, (Silenced(FINDING, 3, "a reason"),))
    kept = json.loads(json.dumps(report_to_json(report)))
    assert report_from_json(kept, {}) == report
