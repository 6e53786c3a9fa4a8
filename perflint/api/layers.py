"""Which layers values come from, and how wide they are."""

from __future__ import annotations

from perflint.analysis.values.projections import Projection, projection_behind
from perflint.ir.notation import value_of

__all__ = ["Projection", "projection_behind", "value_of"]
