import re
from pathlib import Path

import pytest
from report_samples import EMPTY, ERRORS_ONLY, HOSTILE, REPORT, one, shown

from perflint.finding import Span
from perflint.report import render


def test_whole_output_worst_first() -> None:
    assert shown(REPORT, "github") == (
        "::error file=pkg/broken.py,line=7,col=3,title=perflint::invalid syntax\n"
        "::warning file=train.py,line=5,endLine=5,col=11,endColumn=22,title=TPL201 sync-in-hot-loop::"
        "`loss.item()` makes the host wait for the device%0A"
        "why hot: runs every step: train.py:3 `for step, batch in enumerate(loader)`%0A"
        "see also: train.py:5 `print(loss.item())`%0A"
        "fix: log every 100 steps (unsafe, fewer lines are printed)\n"
        "::warning file=train.py,line=4,endLine=4,col=24,endColumn=49,title=TPL101 blocking-transfer::"
        '`batch["image"].to(device)` makes the host wait for the copy.%0A'
        "why hot: runs every step: train.py:3 `for step, batch in enumerate(loader)`%0A"
        'what to do: Copy asynchronously: `batch["image"].to(device, non_blocking=True)`.%0A'
        "fix: pass `non_blocking=True` (safe)\n"
    )


def test_empty_says_nothing_and_errors_have_what_they_know() -> None:
    assert shown(EMPTY, "github") == ""
    assert shown(ERRORS_ONLY, "github").splitlines()[1] == "::error file=gone.py,title=perflint::no such file"


def test_low_impact_is_a_notice_and_spans_of_lines_have_no_columns() -> None:
    assert shown(one("f(\n)\n", Span(1, 1, 2, 2)), "github") == (
        "::notice file=m.py,line=1,endLine=2,title=TPL501 odd::Odd.\n"
    )


def test_no_text_can_become_a_command() -> None:
    text = shown(HOSTILE, "github")
    lines = re.split("[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text.removesuffix("\n"))
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning"]
    for line in lines:
        properties = line.removeprefix("::").partition("::")[0]
        # Each comma and colon that was in the path is escaped: what is left separates properties.
        for part in properties.partition(" ")[2].split(","):
            assert re.fullmatch(r"(file|line|endLine|col|endColumn|title)=[^:]*", part)
    assert "file=a\\n%3A%3Aerror%3A%3Ax%250A%2Cb%3Ac\\x1b[31m\\u202e</script>" in text
    assert "broken %25 : , message" in text


def test_paths_count_from_the_git_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    text = render(one("x\n", Span(1, 1, 1, 2)), "github", [], root=tmp_path, version="1")
    assert text.startswith("::notice file=sub/m.py,line=1")
