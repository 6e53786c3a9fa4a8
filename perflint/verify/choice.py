"""Which fixes to keep: those that are measured to pay, alone and together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perflint.finding import Finding
from perflint.verify.results import Result, Verdict


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A fix that is not kept, and why, in words."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """`results` are all that was measured, in order."""

    kept: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...]
    results: tuple[Result, ...]


def choose(
    findings: Sequence[Finding], measure: Callable[[Sequence[Finding]], Result], min_speedup: float | None = None
) -> Choice:
    """Try the fix of every finding alone, then all that pay together; the worst goes until those left pay together.

    A fix pays when its verdict is `faster` and its result is not different. `min_speedup` asks for a ratio of at least
    that much as well; a value below 1 asks for less: then what is not `slower` is enough.
    """
    results: list[Result] = []
    left_out: list[LeftOut] = []
    paying: list[tuple[float, Finding]] = []
    for finding in findings:
        result = measure([finding])
        results.append(result)
        reason = why_not(result, min_speedup)
        if reason:
            left_out.append(LeftOut(finding, reason))
        else:
            paying.append((result.ratio or 1.0, finding))
    while len(paying) > 1:
        result = measure([finding for _, finding in paying])
        results.append(result)
        reason = why_not(result, min_speedup)
        if not reason:
            break
        worst = min(paying, key=lambda pair: pair[0])
        paying.remove(worst)
        left_out.append(LeftOut(worst[1], f"faster alone, but not together with the others: {reason}"))
    return Choice(tuple(finding for _, finding in paying), tuple(left_out), tuple(results))


def why_not(result: Result, min_speedup: float | None = None) -> str:
    """Why the fix behind `result` is not worth keeping; empty when it is."""
    if result.verdict in {Verdict.NOT_MEASURABLE, Verdict.NOT_REACHED, Verdict.DIFFERENT_RESULT}:
        return f"{result.verdict.value}: {result.reason}" if result.reason else result.verdict.value
    if result.verdict in {Verdict.MORE, Verdict.SAME_COUNTS}:
        return result.reason
    if result.verdict is Verdict.FEWER:
        return ""
    if result.equal is False:
        return "different result"
    if result.verdict is Verdict.SLOWER:
        return f"slower: {speed(result)}"
    is_enough = min_speedup is not None and min_speedup < 1 and (result.ratio_low or 0.0) >= min_speedup
    if result.verdict is Verdict.UNDECIDED and not is_enough:
        return f"undecided: {result.reason if result.ratio is None else speed(result)}"
    if result.verdict is Verdict.NO_DIFFERENCE and (min_speedup is None or min_speedup >= 1):
        return f"no difference: {speed(result)}"
    if min_speedup is not None and (result.ratio or 0.0) < min_speedup:
        return f"{speed(result)}, less than the required {min_speedup:g}"
    return ""


def speed(result: Result) -> str:
    """`1.52 times as fast (1.33 to 1.88)`."""
    if result.ratio is None or result.ratio_low is None or result.ratio_high is None:
        return "not measured"
    return f"{result.ratio:.3g} times as fast ({result.ratio_low:.3g} to {result.ratio_high:.3g})"
