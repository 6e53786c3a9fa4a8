"""Colour for terminals: plain SGR codes, because importing a terminal library costs more than a small run."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from perflint.finding import Impact

if TYPE_CHECKING:
    from perflint.report import Options


class Tint(enum.Enum):
    """Colours and weights by what they mark, as the numbers of terminal escapes."""

    PLACE = "1"
    QUIET = "2"
    RED = "31"
    YELLOW = "33"
    CYAN = "36"
    GREEN = "32"
    LABEL = "1;34"


OF_IMPACT = {Impact.HIGH: Tint.RED, Impact.MEDIUM: Tint.YELLOW, Impact.LOW: Tint.CYAN}


class Palette(NamedTuple):
    enabled: bool

    def __call__(self, tint: Tint, text: str) -> str:
        return f"\x1b[{tint.value}m{text}\x1b[0m" if self.enabled and text else text


def linked(text: str, path: str, line: int, options: Options) -> str:
    """`text` as a link to a line of a file (OSC 8), where links are wanted; terminals without them show `text`."""
    if not options.links:
        return text
    target = f"file://{quote(str(Path(path).absolute()), errors='surrogateescape')}#L{line}"
    return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\"
