import re
from dataclasses import replace

import pytest
from report_samples import EMPTY, ERRORS_ONLY, HOSTILE, REPORT, TRANSFER, one, shown

from perflint.finding import Heat, Report, Span
from perflint.report import as_markdown


def test_whole_output() -> None:
    assert shown(REPORT, "markdown") == (
        "### perflint: 2 findings in 1 of 17 files, 1 error\n"
        "\n"
        "| findings | rule | impact | fixes |\n"
        "| ---: | :--- | :--- | :--- |\n"
        "| 1 | TPL101 blocking-transfer | medium | 1 safe |\n"
        "| 1 | TPL201 sync-in-hot-loop | high | 1 unsafe |\n"
        "\n"
        "- **error** `pkg/broken.py:7:3`: invalid syntax\n"
        "\n"
        "<details><summary><code>train.py</code>: 2 findings</summary>\n"
        "\n"
        "**4:24 TPL101 blocking-transfer** (medium impact, high confidence)\\\n"
        '`batch["image"].to(device)` makes the host wait for the copy.\n'
        "\n"
        "```python\n"
        '    images = "🔥🔥"; x = batch["image"].to(device)\n'
        "                         ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "```\n"
        "\n"
        "*why hot:* runs every step: train.py:3 `for step, batch in enumerate(loader)`\\\n"
        '*what to do:* Copy asynchronously: `batch["image"].to(device, non_blocking=True)`.\\\n'
        "*fix:* pass `non_blocking=True` (safe)\n"
        "\n"
        "**5:11 TPL201 sync-in-hot-loop** (high impact, medium confidence)\\\n"
        "`loss.item()` makes the host wait for the device\n"
        "\n"
        "```python\n"
        "    print(loss.item())\n"
        "          ^^^^^^^^^^^\n"
        "```\n"
        "\n"
        "*why hot:* runs every step: train.py:3 `for step, batch in enumerate(loader)`\\\n"
        "*fix:* log every 100 steps (unsafe: fewer lines are printed)\\\n"
        "*see also:* train.py:5 `print(loss.item())`\n"
        "\n"
        "</details>\n"
    )


def test_empty_and_errors_only() -> None:
    assert shown(EMPTY, "markdown") == "### perflint: nothing found in 4 files\n"
    assert shown(ERRORS_ONLY, "markdown") == (
        "### perflint: nothing found in 1 file, 2 errors\n"
        "\n"
        "- **error** `pkg/broken.py:7:3`: invalid syntax\n"
        "- **error** `gone.py`: no such file\n"
    )


@pytest.mark.parametrize(
    ("words", "escaped"),
    [
        ("a *b* _c_ <b> [x](y) #1 | ~ $x$", "a \\*b\\* \\_c\\_ \\<b\\> \\[x\\](y) \\#\u200b1 \\| \\~ \\$x\\$"),
        ("@team see https://e.vil", "@\u200bteam see https&#58;//e.vil"),
        ("`a` and ``b`c``", "`a` and ``b`c``"),
        ("unpaired ` tick", "unpaired \\` tick"),
    ],
)
def test_words_make_no_markup(words: str, escaped: str) -> None:
    assert as_markdown.inline(words) == escaped


def test_a_message_begins_no_list() -> None:
    for message, escaped in [("- item", "\\- item"), ("1. item", "1\\. item"), ("=== title", "\\=== title")]:
        report = one("x\n", Span(1, 1, 1, 2))
        text = shown(Report((replace(report.findings[0], message=message),), (), 1), "markdown")
        assert f"\\\n{escaped}\n" in text


def test_a_fence_is_longer_than_any_in_the_source() -> None:
    text = shown(one('s = "````"\n', Span(1, 1, 1, 2)), "markdown")
    assert '\n`````python\ns = "````"\n^\n`````\n' in text


def test_hostile_text() -> None:
    text = shown(HOSTILE, "markdown")
    outside = re.sub(r"^(`{3,}).*?\n\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    # A block that begins with <details> is HTML up to its blank line: no markdown is read in it.
    outside = re.sub(r"^<details>.*$", "", outside, flags=re.MULTILINE)
    outside = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert not re.search(r"(?<!\\)<(?!/?(details|summary|code)>)", outside)
    assert not re.search(r"(?<!\\)\[", outside)
    assert "@here" not in outside


def test_too_long_a_comment_is_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_markdown, "MOST_CHARACTERS", 1000)
    many = tuple(
        replace(TRANSFER, path=f"m{number // 3}.py", heat=Heat(number % 3), advice=f"{TRANSFER.advice} {number}")
        for number in range(9)
    )
    text = shown(Report(many, (), 9), "markdown")
    assert len(text) < 1100
    shown_in_full = text.count("**4:24")
    assert 0 < shown_in_full < 9
    assert text.endswith(f"</details>\n\n*{9 - shown_in_full} more findings: too many for one comment.*\n")
    assert text.count("<details>") == text.count("</details>")
