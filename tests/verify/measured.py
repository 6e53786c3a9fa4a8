"""Writes docs/measured.md from the measurements that ship with perflint: `python tests/verify/measured.py`.

Its tables and `perflint explain` have one source, so no figure is written by hand. Measure with
`perflint verify --all --store-to perflint/verify/measurements`.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from perflint.registry import load_rules
from perflint.verify.evidence import Measured, measured
from perflint.verify.results import Machine, Verdict
from perflint.verify.tables import markdown

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "measured.md"
STORED = ROOT / "perflint" / "verify" / "measurements"

HEAD = """# Measured

What rules' own benchmarks gave, newest first for each device: `perflint verify --all`. A ratio is before over after,
so above 1 the advice is faster; it is a verdict only where the interval leaves 1 out by more than the same code differs
from itself in the same run. A first call holds compiling, into an empty cache, without importing the compiler.
This page is made from the files in `perflint/verify/measurements` by `python tests/verify/measured.py`.
"""


def page() -> str:
    known = (one for rule in load_rules() for one in measured(rule.code))
    rows = [one for one in known if one.result.verdict is not Verdict.NOT_MEASURABLE]
    blocks = [HEAD]
    for where, group in groupby(sorted(rows, key=Measured.where), key=Measured.where):
        # The heading says what the first lines of a table do.
        table = markdown(Machine("", "", ""), [one.result for one in group]).split("\n", 2)[2]
        blocks.append(f"## {where}\n\n{table}")
    blocks.append(_needs())
    return "\n".join(block for block in blocks if block)


def _needs() -> str:
    """Rules whose effect shows on another device than was at hand, as the files say."""
    tables = (json.loads(file.read_text(encoding="utf-8")) for file in sorted(STORED.glob("*.json")))
    lacking = {
        row["code"]: row["reason"]
        for table in tables
        for row in table["results"]
        if row["verdict"] == Verdict.NOT_MEASURABLE.value and row["reason"].startswith("needs")
    }
    lines = [f"- {code}: not measurable there: {reason}" for code, reason in sorted(lacking.items())]
    return "\n".join(["## Not measured\n", *lines, ""]) if lines else ""


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
