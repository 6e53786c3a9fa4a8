"""The values are the ones that GitHub's own uploader is tested with."""

import pytest

from perflint.finding import Confidence, Finding, Impact, Span
from perflint.report.fingerprint import finding_keys, line_hashes
from perflint.report.places import Texts

GREETING = ["e9496ae3ebfced30", "fb7c023a8b9ccb3f", "ce8ba1a563dcdaca", "e20e36e16fcb0cc8", "b3edc88f2938467e"]
GREETING = [f"{name}:1" for name in [*GREETING, "c8e28b0b4002a3a0", "c129715d7a2bc9a3"]]
LOREM = [*(f"a7f2ff13bc495cf2:{count}" for count in range(1, 7)), "a7f2ff1481e87703:1", "a9cf91f7bbf1862b:1"]
LOREM += ["55ec222b86bcae53:1", "cc97dc7b1d7d8f7b:1", "c129715d7a2bc9a3:1"]


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", ["c129715d7a2bc9a3:1"]),
        (" a\nb\n  \t\tc\n d", ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"]),
        (" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n", GREETING),
        (" hello; \t\nworld!!!\r\r\r  \t\tGreetings\r End\r", GREETING),
        (" hello; \t\r\nworld!!!\r\n\r\n\r\n  \t\tGreetings\r\n End\r\n", GREETING),
        (" hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n", GREETING),
        ("Lorem ipsum dolor sit amet.\n" * 10, LOREM),
    ],
)
def test_known_hashes(text: str, hashes: list[str]) -> None:
    assert line_hashes(text, range(1, len(hashes) + 1)) == dict(enumerate(hashes, 1))


def test_lines_above_do_not_matter_and_counts_do() -> None:
    text = "x = 1\n" * 2 + "y = 2\n"
    assert line_hashes("import torch\n\n" + text, [5])[5] == line_hashes(text, [3])[3]
    assert line_hashes("Lorem ipsum dolor sit amet.\n" * 10, [6]) == {6: "a7f2ff13bc495cf2:6"}
    assert line_hashes("x\n", [99]) == {}


def keys(text: str, *spans: Span) -> list[str]:
    findings = [Finding("TPL1", "n", "m.py", span, "M.", Confidence.HIGH, Impact.LOW) for span in spans]
    return finding_keys(findings, Texts({"m.py": text}))


def test_own_key_survives_moved_and_reindented_lines_and_tells_equal_ones_apart() -> None:
    before = keys("f(x); f(x)\n", Span(1, 1, 1, 5), Span(1, 7, 1, 11))
    after = keys("import a\nif b:\n    f(x); f(x)\n", Span(3, 5, 3, 9), Span(3, 11, 3, 15))
    assert before == after
    assert len(set(before)) == 2
