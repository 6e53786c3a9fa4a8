"""Colour for terminals: plain SGR codes, because importing a terminal library costs more than a small run."""

from __future__ import annotations

import enum
from typing import NamedTuple

from perflint.finding import Impact


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
