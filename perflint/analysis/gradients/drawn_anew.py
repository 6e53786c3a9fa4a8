"""Models that draw something in each forward, so that the same inputs give another result."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import is_forward
from perflint.analysis.gradients.helper_forwards import runs_given_model
from perflint.analysis.naming.loops import DRAWS_SAMPLES
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import arguments_of, callee_name, is_constant
from perflint.syntax.walk import walk

_COUNTING = ("range", "trange")


def draws_anew(call: ast.Call, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a model draws in each of its forwards in a loop: by dropout, or by what the loop does with them."""
    return _has_dropout_on(call, loop, ctx) or _takes_samples(call, loop, ctx) or _is_summed_up(call, loop, ctx)


def _has_dropout_on(call: ast.Call, loop: ast.AST, ctx: FileFacts) -> bool:
    """Whether the model was last switched to training before the loop: dropout draws anew in each forward."""
    names = {name for item in [call.func, *arguments_of(call)] for name in names_in(item)}
    function = ctx.tree.function_of(loop) or ctx.tree.module
    switches = [
        part
        for part in walk(function)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("train", "eval")
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id in names
        and part.lineno < getattr(loop, "lineno", 0)
    ]
    last = max(switches, key=lambda part: part.lineno, default=None)
    return last is not None and callee_name(last) == "train" and not any(is_constant(arg, False) for arg in last.args)  # noqa: FBT003


def _takes_samples(call: ast.Call, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a loop runs a model as often as samples are wanted, `for _ in range(n_samples)`: it draws in its forward,
    or nobody would.
    """
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or callee_name(loop.iter) not in _COUNTING:
        return False
    if not any(DRAWS_SAMPLES.search(name) for item in loop.iter.args for name in names_in(item)):
        return False
    return is_forward(call, ctx) or runs_given_model(call, ctx)


def _is_summed_up(call: ast.Call, loop: ast.AST, ctx: FileFacts) -> bool:
    """Whether the loop adds up what the model gives, `loss = model(x); total += loss.item()`, and nothing else that
    changes: nobody adds the same number again and again, so the model draws something.
    """
    statement = ctx.tree.statement_of(call)
    name = ""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
    added = [
        names_in(part.value)
        for part in walk(loop)
        if isinstance(part, ast.AugAssign) and (part is statement or name in names_in(part.value))
    ]
    if not added:
        return False
    changing = {part.id for part in walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return any((changing - {name}).isdisjoint(names) for names in added)
