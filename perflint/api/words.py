"""How messages show code."""

from __future__ import annotations

from perflint.analysis.shortened import short_call, short_text

__all__ = [
    "short_call",
    "short_text",
]
