"""Names and source that try to repaint a terminal, start a workflow command or run a script come out harmless."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from perflint.report import FORMATS

ROOT = Path(__file__).parent.parent.parent
NAMES = (
    "a\n::error::owned.py",
    "b\r::warning file=x::owned.py",
    "c\x1b]0;owned\x07\x1b[2J.py",
    "d\u202eyp.exe\u2066.py",
    "e<script>alert(1)</script>\"'><img src=x onerror=alert(1)>.py",
    "f%0A::error::x%250A,b:c`|*[x](http://evil).py",
    "g\udcff\udc80.py",
    "h -- --apply.py",
    "</script>/i.py",
)
#: Each line stands in code that has a finding and a fix.
TEXTS = (
    "note = '\x1b[31m\x1b]8;;http://evil\x07\u202e\u2066\u2028</script><img src=x onerror=alert(1)>\\ud800'",
    "::error::owned = 1",
    "note = '%0A::error::owned' # ]]> --> */ ``` @everyone",
)
TRAINING = """\
import copy
import gc
import torch


def train(model, other, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        {line}
        other.load_state_dict(copy.deepcopy(model.state_dict()))  # {line}
        torch.cuda.empty_cache()
        gc.collect()  # {line}
"""
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "perflint.toml").write_text("")
    for number, name in enumerate(NAMES):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = TRAINING.format(line=TEXTS[number % len(TEXTS)])
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder


def perflint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "perflint", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


def harmless(printed: bytes) -> str:
    """What was printed, which is UTF-8 without anything that controls a terminal, a runner or the direction."""
    text = printed.decode("utf-8")
    assert _HARMFUL.search(text) is None, repr(text[max(0, _HARMFUL.search(text).start() - 60) :][:120])  # type: ignore[union-attr]
    return text


@pytest.mark.parametrize("output_format", FORMATS)
def test_reports_are_harmless(project: Path, output_format: str) -> None:
    done = perflint(project, "check", "--no-cache", "--output-format", output_format, ".")
    assert done.returncode == 2, "lines that are no Python are errors"
    text = harmless(done.stdout)
    complaints = harmless(done.stderr)
    commands = [line for line in (text + complaints).splitlines() if line.lstrip().startswith("::")]
    if output_format == "github":
        assert all(re.match(r"::(?:warning|notice|error) (?:file|title)=[^:]*::(?!.*\n)", one) for one in commands)
        assert len(commands) == text.count("\n")
    else:
        assert not commands
    if output_format in ("json", "sarif", "gitlab", "rdjson"):
        _every_string_is_unicode(json.loads(text))
    if output_format == "json-lines":
        for line in text.splitlines():
            _every_string_is_unicode(json.loads(line))
    if output_format == "junit":
        ET.fromstring(text)
    if output_format == "html":
        _Page().feed(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("fix", "--no-cache", "."),
        ("check", "--no-cache", "--statistics", "."),
        ("check", "--no-cache", "--no-such-option\x1b[2J\n::error::x"),
        ("check", "missing\x1b[2J\n::error::x.py"),
        ("explain", "TPL\x1b[2J\n::error::x"),
        ("config", "show", "."),
        ("baseline", "show"),
        ("no-such\x1b[2J\n::error::command",),
    ],
    ids=lambda arguments: re.sub(r"[^\w -]", "", " ".join(arguments)),
)
def test_other_commands_are_harmless(project: Path, arguments: tuple[str, ...]) -> None:
    done = perflint(project, *arguments)
    printed = done.stderr if arguments[0] == "fix" else done.stdout + done.stderr
    text = harmless(printed)
    if arguments[0] == "fix":  # the content of a patch is exact; its headers quote names as git does
        text += "".join(
            harmless(line) for line in done.stdout.splitlines(keepends=True) if line.startswith((b"---", b"+++"))
        )
        text += done.stdout.decode("utf-8", "surrogateescape")
    assert not [line for line in re.split("[\r\n]", text) if line.startswith("::")]


def _every_string_is_unicode(value: object) -> None:
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, dict):
        for key, item in value.items():
            _every_string_is_unicode(key)
            _every_string_is_unicode(item)
    elif isinstance(value, list):
        for item in value:
            _every_string_is_unicode(item)


class _Page(HTMLParser):
    """Fails on a page with anything that could run, but for its own one script."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        assert self.scripts <= 1
        assert tag not in {"img", "iframe", "object", "embed", "base", "link"}
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in {"src", "action", "formaction", "srcdoc"}
            assert not (
                name == "href" and (value or "").strip().lower().startswith(("javascript:", "data:", "vbscript:"))
            )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"[]",
        b'{"version": 1}',
        b'{"version": 1, "findings": [{"path": "train.py", "rule": "TPL304", "line": "x", "count": 1e400}]}',
        b'{"version": 1, "findings": [{"path": "train.py", "rule": "TPL304", "line": "x", "count": 99999999999999}]}',
        b'{"version": "\\u001b[2J\\n::error::x", "findings": []}',
        b"[" * 100_000,
        (
            b'{"version": 1, "findings": [{"path": "../../../etc/passwd\\u001b[2J", "rule": "\\u202e\\n::error::x", '
            b'"line": "\\ud800", "count": 2}]}'
        ),
    ],
    ids=["empty", "bytes", "list", "no findings", "infinite", "huge", "version", "deep", "names"],
)
def test_a_foreign_baseline_is_refused_or_harmless(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "perflint.toml").write_text("")
    (tmp_path / "train.py").write_text("x = 1\n")
    (tmp_path / "perflint-baseline.json").write_bytes(content)
    for arguments in (("baseline", "show"), ("check", "--baseline", "perflint-baseline.json")):
        done = perflint(tmp_path, *arguments)
        text = harmless(done.stdout + done.stderr)
        assert done.returncode in (0, 2)
        assert "internal error" not in text
        assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
