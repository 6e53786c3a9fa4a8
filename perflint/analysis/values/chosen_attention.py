"""Whether a slow way of attention was chosen, or is the only one there is."""

from __future__ import annotations

import ast

from perflint.analysis.feasibility.passed_keywords import file_passes
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.phases import LOOKS_INSIDE
from perflint.analysis.naming.precision import FAST_ATTENTION, WRITTEN_OUT_MODELS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import keyword
from perflint.syntax.walk import walk
from perflint.torch_model import attention


def needs_eager(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the model has no other way, or its weights are wanted somewhere."""
    if keyword(node, "trust_remote_code") is not None or any(item.arg is None for item in node.keywords):
        return True
    if _has_no_other_way(node, ctx):
        return True
    if ctx.program.mentions(attention.READERS) or ctx.program.whole.passes(tuple(sorted(attention.READERS))):
        return True
    return ctx.mentions(*attention.TAKES_APART) or file_passes(ctx, attention.TAKES_APART)


def _has_no_other_way(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the class, or any model that the file names, is one that transformers computes step by step."""
    owner = (ctx.target(node.func) or "").lower()
    if any(name.replace("_", "").replace("-", "") in owner for name in attention.WRITTEN_OUT_ONLY if len(name) > 4):
        return True
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and WRITTEN_OUT_MODELS.search(part.value[:100])
        for part in walk(ctx.tree.module)
    )


def is_chosen_on_purpose(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the code shows that the slow way was chosen: by a comment, a name, a test, or the other way beside it."""
    lines = ctx.source.lines[node.lineno - 1 : node.end_lineno]
    if (
        any("#" in line for line in lines)
        or FAST_ATTENTION.search(ctx.source.text)
        or LOOKS_INSIDE.search(ctx.path.rpartition("/")[2])
    ):
        return True
    statement = ctx.tree.statement_of(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
    names = [name for target in targets if isinstance(target, ast.expr) for name in names_in(target)]
    if any(LOOKS_INSIDE.search(name) for name in (*names, *ctx.scope(node).function.split("."))):
        return True
    return any("attn" in ctx.text(test) for test, _ in ctx.conditions(node)) or _replaces_forwards(ctx)


def _replaces_forwards(ctx: FileFacts) -> bool:
    """Whether the file gives modules another `forward`."""
    return any(
        isinstance(target, ast.Attribute) and target.attr == "forward"
        for node in walk(ctx.tree.module)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )
