"""Reading a figure from what a command printed, by the user's pattern.

A pattern may take forever on the wrong text, and nothing can interrupt it inside a process. So it is matched in one of
its own, which is ended when it takes too long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from perflint.errors import PerflintError

#: What a pattern may take over all lines.
SECONDS = 10.0
#: The end of the output that is looked at, in bytes, and how much of a line.
_TAIL = 1_000_000
_LINE = 2_000

_SCRIPT = """
import json, re, sys
asked = json.load(sys.stdin)
try:
    pattern = re.compile(asked["pattern"])
except (re.error, OverflowError, RecursionError) as error:
    print(json.dumps({"error": str(error)}))
    sys.exit()
found = None
for line in asked["lines"]:
    match = pattern.search(line)
    if match:
        found = match[1] if pattern.groups else match[0]
print(json.dumps({"found": found}))
"""


def check_pattern(pattern: str, option: str) -> None:
    """Raises PerflintError for a pattern that is none."""
    try:
        last_match(pattern, [])
    except MetricError as error:
        raise PerflintError(f"{option}: {pattern!r} is no regular expression: {error}") from error


class MetricError(Exception):
    """The pattern is wrong, or takes too long."""


def last_match(pattern: str, lines: list[str], seconds: float = SECONDS) -> str | None:
    """What the first group (without groups: all of the pattern) matched last; None for no match. Raises MetricError."""
    asked = json.dumps({"pattern": pattern, "lines": [line[:_LINE] for line in lines]})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _SCRIPT],
            input=asked,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise MetricError(f"the pattern {pattern!r} took longer than {seconds:g} s") from None
    except subprocess.CalledProcessError as error:
        raise MetricError(f"the pattern {pattern!r} cannot be matched") from error
    reply = json.loads(done.stdout)
    if "error" in reply:
        raise MetricError(str(reply["error"]))
    found = reply["found"]
    return None if found is None else str(found)


def lines_of(file: Path) -> list[str]:
    """The last lines that were printed."""
    with file.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(stream.tell() - _TAIL, 0))
        return stream.read().decode(errors="replace").replace("\r", "\n").split("\n")
