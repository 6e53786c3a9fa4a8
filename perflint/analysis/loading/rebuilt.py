"""Loaders that a loop builds again from what it does not change."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.loaders import option
from perflint.ir.calls import keyword
from perflint.syntax.walk import walk


def stays_the_same(node: ast.Call, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether the loop changes nothing that the loader is built from. A dataset that is used otherwise in the loop may
    be changed there.
    """
    flow = ctx.inference.flow
    given = [*node.args, *(item.value for item in node.keywords)]
    if not all(flow.is_invariant(item, loop, pure=lambda call: _is_plain(call, ctx)) for item in given):
        return False
    names = {part.id for item in given for part in walk(item) if isinstance(part, ast.Name)}
    dataset = option(node, "dataset", ctx)
    if not isinstance(dataset, (ast.Name, ast.Attribute)) or keyword(node, "generator") is not None:
        return False
    inside = {id(part) for part in walk(node)}
    text = ctx.text(dataset)
    return bool(names) and not any(
        isinstance(part, (ast.Name, ast.Attribute)) and id(part) not in inside and ctx.text(part) == text
        for part in walk(loop)
    )


def _is_plain(call: ast.Call, ctx: FileFacts) -> bool:
    return ctx.is_call_of(call, "torch.cuda.is_available", "os.cpu_count", "len", "int")
