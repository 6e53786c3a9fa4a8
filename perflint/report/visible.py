"""Text from outside (paths, source, messages quoting source) made harmless and measurable.

A terminal escape or a bidirectional control in a file's name or source could repaint the screen or reorder what a
reader sees, so such characters are shown as the escape Python would write for them.
"""

from __future__ import annotations

import re

from perflint.system.patterns import pattern

# Controls (Cc), line and paragraph separators, lone surrogates and the format characters that reorder or hide text.
# The joiners U+200C and U+200D are left alone: emoji and several scripts are written with them.
_HARMFUL = pattern(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_KEPT_WIDTHLESS = frozenset("\u200c\u200d\ufe0e\ufe0f")
_JOINER = "\u200d"


def visible(text: str) -> str:
    """`text` on one line, with every harmful character written as an escape such as `\\x1b` or `\\u202e`."""
    return _HARMFUL.sub(_escape, text)


def visible_prose(text: str) -> str:
    """A message or advice: white space of any kind becomes one blank, the rest is made visible."""
    return visible(" ".join(text.split()))


def visible_lines(text: str) -> str:
    """As `visible`, but newlines and tabs stay: for texts of several lines (pages, fixes, details)."""
    return _HARMFUL.sub(lambda match: match[0] if match[0] in "\n\t" else _escape(match), text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code in _SHORT:
        return _SHORT[code]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SHORT = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}


def char_width(char: str) -> int:
    """Terminal columns of one character that `visible` lets through: 0, 1 or 2."""
    if char < "\u0300":
        return 1
    import unicodedata  # late: hardly any text needs it

    if char in _KEPT_WIDTHLESS or unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def display_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(char_width(char) for char in text)


def cells(line: str, tab: int = 4) -> list[tuple[str, int]]:
    """What a terminal shows for each character of a source line: (text, columns). Tabs go to the next stop."""
    shown: list[tuple[str, int]] = []
    column = 0
    joined = False
    for char in line:
        if char == "\t":
            width = tab - column % tab
            text = " " * width
        else:
            text = visible(char)
            # What follows a joiner is drawn into the character before it.
            width = 0 if joined and text == char else display_width(text)
        joined = char == _JOINER
        shown.append((text, width))
        column += width
    return shown
