"""Loops over a model's parameters."""

from __future__ import annotations

from perflint.analysis.frequency.new_parameters import new_values_of_parameters
from perflint.analysis.frequency.parameter_updates import Update, changes_parameters, treats_alike, updates_of_each
from perflint.analysis.gradients.parameter_statistics import is_of_values_only, is_penalty
from perflint.analysis.gradients.parameter_walks import is_walk, walk_of_parameters, walks_few, walks_parameters
from perflint.analysis.gradients.walk_terms import comes_to_nothing
from perflint.analysis.values.derived_names import calls_on, derived_names

__all__ = [
    "Update",
    "calls_on",
    "changes_parameters",
    "comes_to_nothing",
    "derived_names",
    "is_of_values_only",
    "is_penalty",
    "is_walk",
    "new_values_of_parameters",
    "treats_alike",
    "updates_of_each",
    "walk_of_parameters",
    "walks_few",
    "walks_parameters",
]
