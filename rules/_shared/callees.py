"""What a call is of, as summaries write it."""

from __future__ import annotations


def last_of(func: object) -> str:
    """The last name of a callee: `to` of `batch.to` and of `batch.float().to`."""
    if isinstance(func, tuple):
        return str(func[2]) if func[0] == "attr" else ""
    return func.rpartition(".")[2] if isinstance(func, str) else ""
