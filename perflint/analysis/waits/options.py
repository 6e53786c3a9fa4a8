"""Whether a wait is what an option asks for: a flag that guards nothing but the wait and a clock beside it."""

from __future__ import annotations

import ast

from perflint.analysis.feasibility.hardware import asks_hardware
from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import is_constant
from perflint.torch_model.effects import Effect

_WORK = (Effect.LAUNCHES, Effect.FORWARD, Effect.BACKWARD, Effect.STEPS, Effect.COPIES)


def is_option_for(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a flag that is not known to be on decides about a call, and about nothing that works beside it: then the
    flag is there for it. One that is told by the machine is nobody's choice.
    """
    for test, holds in reversed(ctx.conditions(node, exits=False)):
        branch = ctx.tree.statement_of(test)
        if not isinstance(branch, ast.If) or ctx.loops(test) != ctx.loops(node) or not _is_flag(test):
            continue
        if not asks_hardware(branch.test, ctx) and not (holds and _is_on(test, ctx)):
            arm = branch.body if node.lineno <= (branch.body[-1].end_lineno or 0) else branch.orelse
            return not any(_works(part, node, ctx) for item in arm for part in ctx.walk(item))
    return False


def _is_flag(test: ast.expr) -> bool:
    """`sync`, `args.timing`, `config["timing"]`"""
    if isinstance(test, ast.BoolOp):
        return any(_is_flag(item) for item in test.values)
    if isinstance(test, ast.Subscript):
        return isinstance(test.slice, ast.Constant)
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Attribute) and test.func.attr == "get" and bool(test.args)
    return isinstance(test, (ast.Name, ast.Attribute))


def _is_on(test: ast.expr, ctx: FileFacts) -> bool:
    """Whether a flag is known to be on: bound to True, or a parameter that is unless somebody says otherwise."""
    if not isinstance(test, ast.Name):
        return False
    origins = ctx.inference.origins(test)
    if origins and all(is_constant(item, True) for item in origins):  # noqa: FBT003
        return True
    params = {param.name.lstrip("="): param.default for param in ctx.facts(test).params}
    return params.get(test.id) == ("const", "bool", True)


def _works(part: ast.AST, node: ast.Call, ctx: FileFacts) -> bool:
    return isinstance(part, ast.Call) and part is not node and ctx.effects(part).does(*_WORK)
