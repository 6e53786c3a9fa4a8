"""Loops over a model's parameters."""

from __future__ import annotations

from perflint.analysis.frequency.parameter_updates import Update, treats_alike, updates_of_each
from perflint.analysis.gradients.parameter_walks import is_walk, walks_few, walks_parameters

__all__ = [
    "Update",
    "is_walk",
    "treats_alike",
    "updates_of_each",
    "walks_few",
    "walks_parameters",
]
