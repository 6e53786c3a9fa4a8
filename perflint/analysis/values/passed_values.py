"""What callers of a function pass, asked of one after the other: once two say enough, the others are not asked."""

from __future__ import annotations

from collections.abc import Iterable

from perflint.analysis.values.kind import NEVER, UNKNOWN, Kind, Place, Tag, join

#: What has nothing in common with anything else.
_ALONE = frozenset({Tag.NUMBER, Tag.STRING, Tag.FUNCTION, Tag.CLASS, Tag.INSTANCE})


def asked_in_turn(kinds: Iterable[Kind | None], *, to_the_end: bool) -> list[Kind | None] | None:
    """What calls pass for a parameter; None once nothing is known of it whatever the others pass: different things, or
    one that is no structure of tensors beside something unknown. Arrays do not count, as they do not beside tensors.
    """
    found: list[Kind | None] = []
    joined, lacks = NEVER, False
    for kind in kinds:
        found.append(kind)
        if to_the_end or kind is None or kind.tag in (Tag.NEVER, Tag.ARRAY):
            continue
        if kind.known:
            joined = join((joined, kind))
        else:
            lacks = True
        if joined is UNKNOWN or (lacks and joined.tag in _ALONE):
            return None
    return found


def lies_with(kind: Kind, found: Kind) -> bool:
    """Whether a value lies where a tensor does."""
    if not found.is_tensor or kind.place is Place.UNKNOWN:
        return False
    return kind.place is found.place or (kind.on_accelerator and found.on_accelerator)
