"""Replaces attributes of modules for as long as the device is there, and puts them back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_ABSENT = object()


@dataclass
class Patches:
    """What was replaced, so that it can be put back in reverse order."""

    _replaced: list[tuple[Any, str, Any]] = field(default_factory=list)

    def set(self, owner: Any, name: str, value: Any) -> Any:
        """Replace `owner.name`, which need not be there. Gives what was there (None if nothing)."""
        before = vars(owner).get(name, _ABSENT) if isinstance(owner, type) else getattr(owner, name, _ABSENT)
        self._replaced.append((owner, name, before))
        setattr(owner, name, value)
        return None if before is _ABSENT else before

    def undo(self) -> None:
        while self._replaced:
            owner, name, before = self._replaced.pop()
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
