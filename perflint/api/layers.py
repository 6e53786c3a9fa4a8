"""Which layers values come from, and what shape they are given on the way."""

from __future__ import annotations

from perflint.analysis.values.built_models import LAYERS_WITH_WEIGHTS, builds_model
from perflint.analysis.values.gram import factor_of_gram
from perflint.analysis.values.projections import Projection, projection_behind
from perflint.analysis.values.repeated_heads import repetition_of_heads
from perflint.analysis.values.sliced_heads import sliced_head
from perflint.analysis.values.training_state import holds_training_state
from perflint.analysis.values.triangles import is_triangle
from perflint.analysis.values.written_activations import INNER_NAMES, activation_around
from perflint.analysis.values.written_norms import (
    CHANNELS,
    LAST,
    LAST_TWO,
    OF_PICTURE,
    OF_SERIES,
    PLANE,
    layer_norm,
    rms_norm,
)
from perflint.analysis.values.written_roots import MOMENT_NAMES, ROOT_NAMES, roots_at
from perflint.ir.notation import value_of

__all__ = [
    "CHANNELS",
    "INNER_NAMES",
    "LAST",
    "LAST_TWO",
    "LAYERS_WITH_WEIGHTS",
    "MOMENT_NAMES",
    "OF_PICTURE",
    "OF_SERIES",
    "PLANE",
    "ROOT_NAMES",
    "Projection",
    "activation_around",
    "builds_model",
    "factor_of_gram",
    "holds_training_state",
    "is_triangle",
    "layer_norm",
    "projection_behind",
    "repetition_of_heads",
    "rms_norm",
    "roots_at",
    "sliced_head",
    "value_of",
]
