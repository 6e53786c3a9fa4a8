"""Loops that move nothing of a batch as the loader gave it: all that goes to the device is computed on the host."""

from __future__ import annotations

import ast

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.passes import Run, called_in
from perflint.analysis.names.refs import Scope
from perflint.analysis.transfers.own_memory import made_anew
from perflint.ir.callees import last_name
from perflint.ir.calls import callee_name
from perflint.ir.summary import MODULE

_MOVES = ("to", "cuda")


def makes_all_anew(run: Run, ctx: FileFacts) -> bool:
    """Whether a loop moves data, and all of it is made by operations of the host: new memory, which is not pinned. Not
    where a function that it calls moves something.
    """
    called = called_in(run, ctx)
    if any(last_name(call.func) in _MOVES for scope in called for call in ctx.program.function(scope).calls):
        return False
    found = _loop_of(run, ctx)
    if found is None:
        return False
    loop, there = found
    calls = (part for part in there.walk(loop) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    moved = [call.func.value for call in calls if callee_name(call) in _MOVES and isinstance(call.func, ast.Attribute)]
    return bool(moved) and all(made_anew(value, there) is not None for value in moved)


def _loop_of(run: Run, ctx: FileFacts) -> tuple[ast.AST, FileFacts] | None:
    """The loop of the program that a run stands for, and what may be asked in its file."""
    facts = ctx.program.function(run.scope).loops[run.loop]
    around = _body_of(run.scope, ctx)
    if around is None:
        return None
    body, there = around
    for part in there.walk(body):
        if isinstance(part, (ast.For, ast.While)) and (part.lineno, part.col_offset) == (facts.line, facts.column):
            return part, there
    return None


def _body_of(scope: Scope, ctx: FileFacts) -> tuple[ast.AST, FileFacts] | None:
    if scope.function != MODULE:
        return definition_of(scope, ctx)
    there = ctx.at(scope.path)
    return (there.tree.module, there) if there is not None else None
