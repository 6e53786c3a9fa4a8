"""Makes docs/accuracy.md of the scores in tests/accuracy/results.

python tests/accuracy/page.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "accuracy.md"

_HEAD = """\
<!-- Made by `python tests/accuracy/page.py`; run the commands below instead of editing it. -->

# Accuracy: what `check` says, and what really happened

The code below ran for one training step (programs: three steps) on a simulated CUDA device, after a warm-up, and every
line that waited, or made a tensor on the host that was then moved to the device, was recorded (docs/observe.md).

- **Recall**: of those lines, how many carry a finding on the line, or on a line of the project that called it.
- **Precision**: of the findings whose line ran, how many were seen to happen.

Which lines ran is recorded, not which parts of them: a finding on `b` of `a and b` counts only if something happened in
`b`. Only rules that claim something an observation shows are counted. A finding that is right under another
configuration than the one that ran counts as wrong here if its line ran, and a line that only runs with another one is
not counted at all. Nobody judged anything by hand.

In two corpora a step is no training step: `diffusers-schedulers` samples, and `monai-metrics` measure a validation.
No rule reports such reads: only what training repeats, and what stands in a forward. Both have their rows, and are
left out of the sums and of the table by rule.

A row is of the rules of one commit; `+` is that commit with changes that were landed with the row. Rows are counted
again where the observations are at hand, so that they are of several commits.

    pip install torch==2.13.0 torchvision torchmetrics ...      # those of tests/accuracy/packages.py, and timm
    python tests/accuracy/drive.py timm OUT                     # or another name of corpora.py
    python tests/accuracy/score.py timm .../site-packages/timm OUT --out tests/accuracy/results/timm.json
    python tests/accuracy/training.py REPOSITORIES OUT          # training programs of public repositories
    python tests/accuracy/own_programs.py --write               # this project's own programs, which its tests run
"""


_FIRST = """\
## Before rules were changed for it

The rules of the commit named, which nobody had changed in view of what this code did: it says what to expect of code
that nobody has looked at. The rows of kornia, programs, timm and torchvision were counted before a launch confirmed a
finding that something runs every step.
"""


#: What nothing of this project had used, read or checked before it was observed, all by the rules of one commit.
_UNSEEN = ("e3nn", "geoopt", "pykan", "pytorch-tabnet", "snntorch", "torchattacks", "torchsde")

#: What no rule is for: a step that samples, or measures a validation.
_NO_TRAINING = ("diffusers-schedulers", "monai-metrics")


def page(scores: Iterable[dict[str, Any]]) -> str:
    """The whole page, from the objects that score.py writes."""
    listed = sorted(scores, key=lambda one: str(one["name"]))
    first = [one["first"] for one in listed if "first" in one]
    training = [one for one in listed if one["name"] not in _NO_TRAINING]
    parts = [
        _HEAD,
        "## By corpus\n\n" + "\n".join([*_corpora(listed), "", _together(training)]) + "\n",
        f"{_FIRST}\n" + "\n".join([*_corpora(first), *_unseen(first)]) + "\n",
        "## By rule\n\n" + "\n".join(_rules(training)),
    ]
    return "\n".join(parts) + "\n"


def _corpora(scores: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield "| corpus | version | rules of | observed | could not run | recall | precision |"
    yield "|---|---|---|---|---|---|---|"
    for one in scores:
        rules = one["rules"].values()
        found, missed = _sum(rules, "found"), _sum(rules, "missed")
        right, wrong = _sum(rules, "confirmed"), _sum(rules, "refuted")
        yield (
            f"| {one['name']} | {one['version']} | {one.get('rules_of', '')} | {_observed(one)} | {one['failed']} "
            f"| {_share(found, missed)} | {_share(right, wrong)} |"
        )


def _together(scores: Iterable[dict[str, Any]]) -> str:
    aside = " and ".join(f"`{name}`" for name in _NO_TRAINING)
    return f"Together, without {aside}: {_sums(scores)}."


def _unseen(scores: Iterable[dict[str, Any]]) -> list[str]:
    """The sums of what nobody had looked at before."""
    listed = [one for one in scores if one["name"] in _UNSEEN]
    names = ", ".join(str(one["name"]) for one in listed)
    text = f"Libraries that this project had never checked, read or used ({names}), together: {_sums(listed)}."
    return ["", text] if listed else []


def _sums(scores: Iterable[dict[str, Any]]) -> str:
    rules = [rule for one in scores for rule in one["rules"].values()]
    recall = _share(_sum(rules, "found"), _sum(rules, "missed"))
    return f"recall {recall}, precision {_share(_sum(rules, 'confirmed'), _sum(rules, 'refuted'))}"


def _observed(one: dict[str, Any]) -> str:
    """How many, and of how many where the corpus was not gone through whole."""
    return f"{one['observed']} of {one['known']}" if "known" in one else str(one["observed"])


def _rules(scores: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield "| rule | recall | precision |"
    yield "|---|---|---|"
    listed = list(scores)
    for rule in sorted({rule for one in listed for rule in one["rules"]}):
        rows = [one["rules"][rule] for one in listed if rule in one["rules"]]
        recall = _share(_sum(rows, "found"), _sum(rows, "missed"))
        name = "no rule claims such lines" if rule == "none" else rule
        yield f"| {name} | {recall} | {_share(_sum(rows, 'confirmed'), _sum(rows, 'refuted'))} |"


def _sum(rows: Iterable[dict[str, int]], key: str) -> int:
    return sum(row[key] for row in rows)


def _share(yes: int, no: int) -> str:
    """`3 of 4 (75 %)`, or a dash where there is nothing to count."""
    return f"{yes} of {yes + no} ({round(100 * yes / (yes + no))} %)" if yes + no else "-"


def main() -> None:
    found = [json.loads(file.read_text()) for file in sorted((HERE / "results").glob("*.json"))]
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
