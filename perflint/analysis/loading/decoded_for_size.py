"""Files that are decoded for what their header says: of a picture that is read, nothing but its shape is used."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.torch_model import sample_work

#: What an array tells without its values.
_OUTSIDE = frozenset({"shape", "ndim", "dtype"})


def is_decoded_for_size(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call decodes a whole picture, of which the program then asks the shape alone."""
    if ctx.target(call.func) not in sample_work.WHOLE_PICTURES:
        return False
    parent = ctx.tree.parent(call)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        uses = ctx.inference.flow.uses_after(parent, parent.targets[0].id)
        return bool(uses) and all(_tells_size(use, ctx) for use in uses)
    return _tells_size(call, ctx)


def _tells_size(value: ast.expr, ctx: FileFacts) -> bool:
    outer = ctx.tree.parent(value)
    return isinstance(outer, ast.Attribute) and outer.value is value and outer.attr in _OUTSIDE
