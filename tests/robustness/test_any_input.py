"""Whatever text is given, there is an answer: findings whose spans hold what was matched, or an error entry."""

from __future__ import annotations

import ast
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflint.discovery import discover
from perflint.finding import Report
from perflint.registry import load_rules
from perflint.run import Options, check
from perflint.settings import load_settings
from perflint.source.read import decode_source

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
#: Mutated programs. `PERFLINT_MUTANTS` asks for more.
MUTANTS = int(os.environ.get("PERFLINT_MUTANTS", "150"))
LOOP = "def train(model, loader, optimizer):\n    for batch in loader:\n        loss = model(batch.cuda()).sum()\n"
TAIL = "        loss.backward()\n        optimizer.step()\n        gc.collect()\n"


def checked(folder: Path, *, jobs: int = 1) -> Report:
    settings = load_settings(folder)
    rules = [rule() for rule in load_rules()]
    return check(discover([folder], settings), Options(settings, rules, cache=False, jobs=jobs, everything=True))


def sane(report: Report, folder: Path) -> None:
    """No rule failed, and every finding lies in its file."""
    for error in report.errors:
        assert "failed" not in error.message, error
        assert "internal" not in error.message, error
    for finding in report.findings:
        file = Path(finding.path).absolute()
        source = decode_source(file.read_bytes(), finding.path)
        span = finding.span
        if finding.cell is not None:
            continue
        assert (1, 1) <= (span.line, span.column) <= (span.end_line, span.end_column), finding
        lines = source.lines
        assert span.end_line <= len(lines), finding
        assert span.end_column <= len(lines[span.end_line - 1]) + 1, finding
    del folder


def mutants(dice: random.Random) -> Iterator[bytes]:
    """Training code with something wrong in it."""
    files = sorted(file for file in FIXTURES.rglob("*.py") if ".unsafe" not in file.name and ".fixed" not in file.name)
    while True:
        data = dice.choice(files).read_bytes()
        for _ in range(dice.choice((1, 1, 2, 5))):
            data = _mutated(data, dice)
        yield data


def _mutated(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b"\n"]
    place = dice.randrange(len(lines))
    way = dice.randrange(12)
    if way == 0:
        del lines[place]
    elif way == 1:
        lines.insert(place, lines[dice.randrange(len(lines))])
    elif way == 2:
        words = re.split(rb"(\W+)", lines[place])
        dice.shuffle(words)
        lines[place] = b"".join(words)
    elif way == 3:
        lines[place] = re.sub(rb"[()\[\]{}:]", b"", lines[place], count=1)
    elif way == 4:
        lines[place] = b"\x0c" + lines[place]
    elif way == 5:
        return data.replace(b"\n", dice.choice((b"\r", b"\r\n", b"\n\r")))
    elif way == 6:
        return b"\xef\xbb\xbf" + data
    elif way == 7:
        lines[place] = lines[place].replace(b"    ", b"\t")
    elif way == 8:
        lines[place] = lines[place].rstrip(b"\n") + "  # \U0001f525\u202e\u0301".encode() + b"\n"
    elif way == 9:
        lines[place] = re.sub(rb"\b[a-z]\w*", "\U00020000\u00e9".encode(), lines[place], count=1)
    elif way == 10:
        cut = dice.randrange(len(data) + 1)
        return data[:cut] + dice.choice((b"\0", b"\xff", b"\\", b'"""', b"\x1a", b"\xed\xa0\x80")) + data[cut:]
    else:
        return data[: dice.randrange(len(data) + 1)]
    return b"".join(lines)


def test_mutated_training_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perflint.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    made = mutants(random.Random(20))
    for number in range(MUTANTS):
        (tmp_path / f"m{number}.py").write_bytes(next(made))
    report = checked(tmp_path, jobs=2)
    sane(report, tmp_path)
    assert report.findings
    refused = {error.path for error in report.errors}
    for number in range(MUTANTS):
        name = f"m{number}.py"
        try:
            # Parsed as bytes, some versions of Python pass over what is no UTF-8 in comments.
            (tmp_path / name).read_bytes().decode()
            ast.parse((tmp_path / name).read_bytes())
        except (SyntaxError, ValueError):
            continue
        assert name not in refused, "Python reads it"


