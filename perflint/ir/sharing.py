"""Equal parts of summaries, made one object: what code says it says again and again, in one file and in others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

#: `once(part, part)` gives the part to keep: that one, or an equal one that is kept already.
Once: TypeAlias = Callable[[Any, Any], Any]

#: For facts without entries, which nothing is added to later on.
NOTHING: dict[str, Any] = {}


class Sharing:
    """What the summaries of one program share. They are half as large with it, and a tenth dearer to make."""

    def __init__(self) -> None:
        values: dict[Any, Any] = {}
        self.once: Once = values.setdefault
        #: For parameters, by what they hold: a named tuple is equal to a plain one, and must not be given for it.
        self.params: dict[Any, Any] = {}


class NoSharing(Sharing):
    """Every part is kept as it is, but for parameters, which are quicker found than made."""

    def __init__(self) -> None:
        super().__init__()
        self.once = _itself


def _itself(part: Any, _: Any) -> Any:
    return part
