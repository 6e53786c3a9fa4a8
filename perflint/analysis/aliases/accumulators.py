"""What a loop adds to a sum or a list that outlives its iterations, and where that is read."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.number_uses import reads_number
from perflint.analysis.phases.loop_purpose import names_in
from perflint.syntax.walk import statements
from perflint.torch_model import tensors

#: What reads names that it does not write.
_LOOKING = frozenset({"locals", "vars", "eval", "exec", "_getframe", "currentframe"})


class Accumulated(NamedTuple):
    """What is added to a name, or to the entry of a dict under a constant `key`; `text` is how that is written."""

    name: str
    value: ast.expr
    key: str = ""
    text: str = ""


def accumulated(node: ast.AST, ctx: FileFacts) -> Accumulated | None:
    """What is added in a loop to a name of the function or an entry of its dict: `total += loss`, `total = total +
    loss`, `mean = 0.9 * mean + 0.1 * loss`, `losses.append(loss)`, `losses += [loss]`, `sums["d"] += loss`.
    """
    into: ast.expr
    value: ast.expr
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        into, value = node.target, node.value
        if isinstance(value, ast.List) and len(value.elts) == 1:
            value = value.elts[0]
    elif isinstance(node, ast.Assign):
        added = _added(node, ctx)
        if added is None:
            return None
        into, value = node.targets[0], added
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        into, value = node.func.value, node.args[0]
    else:
        return None
    key = ""
    holder = into
    if isinstance(into, ast.Subscript) and isinstance(into.slice, ast.Constant):
        key, holder = repr(into.slice.value), into.value
    if not isinstance(holder, ast.Name) or isinstance(value, (ast.Constant, ast.Starred)) or not ctx.loops(node):
        return None
    return Accumulated(holder.id, value, key, ctx.text(into))


def _added(statement: ast.Assign, ctx: FileFacts) -> ast.expr | None:
    """`loss` of `total = total + loss`, and the share of a running mean."""
    value, target = statement.value, statement.targets[0]
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add) or len(statement.targets) != 1:
        return None
    kept = ctx.text(target)
    for before, added in ((value.left, value.right), (value.right, value.left)):
        is_share = isinstance(before, ast.BinOp) and isinstance(before.op, ast.Mult)
        factors = [before.left, before.right] if is_share else [before]  # type: ignore[attr-defined]
        if any(ctx.text(factor) == kept for factor in factors):
            return added
    return None


def begins_here(name: str, node: ast.AST, ctx: FileFacts) -> bool:
    """Whether nothing else has what is kept: all that its name is bound to before is made there, and has no other
    name; and nothing in the function looks names up by itself.
    """
    function = _function(node, ctx)
    if any(part in _LOOKING for part in names_in(function)):
        return False
    for store in _named(name, ast.Store, function, ctx):
        statement = ctx.tree.statement_of(store)
        if isinstance(statement, ast.AugAssign) or store.lineno > node.lineno:  # type: ignore[attr-defined]
            continue
        if not _is_made_for(store, statement, ctx):
            return False
    return True


def _is_made_for(store: ast.Name, statement: ast.stmt, ctx: FileFacts) -> bool:
    """`total = 0.0`, `losses = []`, `total, losses = 0.0, []`, `total = torch.zeros(1)`"""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    if len(targets) > 1 and not isinstance(value, ast.Constant):
        return False
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and store in target.elts:
            return len(target.elts) == len(value.elts) and _is_new(value.elts[target.elts.index(store)], ctx)
    return store in targets and _is_new(value, ctx)


def _is_new(value: ast.expr, ctx: FileFacts) -> bool:
    if isinstance(value, (ast.List, ast.Dict, ast.Set)):
        return not any(True for part in ast.iter_child_nodes(value) if not isinstance(part, (ast.Load, ast.Constant)))
    if isinstance(value, ast.Call):
        target = ctx.target(value.func) or ""
        return target in ("list", "float", "int") or target in tensors.CONSTRUCTORS
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant)
    )


def outlives_iteration(kept: Accumulated, node: ast.AST, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether what is kept outlives a turn: it is bound in the function, and in the loop by this statement alone."""
    stores: list[ast.expr] = [*_named(kept.name, ast.Store, _function(node, ctx), ctx)]
    if not stores:
        return False
    if kept.key:
        stores += [item for item in _entries(kept, loop, ctx) if isinstance(item.ctx, ast.Store)]
    statement = ctx.tree.statement_of(node)
    stores = [part for part in stores if not _stands_in(part, statement)]
    return bool(stores) and not any(_stands_in(part, loop) for part in stores)


