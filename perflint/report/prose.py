"""Messages and advice taken apart: words, and the code that stands between backticks in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perflint.report.visible import visible_prose
from perflint.system.patterns import pattern

_CODE = pattern(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    is_code: bool


def pieces(text: str) -> Iterator[Piece]:
    """The pieces of a one-line text, harmless; code without its backticks."""
    shown = visible_prose(text)
    at = 0
    for match in _CODE.finditer(shown):
        if match.start() > at:
            yield Piece(shown[at : match.start()], is_code=False)
        yield Piece(match[2], is_code=True)
        at = match.end()
    if at < len(shown):
        yield Piece(shown[at:], is_code=False)