@pytest.mark.parametrize(
    "text",
    [
        b"x = '" + b"a" * 1_000_000 + b"'\n",
        b"x = [" + b"1, " * 50_000 + b"]\n",
        b"x = " + b"(" * 5_000 + b"1" + b")" * 5_000 + b"\n",
        b"x = " + b"-" * 20_000 + b"1\n",
        b"x = a" + b".b" * 5_000 + b"\n",
        b"x = a" + b"(1)" * 3_000 + b"\n",
        b"x = 1" + b" + 1" * 20_000 + b"\n",
        b"".join(b" " * depth + b"if x:\n" for depth in range(95)) + b" " * 95 + b"pass\n",
        b"".join(b" " * depth + b"if x:\n" for depth in range(5_000)) + b" " * 5_000 + b"pass\n",
        b"if x == 0:\n    pass\n" + b"".join(b"elif x == %d:\n    pass\n" % number for number in range(5_000)),
        b"if x == 0:\n    pass\n" + b"".join(b"elif x == %d:\n    pass\n" % number for number in range(100_000)),
        b"x = " + b"9" * 100_000 + b"\n",
        b"\0\0\0",
        b"x = 1\0\n",
        b"\xef\xbb\xbf\xef\xbb\xbfx = 1\n",
        b"\xff\xfex\0",
        b"# coding: utf-7\nx = 1\n",
        b"# coding: rot13\nk = 1\n",
        b"# coding: \xff\n",
        b"\r\r\r",
        b"\x0c\x0c",
        b"def f():\n\treturn 1\n        return 2\n",
        b"f'{" * 200,
        b"lambda: " * 3_000 + b"1\n",
        b"@d\n" * 20_000 + b"def f(): pass\n",
        b"async " * 1_000,
        b"x = 1;" * 10_000,
        b"with a" + b", a" * 5_000 + b": pass\n",
        b"def f(" + b"".join(b"a%d=1, " % number for number in range(20_000)) + b"): pass\n",
        b"match x:\n" + b"".join(b"    case %d: pass\n" % number for number in range(10_000)),
    ],
    ids=lambda text: f"{text[:12]!r}x{len(text)}",
)
def test_extreme_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    (tmp_path / "perflint.toml").write_text("")
    (tmp_path / "extreme.py").write_bytes(text)
    (tmp_path / "within.py").write_bytes(
        b"import gc\n"
        + LOOP.encode()
        + b"".join(b"        " + line + b"\n" for line in text.splitlines()[:1])
        + TAIL.encode()
    )
    (tmp_path / "train.py").write_text("import gc\n" + LOOP + TAIL)
    monkeypatch.chdir(tmp_path)
    before = sys.getrecursionlimit()
    report = checked(tmp_path)
    assert sys.getrecursionlimit() == before
    sane(report, tmp_path)
    assert "TPL303" in {finding.code for finding in report.findings if finding.path == "train.py"}


@pytest.mark.parametrize(
    "before", ["\U0001f525", "e\u0301", "\u202e", "\u200d", "\t", "\ufeff", "\U00020000\U0001f469\u200d\U0001f4bb"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
def test_spans_hold_what_was_matched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, end: str, mark: str
) -> None:
    tail = TAIL.replace("        gc.collect()", f'        note = "{before}"; gc.collect()  # {before}')
    text = mark + ("import gc\n" + f"# {before}\n" + LOOP + tail).replace("\n", end)
    (tmp_path / "perflint.toml").write_text("")
    (tmp_path / "train.py").write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    found = [one for one in checked(tmp_path).findings if one.code == "TPL303"]
    assert len(found) == 1
    span = found[0].span
    line = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))[span.line - 1]
    assert line[span.column - 1 : span.end_column - 1] == "gc.collect()"
