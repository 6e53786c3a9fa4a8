"""Code that runs dozens of times in each step: in a loop over the rows of a tensor, over all parameters, over many."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.over_dimensions import goes_over_dimension
from perflint.analysis.frequency.trip_count import most_turns
from perflint.analysis.gradients.parameter_walks import walks_few, walks_parameters
from perflint.analysis.invariants.turn_dependence import turning_loops
from perflint.analysis.naming.loops import OVER_FEW_PARTS
from perflint.analysis.values.kind import Tag
from perflint.finding import Heat
from perflint.ir.calls import callee_name, is_constant
from perflint.torch_model import tensors

__all__ = ["has_many_turns", "runs_dozens_of_times"]

#: So many turns are dozens.
_MANY = 16
#: The dimensions of samples and of steps.
_EARLY = (0, 1)
#: What hands out what it is given, turn by turn.
_WRAPPERS = frozenset({"enumerate", "zip", "list", "tuple", "reversed", "tqdm", "sorted"})
#: Builtins that look at each element of what they are given, and so wait for each where it is a tensor.
_EACH = frozenset({"max", "min", "all", "any", "sorted"})


def runs_dozens_of_times(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a loop inside of the step repeats `node`, or the loop that it is, for each of many; or whether it is one
    in a call: `max(lengths)`.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _EACH:
        return len(node.args) == 1 and ctx.heat(node) >= Heat.STEP and _is_tensor(node.args[0], ctx)
    loops = [(node, node)] if isinstance(node, ast.For) else []
    return any(
        ctx.heat(region) >= Heat.STEP and has_many_turns(turning, ctx)
        for turning, region in (*loops, *turning_loops(node, ctx))
    )


def has_many_turns(loop: ast.For | ast.comprehension, ctx: FileFacts) -> bool:
    turns = most_turns(loop, ctx)
    if turns is not None:
        return turns >= _MANY
    if walks_parameters(loop.iter, ctx) or _is_of_group(loop.iter):
        return not walks_few(loop.iter, ctx)
    if OVER_FEW_PARTS.search(f"{ctx.text(loop.target)} {ctx.text(loop.iter)}"):
        return False
    return _counts_rows(loop.iter, ctx) or _hands_out_rows(loop.iter, ctx)


def _is_of_group(rows: ast.expr) -> bool:
    """`group["params"]` of an optimizer."""
    return isinstance(rows, ast.Subscript) and is_constant(rows.slice, "params")


def _hands_out_rows(rows: ast.expr, ctx: FileFacts) -> bool:
    """`x`, `zip(x, y)`, `enumerate(x)` of tensors."""
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.func.id in _WRAPPERS:
        return any(_hands_out_rows(item, ctx) for item in rows.args)
    return _is_tensor(rows, ctx)


def _is_tensor(value: ast.expr, ctx: FileFacts) -> bool:
    if Tag.TENSOR in (ctx.kind(value).tag, ctx.kind_on_route(value).tag):
        return True
    return isinstance(value, ast.Name) and value.id in ctx.once(_shaped, ctx.tree.scope_of(value))


def _shaped(scope: ast.AST, ctx: FileFacts) -> frozenset[str]:
    """The names of what a function asks for its shape: no list has one."""
    return frozenset(
        part.value.id
        for part in ctx.tree.walk(scope)
        if isinstance(part, ast.Attribute) and part.attr in ("shape", "ndim") and isinstance(part.value, ast.Name)
    )


def _counts_rows(rows: ast.expr, ctx: FileFacts) -> bool:
    """`range(n)` for how many rows or steps a tensor has, here or where the function is called; or for the extent of a
    tensor that the function makes.
    """
    if not isinstance(rows, ast.Call) or callee_name(rows) != "range" or not rows.args:
        return False
    stop = rows.args[-1]
    if goes_over_dimension(rows, ctx):
        return not isinstance(stop, ast.Constant) and _is_early(stop, ctx)
    if not isinstance(stop, ast.Name):
        return False
    given = ctx.given_on_route(stop)
    if given is not None and goes_over_dimension(ast.Call(ast.Name("range"), [given[0]], []), given[1]):
        return _is_early(*given)
    return stop.id in ctx.once(_extents, ctx.tree.scope_of(rows))


def _is_early(size: ast.expr, ctx: FileFacts) -> bool:
    """Whether a size is that of the first dimension or the second, where samples and steps are: of channels and kinds
    there are few.
    """
    if isinstance(size, ast.Name):
        found = next(iter(ctx.inference.flow.definitions(size)), None)
        if found is None or not found.path:
            return found is None or found.value is None or _is_early(found.value, ctx)
        return found.path[0] in _EARLY
    index = size.slice if isinstance(size, ast.Subscript) else None
    if isinstance(size, ast.Call) and callee_name(size) == "size" and size.args:
        index = size.args[0]
    return index is None or (isinstance(index, ast.Constant) and index.value in _EARLY)


def _extents(scope: ast.AST, ctx: FileFacts) -> frozenset[str]:
    """The names of numbers that a function makes tensors of: `torch.arange(n)`, `torch.zeros(n, m)`."""
    return frozenset(
        item.id
        for part in ctx.tree.walk(scope)
        if isinstance(part, ast.Call) and (ctx.target(part.func) or "") in tensors.CONSTRUCTORS
        for item in part.args
        if isinstance(item, ast.Name)
    )