def _stands_in(part: ast.expr, region: ast.stmt | ast.expr) -> bool:
    """Told by the places: of what stands beside each other one ends before the other begins."""
    here = (part.lineno, part.col_offset)
    return (region.lineno, region.col_offset) <= here < (region.end_lineno or 0, region.end_col_offset or 0)


def _named(name: str, how: type[ast.expr_context], region: ast.AST, ctx: FileFacts) -> list[ast.Name]:
    """The loads or stores of a name in a region."""
    return [part for part in ctx.tree.named(name, region) if isinstance(part.ctx, how)]


def _function(node: ast.AST, ctx: FileFacts) -> ast.AST:
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)):
            return outer
    raise AssertionError("a statement stands in a module")


def _entries(kept: Accumulated, region: ast.AST, ctx: FileFacts) -> list[ast.Subscript]:
    """`sums["d"]` wherever it is read or bound in a region."""
    around = [ctx.tree.parent(part) for part in _named(kept.name, ast.Load, region, ctx)]
    return [item for item in around if isinstance(item, ast.Subscript) and _key(item) == kept.key]


def _key(item: ast.Subscript) -> str:
    return repr(item.slice.value) if isinstance(item.slice, ast.Constant) else ""


def is_read_for_numbers(kept: Accumulated, node: ast.AST, ctx: FileFacts) -> bool:
    """Whether every use of what is kept in its function reads numbers from it."""
    uses = uses_of_accumulated(kept, node, ctx)
    return bool(uses) and all(reads_number(use, ctx) for use in uses)


def uses_of_accumulated(kept: Accumulated, node: ast.AST, ctx: FileFacts) -> list[ast.expr]:
    """Where the function reads what is kept; none at module level, where others may read it."""
    function, name = _function(node, ctx), kept.name
    if isinstance(function, ast.Module):
        return []
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names for part in statements(function)):
        return []
    loop = ctx.loops(node)[0]
    assert isinstance(node, (ast.stmt, ast.expr))
    uses = [part for part in _named(name, ast.Load, function, ctx) if not _stands_in(part, node)]
    end = loop.end_lineno or loop.lineno
    if any(store.lineno > end for store in _named(name, ast.Store, function, ctx)):
        uses = [use for use in uses if not _is_rebound_behind(use, loop, ctx)]
    return [*uses] if not kept.key else _uses_of_entry(kept, uses, ctx)


def _uses_of_entry(kept: Accumulated, uses: list[ast.Name], ctx: FileFacts) -> list[ast.expr]:
    """Of the uses of a dict those that may read the entry: by its key, and by none."""
    found: list[ast.expr] = []
    for use in uses:
        item = ctx.tree.parent(use)
        if not isinstance(item, ast.Subscript) or not _key(item):
            found.append(use)
        elif _key(item) == kept.key and isinstance(item.ctx, ast.Load):
            found.append(item)
    return found


def _is_rebound_behind(use: ast.Name, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a use sees only what was bound to the name behind the loop: `losses = torch.stack(losses)`."""
    bound = [definition.node for definition in ctx.inference.flow.definitions(use)]
    end = loop.end_lineno or loop.lineno
    return bool(bound) and all(isinstance(item, ast.Assign) and item.lineno > end for item in bound)
