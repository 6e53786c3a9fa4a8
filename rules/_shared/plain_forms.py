"""Functions that write out in plain operations what something faster is tested against."""

from __future__ import annotations

import ast

from perflint.api import Context
from perflint.api.names import PLAIN_FORM


def is_plain_form(node: ast.AST, ctx: Context) -> bool:
    """Whether a node stands in a function or a module that is called naive, or a reference: it is there to be read."""
    if PLAIN_FORM.search(ctx.path.rpartition("/")[2]):
        return True
    function = ctx.tree.function_of(node)
    return function is not None and bool(PLAIN_FORM.search(function.name))
