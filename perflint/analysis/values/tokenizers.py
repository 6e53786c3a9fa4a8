"""Which objects tokenize text."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import is_of_the_host
from perflint.analysis.naming.data import TOKENIZER
from perflint.analysis.values.kind import Tag


def is_tokenizer(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether an expression is a tokenizer: by what it is, else by its name, where nothing of the project has it."""
    kind = ctx.kind(node)
    if kind.tag is Tag.TOKENIZER:
        return True
    if kind.known and kind.tag is not Tag.INSTANCE:
        return False
    if not isinstance(node, (ast.Name, ast.Attribute)) or any(ref.path for ref in ctx.refs(node)):
        return False  # a tokenizer of the project's own may be anything, such as a module that quantizes images
    return bool(TOKENIZER.search(ctx.text(node).rpartition(".")[2])) and not is_of_the_host(node, ctx)
