"""How messages show code: in one line, and not at length."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts


def short_call(call: ast.Call, ctx: FileFacts, most: int = 70) -> str:
    """A call as written; without its arguments where that takes more than `most` characters."""
    text = ctx.text(call)
    return text if len(text) <= most else f"{ctx.text(call.func)}(...)"


def short_text(node: ast.AST, ctx: FileFacts, most: int = 70) -> str:
    """An expression as written, cut off after `most` characters."""
    text = ctx.text(node)
    return text if len(text) <= most else f"{text[: most - 3]}..."
