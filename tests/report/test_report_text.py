import re
import subprocess
import sys
from dataclasses import replace

import pytest
from report_samples import EMPTY, ERRORS_ONLY, HOSTILE, REPORT, TRANSFER, one, shown

from perflint.errors import PerflintError
from perflint.finding import Applicability, Fix, Heat, Hop, Report, Span
from perflint.report import FORMATS, render


def test_whole_output() -> None:
    assert shown(REPORT, "text") == (
        'train.py:5:11  TPL201 sync-in-hot-loop [high impact, medium confidence]\n'
        '  `loss.item()` makes the host wait for the device\n'
        '     5 |     print(loss.item())\n'
        '       |           ^^^^^^^^^^^\n'
        '  why hot:    runs every step: train.py:3 `for step, batch in enumerate(loader)`\n'
        '  fix:        log every 100 steps (unsafe: fewer lines are printed; same bits; apply with `perflint\n'
        '              fix --unsafe`)\n'
        '  see also:   train.py:5 print(loss.item())\n'
        '\n'
        'train.py:4:24  TPL101 blocking-transfer [medium impact, high confidence]\n'
        '  `batch["image"].to(device)` makes the host wait for the copy.\n'
        '     4 |     images = "🔥🔥"; x = batch["image"].to(device)\n'
        '       |                          ^^^^^^^^^^^^^^^^^^^^^^^^^\n'
        '  why hot:    runs every step: train.py:3 `for step, batch in enumerate(loader)`\n'
        '  what to do: Copy asynchronously: `batch["image"].to(device, non_blocking=True)`.\n'
        '  fix:        pass `non_blocking=True` (safe, same bits; apply with `perflint fix`)\n'
        '\n'
        'error: pkg/broken.py:7:3: invalid syntax\n'
        '\n'
        '2 findings in 1 of 17 files (1 high, 1 medium); 1 fixable with `perflint fix`, 1 more with `--unsafe`; '
        '1 error.\n'
    )  # fmt: skip


def test_clean_is_one_line() -> None:
    assert shown(EMPTY, "text") == "4 files checked, nothing found.\n"
    assert shown(Report((), (), 0), "text") == "no Python files to check.\n"


def test_errors_only() -> None:
    assert shown(ERRORS_ONLY, "text") == (
        "error: pkg/broken.py:7:3: invalid syntax\n"
        "error: gone.py: no such file\n"
        "\n"
        "1 file checked, nothing found; 2 errors.\n"
    )


def test_statistics_counts_rules() -> None:
    assert shown(Report((*REPORT.findings, REPORT.findings[1]), (), 17), "text", statistics=True) == (
        "2  TPL101  blocking-transfer  2 medium impact, fixes: 2 safe\n"
        "1  TPL201  sync-in-hot-loop   1 high impact, fixes: 1 unsafe\n"
        "\n"
        "3 findings in 1 of 17 files (1 high, 2 medium); 2 fixable with `perflint fix`, 1 more with `--unsafe`.\n"
    )
    assert shown(EMPTY, "text", statistics=True) == "4 files checked, nothing found.\n"


def excerpt(text: str, span: Span, width: int = 100) -> list[str]:
    """Source and caret lines without their gutters."""
    lines = shown(one(text, span), "text", width=width).splitlines()
    return [line.partition("| ")[2] for line in lines if re.match(r" +\d* \| ", line)]


@pytest.mark.parametrize(
    ("text", "span", "source", "carets"),
    [
        ("\tf(x)\n", Span(1, 2, 1, 6), "    f(x)", "    ^^^^"),
        ("ab\tf(x)\n", Span(1, 4, 1, 8), "ab  f(x)", "    ^^^^"),
        ("s = '日本'; f(x)\r\nnext\r\n", Span(1, 11, 1, 15), "s = '日本'; f(x)", " " * 12 + "^^^^"),
        ("e\u0301\u0302 = f(x)", Span(1, 7, 1, 11), "e\u0301\u0302 = f(x)", "    ^^^^"),
        ("👩\u200d👩 = f", Span(1, 7, 1, 8), "👩\u200d👩 = f", "     ^"),
        ("a\x1b[1m\u202e = f(x)", Span(1, 10, 1, 14), "a\\x1b[1m\\u202e = f(x)", " " * 17 + "^^^^"),
        ("f(x)", Span(1, 3, 1, 3), "f(x)", "  ^"),
        ("f(x)", Span(1, 40, 1, 50), "f(x)", "    ^"),
    ],
)
def test_carets_stand_under_the_span(text: str, span: Span, source: str, carets: str) -> None:
    assert excerpt(text, span) == [source, carets]


