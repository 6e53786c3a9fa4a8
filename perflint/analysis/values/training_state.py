"""What a checkpoint is made of: models, optimizers and their states."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name

_STATES = frozenset({Tag.STATE_DICT, Tag.MODULE, Tag.OPTIMIZER_STATE, Tag.OPTIMIZER})


def holds_training_state(saved: ast.expr, ctx: FileFacts) -> bool:
    """Whether a value is a model, an optimizer, what their `state_dict()` gives, or a dict that holds one of these."""
    for origin in ctx.inference.origins(saved):
        values = origin.values if isinstance(origin, ast.Dict) else [origin]
        for value in values:
            if ctx.kind(value).tag in _STATES:
                return True
            if isinstance(value, ast.Call) and callee_name(value) == "state_dict":
                return True
    return False
