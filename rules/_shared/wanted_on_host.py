"""Values that the program wants on the host because they are what it was after: an action to take, a finished text."""

from __future__ import annotations

import ast

from perflint.api import Context, callee_name, pattern

from .gradients import name_of_whole

#: Functions that choose what an agent does next.
_CHOOSES = pattern(r"(?:^|_)(?:act|actions?|predict|choose|select|policy|explore|exploit)(?:_|$)")
_CHOICES = frozenset("argmax argmin sample multinomial max topk".split())
#: Functions that make a whole text of what they are given, token after token.
_DECODES = pattern(r"^_?(?:generate|decode|transcribe|translate|sample|beam_search|greedy_search)$")
_LOOP = pattern(r"^(?:for|while|async for) ")
#: Methods that leave a choice what it is.
_KEEPS = frozenset("detach cpu squeeze flatten view reshape long int item".split())
_DEPTH = 4
#: What keeps what an agent has seen, on the host.
_KEEPERS = pattern(r"(?:^|_)(?:replay|buffer|memory|envs?|environment)(?:_|$)")


def is_choice(value: ast.expr, ctx: Context) -> bool:
    """Whether a function that chooses an action gives back the choice that is read: an environment waits for it."""
    function = ctx.tree.function_of(value)
    if function is None or not _CHOOSES.search(function.name) or ctx.loops(value):
        return False
    return _is_chosen(value, ctx, _DEPTH) and _is_returned(value, ctx)


def _is_chosen(value: ast.expr, ctx: Context, depth: int) -> bool:
    while isinstance(value, (ast.Subscript, ast.Call)):
        if isinstance(value, ast.Call):
            if callee_name(value) in _CHOICES:
                return True
            if not isinstance(value.func, ast.Attribute) or value.func.attr not in _KEEPS:
                return False
            value = value.func.value
        else:
            if _is_chosen_by(value.slice, ctx, depth):
                return True
            value = value.value
    if not isinstance(value, ast.Name) or depth == 0:
        return False
    origins = ctx.inference.origins(value)
    return bool(origins) and all(origin is not value and _is_chosen(origin, ctx, depth - 1) for origin in origins)


def _is_chosen_by(index: ast.expr, ctx: Context, depth: int) -> bool:
    """`allowed[scores[allowed].argmax().item()]`"""
    return isinstance(index, ast.Call) and callee_name(index) in ("item", "argmax") and _is_chosen(index, ctx, depth)


def _is_returned(value: ast.expr, ctx: Context) -> bool:
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Return):
            return True
        if isinstance(outer, ast.Assign):
            target = outer.targets[0] if len(outer.targets) == 1 else None
            definition = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
            uses = ctx.inference.flow.uses_of(definition) if definition is not None else ()
            return any(isinstance(ctx.tree.statement_of(use), ast.Return) for use in uses)
        if isinstance(outer, ast.stmt):
            return False
    return False


def goes_to_replay(node: ast.Call, ctx: Context) -> bool:
    """`errors = errors.cpu().numpy()`, and then `self.replay_buffer.update(indices, errors)`: kept on the host."""
    statement = ctx.tree.statement_of(node)
    function = ctx.tree.function_of(node)
    if not isinstance(statement, ast.Assign) or function is None:
        return False
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.lineno > node.lineno
        and bool(_KEEPERS.search(name_of_whole(part.func.value)))
        and any(isinstance(item, ast.Name) and item.id in names for item in part.args)
        for part in ctx.walk(function)
    )
