"""Functions that prepare the samples that a training reads."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.data import PREPARES_TEXTS
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: What applies a function to each sample of a data set.
_MAPS = ("map", "with_transform", "set_transform")


def prepares_training_data(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the call belongs to a data set, a collate function or a training loop, or to the function that prepares
    the texts of one (`dataset.map(preprocess)`).
    """
    if ctx.role(node) in ("data", "train"):
        return True
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    return bool(PREPARES_TEXTS.search(function.name)) and _is_mapped(function.name, ctx)


def _is_mapped(name: str, ctx: FileFacts) -> bool:
    for part in walk(ctx.tree.module):
        if isinstance(part, ast.Call) and callee_name(part) in _MAPS:
            if any(isinstance(item, ast.Name) and item.id == name for item in walk(part)):
                return True
    return False
