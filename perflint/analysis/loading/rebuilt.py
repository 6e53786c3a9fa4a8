"""Loaders that a loop begins or builds again, from what it does not change."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.asked_devices import is_parameter
from perflint.analysis.loading.loaders import option
from perflint.analysis.phases.loop_purpose import is_timing
from perflint.finding import Heat
from perflint.ir.calls import arguments_of, keyword
from perflint.syntax.tree import LOOPS
from perflint.syntax.walk import walk


def stays_the_same(node: ast.Call, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether the loop changes nothing that the loader is built from. A dataset that is used otherwise in the loop may
    be changed there.
    """
    flow = ctx.inference.flow
    given = arguments_of(node)
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


def begun_by_next(node: ast.Call) -> ast.expr | None:
    """The loader in `next(iter(loader))`."""
    if len(node.args) != 1 or node.keywords or not isinstance(node.args[0], ast.Call):
        return None
    inner = node.args[0]
    if isinstance(inner.func, ast.Name) and inner.func.id == "iter" and len(inner.args) == 1 and not inner.keywords:
        return inner.args[0]
    if isinstance(inner.func, ast.Attribute) and inner.func.attr == "__iter__" and not inner.args:
        return inner.func.value
    return None


def begins_often(node: ast.Call, source: ast.expr, loop: ast.stmt | None, ctx: FileFacts) -> bool:
    """Whether a loader is begun on each turn of a loop that does not change it, or by a helper of every step."""
    if loop is None:
        # A helper that is called every step; a loader made in the helper itself is another matter.
        return ctx.heat(node) >= Heat.STEP and (isinstance(source, ast.Attribute) or is_parameter(source, ctx))
    if is_timing(loop) or not ctx.inference.flow.is_invariant(source, loop):
        return False
    return not runs_on_some_turns(node, loop, ctx)


def runs_on_some_turns(node: ast.AST, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether `node` runs on some turns only, or the loop ends with its first one."""
    if any(loop in ctx.loops(test) for test, _ in ctx.conditions(node)):
        return True
    assert isinstance(loop, LOOPS)
    return any(isinstance(statement, (ast.Break, ast.Return)) for statement in loop.body)
