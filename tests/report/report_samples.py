"""Small reports that the tests of all formats share."""

from __future__ import annotations

import ast

from perflint.finding import (
    Applicability,
    Confidence,
    Edit,
    Finding,
    Fix,
    Heat,
    Hop,
    Impact,
    Problem,
    Report,
    Span,
)
from perflint.report import render
from perflint.report.order import EVERYTHING, Layout
from perflint.rule_api.rule import Calls, Rule

TRAIN = """\
import torch

for step, batch in enumerate(loader):
    images = "🔥🔥"; x = batch["image"].to(device)
    print(loss.item())
"""


class BlockingTransfer(Rule):
    """A host-to-device copy makes the host wait.

    What it does
    Reports blocking copies.

    Why is this slow?
    Without `non_blocking=True` the host waits for the copy.

    What to do
    Pass `non_blocking=True`.

    Fix safety
    Safe where the device is CUDA.

    Not reported
    - Copies on the CPU.
    """

    code, name = "TPL101", "blocking-transfer"
    impact = Impact.MEDIUM
    listens = (Calls("to"),)
    needs_accelerator = True


class PluginRule(Rule):
    """Something else is slow."""

    code, name = "ACME001", "something-else"
    impact = Impact.LOW
    confidence = Confidence.MEDIUM
    listens = (Calls(),)


RULES: list[type[Rule]] = [PluginRule, BlockingTransfer]

TRANSFER = Finding(
    "TPL101",
    "blocking-transfer",
    "train.py",
    Span(4, 24, 4, 49),
    '`batch["image"].to(device)` makes the host wait for the copy.',
    Confidence.HIGH,
    Impact.MEDIUM,
    Heat.STEP,
    (Hop("train.py", 3, "for step, batch in enumerate(loader)"),),
    Fix(
        "pass `non_blocking=True`",
        Applicability.SAFE,
        (Edit(Span(4, 48, 4, 48), ", non_blocking=True"),),
        numerics="same bits",
    ),
    'Copy asynchronously: `batch["image"].to(device, non_blocking=True)`.',
)
SYNC = Finding(
    "TPL201",
    "sync-in-hot-loop",
    "train.py",
    Span(5, 11, 5, 22),
    "`loss.item()` makes the host wait for the device",
    Confidence.MEDIUM,
    Impact.HIGH,
    Heat.STEP,
    (Hop("train.py", 3, "for step, batch in enumerate(loader)"),),
    Fix(
        "log every 100 steps",
        Applicability.UNSAFE,
        (Edit(Span(5, 5, 5, 23), "if step % 100 == 0:\n        print(loss.item())"),),
        "fewer lines are printed",
        "same bits",
    ),
    related=(Hop("train.py", 5, "print(loss.item())"),),
)
BROKEN = Problem("pkg/broken.py", "invalid syntax", 7, 3)
REPORT = Report((SYNC, TRANSFER), (BROKEN,), 17, {"train.py": TRAIN})
EMPTY = Report((), (), 4)
ERRORS_ONLY = Report((), (BROKEN, Problem("gone.py", "no such file")), 1)

HOSTILE_NAME = 'a\n::error::x%0A,b:c\x1b[31m\u202e</script>"><img src=x onerror=alert(1)>\u2028|`*.py'
HOSTILE_LINE = "x = '</script><img src=x onerror=alert(1)>\x1b]0;t\x07\u202e\udc80``` [l](http://e.vil) @here'"
HOSTILE = Report(
    (
        Finding(
            "TPL101",
            "blocking-transfer",
            HOSTILE_NAME,
            Span(1, 1, 1, len(HOSTILE_LINE) + 1),
            f"`{HOSTILE_LINE}`\r\n::warning::second\nbroken % : , message",
            Confidence.HIGH,
            Impact.HIGH,
            Heat.STEP,
            (Hop(HOSTILE_NAME, 1, HOSTILE_LINE),),
            Fix(f"t{HOSTILE_LINE}", Applicability.UNSAFE, (Edit(Span(1, 1, 1, 2), HOSTILE_LINE),), HOSTILE_LINE),
            HOSTILE_LINE,
            (Hop(HOSTILE_NAME, 1, HOSTILE_LINE),),
        ),
    ),
    (Problem(HOSTILE_NAME, f"bad {HOSTILE_LINE}\n::error::again", 1, 1),),
    1,
    {HOSTILE_NAME: f"{HOSTILE_LINE}\n"},
)


def shown(
    report: Report,
    output_format: str,
    *,
    width: int = 100,
    color: bool = False,
    statistics: bool = False,
    layout: Layout = EVERYTHING,
) -> str:
    return render(
        report,
        output_format,
        RULES,
        width=width,
        color=color,
        statistics=statistics,
        version="1.2.3",
        layout=layout,
    )


def one(text: str, span: Span, path: str = "m.py") -> Report:
    """A report with a plain finding at `span` of a file with `text`."""
    finding = Finding("TPL501", "odd", path, span, "Odd.", Confidence.HIGH, Impact.LOW)
    return Report((finding,), (), 1, {path: text})


def text_at(text: str, span: Span) -> str:
    """What a reader of a one-line span sees flagged."""
    return text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


assert text_at(TRAIN, TRANSFER.span) == 'batch["image"].to(device)'
assert text_at(TRAIN, SYNC.span) == "loss.item()"
ast.parse(TRAIN)
