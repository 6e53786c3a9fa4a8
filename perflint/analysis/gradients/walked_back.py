"""What `backward` is called of in an iteration of a loop, and on which iterations it runs."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from perflint.analysis.evidence import BACKWARD_CALLS
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: What makes a tensor of a tensor on the way to `backward`: methods of it, and functions that are given it.
_ARITHMETIC = frozenset("mean sum div mul add sub float double half squeeze to div_ mul_ add_ sub_".split())
_SCALING = frozenset({"scale", "scale_loss"})
#: What adds up several losses, or chooses one: `sum(losses) if isinstance(losses, tuple) else losses`.
_SUMMING = (ast.BinOp, ast.Call, ast.IfExp, ast.Subscript)
_NAMES_ON_THE_WAY = 12


def value_of_sum(value: ast.expr) -> ast.expr:
    """`loss` of `loss / n`."""
    while isinstance(value, ast.BinOp):
        value = value.left if not isinstance(value.left, ast.Constant) else value.right
    return value


def is_itself_walked_back(value: ast.expr, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether `backward` is called of the very value, or of what arithmetic makes of it: then it is a tensor."""
    name = value_of_sum(value)
    return isinstance(name, ast.Name) and any(
        isinstance(part, ast.Name) and part.id == name.id and _is_tensor_of(part, call, ctx)
        for call in _backwards(loop)
        for part in walk(call)
    )


def _is_tensor_of(name: ast.Name, backward: ast.Call, ctx: FileFacts) -> bool:
    child: ast.AST = name
    for outer in ctx.tree.ancestors(name):
        if outer is backward:
            return child in backward.args[:1] or child is backward.func
        if isinstance(outer, ast.Call):
            # `scaler.scale(loss)`, `loss.mean()`
            if callee_name(outer) not in (_SCALING if child in outer.args else _ARITHMETIC):
                return False
        elif isinstance(outer, ast.Attribute):
            if outer.attr not in _ARITHMETIC | BACKWARD_CALLS:
                return False
        elif not isinstance(outer, (ast.BinOp, ast.UnaryOp)):
            return False
        child = outer
    return False


def is_walked_back(value: ast.expr, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether the very value is given to `backward` in the same loop, whose graph is not retained."""
    value = value_of_sum(value)
    if not isinstance(value, ast.Name):
        return False
    ours = set(map(id, ctx.inference.flow.definitions(value)))
    for call in _backwards(loop):
        if _retains(call) or len(call.args) > 1:
            return False
        for part in walk(call):
            if isinstance(part, ast.Name) and part.id == value.id and isinstance(part.ctx, ast.Load):
                return ours == set(map(id, ctx.inference.flow.definitions(part)))
    return False


def is_walked_back_with(node: ast.AST, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a `backward` surely runs on each turn of a loop on which a node does."""
    return any(_comes_along(call, node, loop, ctx) for call in _backwards(loop))


def _comes_along(backward: ast.Call, node: ast.AST, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a `backward` surely runs on each turn on which a value is kept, or raises where nobody catches it."""
    around = itertools.takewhile(lambda outer: outer is not loop, ctx.tree.ancestors(backward))
    if any(_may_catch(outer, ctx) for outer in around):
        return False
    graph = ctx.control_flow(node)
    return ctx.loops(backward)[:1] == [loop] and (
        graph.dominates(backward, node) or graph.post_dominates(backward, node)
    )


def _may_catch(outer: ast.AST, ctx: FileFacts) -> bool:
    """Whether a statement may catch what is raised in it: `torch.autocast("cuda")` catches nothing."""
    if isinstance(outer, (ast.With, ast.AsyncWith)):
        entered = (item.context_expr for item in outer.items)
        managers = [ctx.target(item.func) or "" if isinstance(item, ast.Call) else "" for item in entered]
        return not all(manager.startswith("torch.") for manager in managers)
    return isinstance(outer, (ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))


def _backwards(region: ast.AST) -> list[ast.Call]:
    return [part for part in walk(region) if isinstance(part, ast.Call) and callee_name(part) in BACKWARD_CALLS]


def _only_backward(loop: ast.stmt) -> ast.Call | None:
    """The one `backward` of a loop, where its graph is freed behind it."""
    calls = _backwards(loop)
    return calls[0] if len(calls) == 1 and not _retains(calls[0]) else None


def _retains(backward: ast.Call) -> bool:
    return any(item.arg in ("retain_graph", "create_graph") for item in backward.keywords)


def goes_back(region: ast.AST) -> bool:
    """Whether a region names anything that walks a graph back."""
    return any(name in BACKWARD_CALLS or name in ("autograd", "grad", "closure") for name in names_in(region))


def is_part_of_walked_back(value: ast.Name, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a value is a summand or factor of what `backward` is called of in the same loop, once."""
    backward = _only_backward(loop)
    if backward is None:
        return False
    ours = set(map(id, ctx.inference.flow.definitions(value)))
    waiting: list[ast.AST] = [backward]
    for _ in range(12):
        if not waiting:
            return False
        for part in walk(waiting.pop()):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                found = ctx.inference.flow.definitions(part)
                if part.id == value.id and part is not value and ours == set(map(id, found)):
                    return True
                waiting += [item.value for item in found if isinstance(item.value, ast.BinOp)]
    return False


def holds_walked_back(value: ast.expr, loop: ast.stmt, ctx: FileFacts) -> ast.expr | None:
    """The part of a dict or tuple, which each iteration makes, that `backward` is called of, once: `losses["total"]`,
    `sum(losses)`. None where that cannot be told.
    """
    backward = _only_backward(loop)
    if backward is None or not isinstance(value, ast.Name):
        return None
    made = ctx.inference.flow.definitions(value)
    inside = {id(part) for part in walk(loop)}
    if not made or any(id(item.node) not in inside for item in made):
        return None
    ours = set(map(id, made))
    for part in _walked_through(backward, inside, ctx):
        of = _whole_of(part)
        if of is not None and of.id == value.id and ours == set(map(id, ctx.inference.flow.definitions(of))):
            return part
    return None


def _walked_through(backward: ast.Call, inside: set[int], ctx: FileFacts) -> Iterator[ast.expr]:
    """What stands in a call of `backward`, and in what the iteration binds to the names there."""
    waiting: list[ast.expr] = [backward]
    seen = {id(backward)}
    for _ in range(_NAMES_ON_THE_WAY):
        if not waiting:
            return
        for part in walk(waiting.pop()):
            if isinstance(part, ast.expr):
                yield part
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                for item in ctx.inference.flow.definitions(part):
                    if id(item.node) in inside and id(item.value) not in seen and isinstance(item.value, _SUMMING):
                        seen.add(id(item.value))
                        waiting.append(item.value)


def _whole_of(part: ast.expr) -> ast.Name | None:
    """`losses` of `losses["total"]`, `sum(losses)` and `sum(losses.values())`."""
    if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, str):
        return part.value if isinstance(part.value, ast.Name) else None
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Name) or part.func.id != "sum":
        return None
    summed = part.args[0] if part.args else None
    if isinstance(summed, ast.Call) and isinstance(summed.func, ast.Attribute) and summed.func.attr == "values":
        summed = summed.func.value
    return summed if isinstance(summed, ast.Name) else None
