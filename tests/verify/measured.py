"""Writes docs/measured.md from the measurements that ship with perflint: `python tests/verify/measured.py`.

Its tables and `perflint explain` have one source, so no figure is written by hand. Measure with
`perflint verify --all --store-to perflint/verify/measurements`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from perflint.rule_api.registry import load_rules
from perflint.verify.evidence import Measured, measured
from perflint.verify.results import Machine, Verdict
from perflint.verify.tables import markdown

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "measured.md"

HEAD = """# Measured

What rules' own benchmarks gave, newest first for each device: `perflint verify --all`. A ratio is before over after,
so above 1 the advice is faster; it is a verdict only where the interval leaves 1 out by more than the same code differs
from itself in the same run, and `no difference` only where all of it lies within 5 % of 1. Times before 2026-11-24 are
of a block's quick calls (the lower quartile), newer ones of the mean call. A first call holds compiling, into an empty
cache, without importing the compiler; it pays after as many calls as win back what the dearer of the two first calls
takes more.
This page is made from the files in `perflint/verify/measurements` by `python tests/verify/measured.py`.
"""


def page() -> str:
    known = [one for rule in load_rules() for one in measured(rule.code)]
    rows = [one for one in known if one.result.verdict is not Verdict.NOT_MEASURABLE]
    blocks = [HEAD]
    for where, group in groupby(sorted(rows, key=Measured.where), key=Measured.where):
        # The heading says what the first lines of a table do.
        table = markdown(Machine("", "", ""), [one.result for one in group]).split("\n", 2)[2]
        blocks.append(f"## {where}\n\n{table}")
    blocks += _without([one for one in known if one.result.verdict is Verdict.NOT_MEASURABLE])
    return "\n".join(block for block in blocks if block)


def _without(rows: Sequence[Measured]) -> Iterator[str]:
    """What has no figure, and why."""
    if rows:
        yield "## Not measured\n"
        for where, group in groupby(sorted(rows, key=Measured.where), key=Measured.where):
            lines = [f"- {one.result.code} {one.why_not()}" for one in sorted(group, key=lambda one: one.result.code)]
            yield "\n".join([f"{where}:\n", *lines, ""])


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