def test_long_lines_are_cut_around_the_span() -> None:
    text = "a" * 5000 + "(target)" + "b" * 5000
    source, carets = excerpt(text, Span(1, 5002, 1, 5008), width=80)
    assert len(source) <= 71
    assert source.startswith("...aaa")
    assert source.endswith("bbb...")
    assert source[carets.index("^") : len(carets)] == "target"


def test_cut_ends_are_marked() -> None:
    assert excerpt("f(x)" + " y" * 500, Span(1, 1, 1, 5), width=60)[0].startswith("f(x) y y")
    assert excerpt("f(x)" + " y" * 500, Span(1, 1, 1, 5), width=60)[0].endswith("...")
    assert excerpt("y " * 500 + "f(x)", Span(1, 1001, 1, 1005), width=60)[0].startswith("...")
    assert excerpt("y " * 500 + "f(x)", Span(1, 1001, 1, 1005), width=60)[0].endswith(" f(x)")


def test_a_megabyte_in_one_line_is_quick_to_show() -> None:
    text = "x = [" + "f(1), " * 200_000 + "]\n"
    findings = [one(text, Span(1, 6 + 6 * at, 1, 10 + 6 * at)).findings[0] for at in range(2000)]
    shown(Report(tuple(findings), (), 1, {"m.py": text}), "text")


def test_a_span_longer_than_the_line_shows_its_beginning() -> None:
    source, carets = excerpt("x" * 50 + "START" + "y" * 3000, Span(1, 51, 1, 3056), width=80)
    assert len(source) <= 71
    assert source[carets.index("^") :].startswith("STARTyyy")
    assert len(carets) <= len(source)


def test_spans_of_many_lines_keep_first_and_last() -> None:
    text = "    f(\n" + "        a,\n" * 9 + "    )\n"
    assert excerpt(text, Span(1, 5, 11, 6)) == ["f(", "^^", "    a,", "    ^^", "...", ")", "^"]


def test_a_line_beyond_the_text_prints_no_excerpt() -> None:
    assert excerpt("x\n", Span(9, 1, 9, 2)) == []


@pytest.mark.parametrize("color", [False, True])
def test_hostile_text_is_shown_harmless(color: bool) -> None:
    text = shown(HOSTILE, "text", color=color)
    plain = re.sub("\x1b\\[[0-9;]*m", "", text) if color else text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", plain)
    assert (
        'a\\n::error::x%0A,b:c\\x1b[31m\\u202e</script>"><img src=x onerror=alert(1)>\\u2028|`*.py:1:1  TPL101' in plain
    )


def test_colour_only_when_asked() -> None:
    plain, coloured = shown(REPORT, "text"), shown(REPORT, "text", color=True)
    assert "\x1b" not in plain
    assert "\x1b[33mTPL101\x1b[0m" in coloured
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain


def test_heat_without_a_route_is_still_said() -> None:
    finding = one("f(x)", Span(1, 1, 1, 5)).findings[0]
    hot = type(finding)(**{name: getattr(finding, name) for name in finding.__slots__} | {"heat": Heat.SAMPLE})
    assert "why hot:    runs for every sample" in shown(Report((hot,), (), 1), "text")


def test_unknown_format() -> None:
    with pytest.raises(PerflintError, match="'yaml'; known: text, full"):
        render(EMPTY, "yaml", (), version="1")


def test_only_the_format_asked_for_is_loaded() -> None:
    code = (
        "import sys; from perflint.report import render; from perflint.finding import Report;"
        "render(Report((), (), 0), 'json', [], version='1');"
        "sys.exit(any(name in sys.modules for name in ('rich', 'perflint.report.as_text', 'perflint.report.as_html')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("report", [REPORT, EMPTY, ERRORS_ONLY, HOSTILE])
def test_every_format_prints_every_report_as_utf8(output_format: str, report: Report) -> None:
    text = shown(report, output_format)
    text.encode("utf-8")
    assert text == "" or (text.endswith("\n") and not text.endswith("\n\n"))
    assert shown(report, output_format) == text


def test_a_fix_claims_no_numerics_that_its_rule_does_not() -> None:
    finding = replace(TRANSFER, fix=Fix("Do it", Applicability.SAFE, ()))
    for output_format in ("text", "html", "sarif"):
        said = shown(Report((finding,), (), 1, REPORT.texts), output_format)
        assert "same bits" not in said
        assert "Numerics" not in said
    assert "Do it (safe; apply with `perflint fix`)" in shown(Report((finding,), (), 1, REPORT.texts), "text")


def test_many_copies_are_counted_after_the_first_few() -> None:
    hops = tuple(Hop(f"copies/number_{number}.py", number, "the same code", code="TPL101") for number in range(1, 41))
    lines = shown(Report((replace(TRANSFER, related=hops),), (), 1), "text").splitlines()
    assert sum("copies/number" in line for line in lines) == 8
    assert any("32 more places" in line for line in lines)
