"""Regular expressions that are compiled when they are first used: of the hundreds in rules most are not, in any run."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Pattern:
    """A pattern's methods and attributes, each kept here once it was asked for."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # `re` remembers what it compiled.
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off. Not for `copy` or `re.sub(pattern, ...)`, which want a real one."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))
