"""Every fixture that a fix changes does the same before and after it, on the same inputs, or says what differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.finding import Applicability
from perflint.testing import Case, find_cases, numerics_of

pytest.importorskip("torch")
pytest.importorskip("numpy")

from comparing import differences
from running import load_driver, run

FIXTURES = Path(__file__).parents[2] / "fixtures"
ROOTS = [FIXTURES, FIXTURES / "example_plugin" / "perflint_acme" / "fixtures"]
#: What is removed is a comment for perflint: there is nothing to run.
COMMENTS_ONLY = {"TPL001"}
CASES = [case for root in ROOTS for case in find_cases(root) if case.group.partition("-")[0] not in COMMENTS_ONLY]
FIXABLE = [
    (case, applicability)
    for case in CASES
    if not case.group.startswith("_")
    for applicability in (Applicability.SAFE, Applicability.UNSAFE)
    if case.result(applicability).exists()
]


def _name(value: object) -> str:
    return value.label if isinstance(value, Applicability) else str(value)


@pytest.mark.parametrize("case", sorted({case for case, _ in FIXABLE}, key=str), ids=str)
def test_every_fixable_case_is_run_or_says_why_not(case: Case) -> None:
    driver = load_driver(case.path.parent)
    assert driver.runs(case) != bool(driver.reason_not_to(case)), f"{case.group}/run.py: {case.path.stem}"


def test_nothing_is_listed_that_is_no_case() -> None:
    known = {(case.path.parent, case.path.stem) for case, _ in FIXABLE}
    listed = {(group, name) for group in {case.path.parent for case in CASES} for name in load_driver(group).listed()}
    assert not listed - known


@pytest.mark.parametrize(("case", "applicability"), FIXABLE, ids=_name)
@pytest.mark.filterwarnings("ignore")  # the warnings are those of the code under test
def test_results_are_the_same(case: Case, applicability: Applicability) -> None:
    driver = load_driver(case.path.parent)
    if not driver.runs(case):
        pytest.skip(driver.reason_not_to(case))
    before = run(driver, case, case.path)
    after = run(driver, case, case.result(applicability))
    exact = numerics_of(case)[applicability] <= {"same bits", ""}
    found = differences(before, after, exact=exact)
    allowed = driver.on_purpose(case) if applicability is Applicability.UNSAFE else {}
    wrong = [f"{path}: {text}" for path, text in found if not _covered(path, allowed)]
    assert not wrong, "\n".join([str(case), *wrong])
    idle = [path for path in allowed if not any(_covered(each, [path]) for each, _ in found)]
    assert not idle, f"{case} says that these differ: {idle}"


def _covered(path: str, allowed: object) -> bool:
    return any(path == each or path.startswith(f"{each}.") for each in allowed)  # type: ignore[attr-defined]
