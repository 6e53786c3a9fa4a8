"""How often verify itself is wrong on this machine: a side against itself, and a planted slow-down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from perflint.verify import planted
from perflint.verify.benchmarks import Benchmark, measure
from perflint.verify.launch import Launcher
from perflint.verify.measuring import Plan
from perflint.verify.results import Result, Verdict


def self_test(
    launcher: Launcher,
    folder: Path,
    plan: Plan,
    device: str,
    runs: int,
    progress: Callable[[str, float], None] = lambda *_: None,
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


def described(name: str, wanted: Verdict, results: list[Result]) -> str:
    """`10 % more: 98 of 100 slower (2 no difference), 14 pairs in the middle run`."""
    counts = Counter(result.verdict for result in results)
    others = ", ".join(f"{number} {verdict.value}" for verdict, number in counts.items() if verdict is not wanted)
    pairs = sorted(result.pairs for result in results)[len(results) // 2]
    return (
        f"{name}: {counts[wanted]} of {len(results)} {wanted.value}"
        + (f" ({others})" if others else "")
        + f", {pairs} pairs"
    )
