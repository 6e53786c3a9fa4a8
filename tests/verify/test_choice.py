"""Which fixes are kept, when what they come to is planted."""

from collections.abc import Callable, Sequence

import pytest

from perflint.finding import Finding
from perflint.verify.choice import choose
from perflint.verify.results import Result, Verdict


class _Found:
    def __init__(self, code: str) -> None:
        self.code = code


def _result(ratio: float, verdict: Verdict = Verdict.FASTER, reason: str = "") -> Result:
    return Result(
        "TPL000", "w", "", verdict, ratio=ratio, ratio_low=ratio * 0.99, ratio_high=ratio * 1.01, reason=reason
    )


def _kept(planted: dict[str, Result], min_speedup: float | None = None) -> tuple[list[str], dict[str, str]]:
    findings: list[Finding] = [_Found(code) for code in planted if "+" not in code]  # type: ignore[misc]
    choice = choose(findings, _measured_by(planted), min_speedup)
    return [one.code for one in choice.kept], {item.finding.code: item.reason for item in choice.left_out}


def _measured_by(planted: dict[str, Result]) -> Callable[[Sequence[Finding]], Result]:
    return lambda findings: planted["+".join(one.code for one in findings)]


def test_only_what_pays_is_kept_and_the_rest_says_why() -> None:
    kept, left_out = _kept(
        {
            "helps": _result(2.0),
            "nothing": _result(1.0, Verdict.NO_DIFFERENCE),
            "worse": _result(0.8, Verdict.SLOWER),
            "wrong": Result("TPL000", "w", "", Verdict.DIFFERENT_RESULT, reason="result is 1 instead of 2"),
            "unknown": Result("TPL000", "w", "", Verdict.NOT_MEASURABLE, reason="hung"),
        }
    )
    assert kept == ["helps"]
    assert left_out["nothing"].startswith("no difference")
    assert left_out["worse"].startswith("slower")
    assert left_out["wrong"] == "different result: result is 1 instead of 2"
    assert left_out["unknown"] == "not measurable here: hung"


def test_what_does_not_pay_together_goes_least_first() -> None:
    kept, left_out = _kept(
        {"a": _result(2.0), "b": _result(1.2), "a+b": _result(0.9, Verdict.SLOWER)},
    )
    assert kept == ["a"]
    assert "not together with the others" in left_out["b"]


@pytest.mark.parametrize(("asked", "kept"), [(None, ["a"]), (1.05, []), (0.9, ["a"])])
def test_more_can_be_asked_for(asked: float | None, kept: list[str]) -> None:
    assert _kept({"a": _result(1.03)}, asked)[0] == kept


def test_asking_for_less_than_no_loss_keeps_what_makes_no_difference() -> None:
    assert _kept({"a": _result(1.0, Verdict.NO_DIFFERENCE)}, 0.98)[0] == ["a"]
