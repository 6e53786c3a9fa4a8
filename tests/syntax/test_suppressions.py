"""Comments silence findings; strings do not; what does not read is told."""

from __future__ import annotations

import pytest

from perflint.syntax.file import SourceFile
from perflint.syntax.suppressions import Suppressions


def read(text: str) -> Suppressions:
    return Suppressions.read(SourceFile("f.py", text))


def silenced(text: str, code: str = "TPL101", name: str = "blocking-transfer", lines: tuple[int, int] = (1, 1)) -> bool:
    return read(text).silences(code, name, lines) is not None


@pytest.mark.parametrize(
    "comment",
    [
        "# perflint: ignore",
        "#perflint:ignore",
        "# perflint: ignore[TPL101]",
        "# perflint: ignore[tpl101]",
        "# perflint: ignore[blocking-transfer]",
        "# perflint: ignore[TPL301, blocking-transfer] the device is a host",
        "# perflint: ignore[TPL1]",
        "# perflint: ignore-file",
        "# perflint: ignore-file[TPL101]",
        "# type: ignore  # perflint: ignore[TPL101] why",
        "# noqa: TPL101",
        "# noqa: E501, TPL101",
        "# noqa:E501 TPL101",
        "# NoQA: TPL101 because",
    ],
)
def test_silences(comment: str) -> None:
    assert silenced(f"x.cuda()  {comment}\n")


@pytest.mark.parametrize(
    "comment",
    [
        "# perflint: ignore[TPL102]",
        "# perflint: ignore[unpinned-loader]",
        "# perflint: ignore[transfer]",
        "# noqa",
        "# noqa: E501",
        "# noqa: TPL102",
        "# perflint is fine",
    ],
)
def test_says_nothing_about_another_rule(comment: str) -> None:
    assert not silenced(f"x.cuda()  {comment}\n")


@pytest.mark.parametrize(
    "text",
    [
        "x.cuda('# perflint: ignore')\n",
        "x.cuda('''\n# perflint: ignore\n''')\n",
        "x.cuda(f'# noqa: TPL101 {y}')\n",
        'x.cuda(r"\\")  # "\n"# perflint: ignore-file"\n',
    ],
)
def test_strings_are_not_comments(text: str) -> None:
    assert not silenced(text, lines=(1, 1))
    assert not silenced(text, lines=(2, 2))


def test_any_line_of_the_statement_counts() -> None:
    text = "f(\n    x.cuda(),\n    y,  # perflint: ignore\n)\n"

    assert silenced(text, lines=(1, 4))
    assert not silenced(text, lines=(1, 2))


def test_alone_on_the_line_above() -> None:
    assert silenced("# perflint: ignore[TPL101]\nx.cuda()\n", lines=(2, 2))
    assert silenced("if a:\n    # perflint: ignore\n    x.cuda()\n", lines=(3, 3))


def test_several_may_stand_above() -> None:
    text = "# perflint: ignore[TPL301]\n# said why\n# perflint: ignore[TPL101]\nx.cuda()\n"

    assert silenced(text, lines=(4, 4))
    assert silenced(text, "TPL301", "deepcopy-state-dict", lines=(4, 4))


def test_behind_code_on_the_line_above_is_about_that_line() -> None:
    assert not silenced("y()  # perflint: ignore\nx.cuda()\n", lines=(2, 2))


def test_an_empty_line_in_between_ends_it() -> None:
    assert not silenced("# perflint: ignore\n\nx.cuda()\n", lines=(3, 3))


def test_the_comment_is_named_with_its_reason() -> None:
    found = read("a\nx.cuda()  # perflint: ignore[TPL101] -- host only  # noqa: E501\n").silences("TPL101", "n", (2, 2))

    assert found is not None
    assert (found.line, found.column, found.reason) == (2, 11, "host only")


@pytest.mark.parametrize(
    "text",
    [
        "def broken(:\nx.cuda()  # perflint: ignore\n",
        "  bad indent\nx.cuda()  # perflint: ignore\n",
        "s = 'unclosed\nx.cuda()  # perflint: ignore\n",
        's = f"{unclosed\nx.cuda()  # perflint: ignore\n',
        's = f"{d["k"]}"\nx.cuda()  # perflint: ignore\n',
        "$ ? \\ \0\r\nx.cuda()  # perflint: ignore\r\n",
        "a = 1\rx.cuda()  # perflint: ignore\r",
        "é = '日本'\nx.cuda()  # perflint: ignore",
        "x\x0c = 1\u2028y\nx.cuda()  # perflint: ignore",
    ],
)
def test_text_need_not_parse(text: str) -> None:
    assert silenced(text, lines=(2, 2))


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# perflint: ignroe[TPL101]", "unknown comment"),
        ("# perflint: ignore[TPL101", "without its ']'"),
        ("# perflint: ignore[]", "names no rule"),
        ("# perflint: ignore[TPL 101]", "neither a code nor a name"),
    ],
)
def test_what_does_not_read_is_told(comment: str, words: str) -> None:
    found = read(f"a\nx.cuda()  {comment}\n")

    (malformed,) = found.malformed
    assert malformed.line == 2
    assert words in malformed.message
    assert not found.each


def test_unused_only_when_every_named_rule_ran() -> None:
    comments = "perflint: ignore[TPL101]", "perflint: ignore[TPL101, no-such]", "perflint: ignore", "noqa: TPL101"
    found = read("".join(f"x  # {comment}\n" for comment in comments))
    used = [(one, "TPL101", "blocking-transfer") for one in found.each if one.line == 4]

    assert [one.line for one in found.unused({"TPL101", "blocking-transfer"}, used)] == [1, 2]
    assert [one.line for one in found.unused({"TPL101"}, used, everything_ran=True)] == [1, 2, 3]
    assert found.unused({"TPL301"}, used) == []


def test_of_a_list_only_what_silenced_nothing_is_unused() -> None:
    found = read("x  # perflint: ignore[TPL101, blocking-transfer, TPL3] why\ny  # noqa: E501,TPL101 , TPL201\n")
    used = [(found.each[0], "TPL301", "deepcopy-state-dict"), (found.each[1], "TPL201", "sync-in-hot-loop")]
    first, second = found.unused(set(), used, everything_ran=True)

    assert (first.selectors, first.kept) == (("TPL101", "blocking-transfer"), ("TPL3",))
    assert (second.selectors, second.kept) == (("TPL101",), ("TPL201", "E501"))


def test_text_that_mentions_nothing_is_not_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(_text: str) -> list[object]:
        raise AssertionError("scanned")

    monkeypatch.setattr("perflint.syntax.scan.scan", scan)

    assert read("x = 1  # a comment\n").each == ()
    assert read("x = 1  # noqa: E501\n").each == ()


def test_hostile_text_takes_no_more_than_linear_time_to_read() -> None:
    # Each of these made a version of the scanner look at the rest of the text again and again.
    for piece in ("f'{", 'f"""{', "f'{f\"{", "'\\", '"""', "{[(", "f'{a!r:{b:{c:"):
        read("# noqa: TPL101\n" + piece * 20_000)
