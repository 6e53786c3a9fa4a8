"""Prints how many findings carry a fix, per rule and over all, for source trees or for JSON reports of them.

python tests/judgements/fixable.py ../trees/one ../trees/two
python tests/judgements/fixable.py reports/*.json
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SAFE, UNSAFE = "safe", "unsafe"


def findings_of(given: Path) -> list[dict[str, Any]]:
    """The findings of a tree, which is checked, or of a report that `perflint check --output-format json` wrote."""
    if given.is_dir():
        command = [sys.executable, "-m", "perflint", "check", ".", "--no-cache", "--exit-zero"]
        text = subprocess.run(
            [*command, "--output-format", "json"], cwd=given, check=True, capture_output=True, text=True
        ).stdout
    else:
        text = given.read_text(encoding="utf-8")
    return list(json.loads(text)["findings"])


def table(findings: Iterable[dict[str, Any]]) -> str:
    """A line for each rule, those with the most findings without a fix first, and one for all."""
    found: Counter[str] = Counter()
    fixed: Counter[tuple[str, str]] = Counter()
    for one in findings:
        found[one["code"]] += 1
        if one["fix"] is not None:
            fixed[one["code"], one["fix"]["applicability"]] += 1
    ranked = sorted(found, key=lambda code: (fixed[code, SAFE] + fixed[code, UNSAFE] - found[code], code))
    lines = [_line(code, found[code], fixed[code, SAFE], fixed[code, UNSAFE]) for code in ranked]
    safe, unsafe = (sum(n for (_, kind), n in fixed.items() if kind == wanted) for wanted in (SAFE, UNSAFE))
    last = _line("all", sum(found.values()), safe, unsafe)
    return "\n".join(["rule      findings  safe  unsafe  share", *lines, last])


def _line(name: str, found: int, safe: int, unsafe: int) -> str:
    return f"{name:<10}{found:>8}{safe:>6}{unsafe:>8}{(safe + unsafe) / max(found, 1):>7.0%}"


if __name__ == "__main__":
    print(table(one for given in sys.argv[1:] for one in findings_of(Path(given))))
