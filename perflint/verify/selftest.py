"""How often verify itself is wrong on this machine: a side against itself, and a planted slow-down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from perflint.verify import planted
from perflint.verify.benchmarks import Benchmark, measure
from perflint.verify.launch import Launcher
from perflint.verify.measuring import Plan
from perflint.verify.results import Result, Verdict

Progress = Callable[[str, float], None]


def self_test(
    launcher: Launcher, folder: Path, plan: Plan, device: str, runs: int, progress: Progress
) -> Iterator[str]:
    """Lines that say what `runs` runs of each kind came to."""
    sizes = list(planted.SIZES)
    benchmark = Benchmark("planted", Path(planted.__file__), device, "planted work", tuple(sizes), "")
    for size, wanted in zip(sizes, (Verdict.SLOWER, Verdict.NO_DIFFERENCE)):
        results: list[Result] = []
        for number in range(runs):

            def report(_: str, share: float, number: int = number, size: str = size) -> None:
                progress(f"{size}: run {number + 1} of {runs}", share)

            results += measure(launcher, benchmark, plan, folder, [size], progress=report)
        yield described(size, wanted, results)


def against_itself(
    launcher: Launcher, folder: Path, plan: Plan, benchmarks: Sequence[Benchmark], runs: int, progress: Progress
) -> Iterator[str]:
    """Every benchmark's `before` against itself, at its smallest size: a line after each run, for all runs so far."""
    results: list[Result] = []
    for number in range(runs):
        for benchmark in benchmarks:

            def report(_: str, share: float, number: int = number, code: str = benchmark.code) -> None:
                progress(f"{code}: run {number + 1} of {runs}", share)

            results += measure(
                launcher, benchmark, plan, folder, benchmark.sizes[:1], progress=report, sides=("before", "before")
            )
        yield described(f"A against A, run {number + 1} of {runs}", Verdict.NO_DIFFERENCE, results)


def described(name: str, wanted: Verdict, results: Sequence[Result]) -> str:
    """`10 % more: 98 of 100 slower (2 no difference: planted), 14 pairs in the middle run`."""
    measured = [result for result in results if result.verdict is not Verdict.NOT_MEASURABLE]
    if not measured:
        return f"{name}: nothing could be measured"
    right = sum(result.verdict is wanted for result in measured)
    others = "; ".join(_others([result for result in results if result.verdict is not wanted]))
    pairs = sorted(result.pairs for result in measured)[len(measured) // 2]
    return (
        f"{name}: {right} of {len(measured)} {wanted.value}"
        + (f" ({others})" if others else "")
        + f", {pairs} pairs in the middle run"
    )


def _others(results: Iterable[Result]) -> Iterator[str]:
    """`2 faster: TPL105, TPL301`."""
    by_verdict: dict[str, Counter[str]] = {}
    for result in results:
        by_verdict.setdefault(result.verdict.value, Counter())[result.code] += 1
    for verdict, codes in by_verdict.items():
        names = (f"{code} x{number}" if number > 1 else code for code, number in sorted(codes.items()))
        yield f"{codes.total()} {verdict}: {', '.join(names)}"
