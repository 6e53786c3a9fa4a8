from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from tests.kinds.cases import Case, Loaded, agrees, cases

ALL = list(cases())


@lru_cache
def loaded(program: Path) -> Loaded:
    return Loaded(program)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_kind(case: Case) -> None:
    kind = loaded(case.program).kind(case)
    assert agrees(kind, case.wanted), f"{case} is {kind} ({kind.certainty.label}), not {case.wanted}"


def test_a_third_of_the_cases_are_look_alikes() -> None:
    """What must come out unknown, or as something that lives on no device."""
    quiet = ("unknown", "number", "string", "none", "sequence", "mapping", "array", "instance", "shape", "dtype")
    silent = [case for case in ALL if case.wanted.split()[0] in quiet or case.wanted == "tensor"]
    assert len(ALL) >= 120
    assert len(silent) * 3 >= len(ALL)
