"""Every fixture of the built-in rules: the documentation's examples, the detection tests and the fix tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.testing import Case, check_case, find_cases

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.mark.parametrize("case", find_cases(FIXTURES), ids=str)
def test_fixture(case: Case) -> None:
    check_case(case)
