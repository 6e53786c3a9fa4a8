"""Tensors that each turn of a loop joins to all that came before."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.ir.calls import callee_name, has_unpacking, is_constant
from perflint.syntax.named import is_name, mentions_name
from perflint.syntax.walk import walk

TORCH_JOINS = ("torch.cat", "torch.concat", "torch.concatenate", "torch.vstack", "torch.hstack")
NUMPY_JOINS = ("numpy.concatenate", "numpy.vstack", "numpy.hstack")
#: What a size can be asked with, without a look at the values.
_SIZES = frozenset("shape size dim ndim numel nelement device dtype".split())
#: What is given the sizes of its result, as a method or a function.
_SHAPED = frozenset("reshape view ones zeros new_ones new_zeros".split())
_RANKS = frozenset(("shape", "ndim", "dim"))


class Grown(NamedTuple):
    """`name = call(...)` where `call` joins `name` and others. `parts` is the argument that holds them. The call may be
    one arm of a conditional whose other arm begins: `x = y if x is None else cat([x, y])`.
    """

    statement: ast.Assign
    call: ast.Call
    name: str
    parts: ast.expr | None
    added: tuple[ast.expr, ...]
    new: str


def grown_at(node: ast.Call, ctx: FileFacts) -> Grown | None:
    statement = ctx.tree.parent(node)
    if isinstance(statement, ast.IfExp):
        begins = statement.orelse if node is statement.body else statement.body
        target = getattr(ctx.tree.parent(statement), "targets", [None])[0]
        if not asks_for_first(statement.test) or (isinstance(target, ast.Name) and mentions_name(begins, target.id)):
            return None
        statement = ctx.tree.parent(statement)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or has_unpacking(node) or not node.args:
        return None
    target, parts = statement.targets[0], node.args[0]
    if not isinstance(target, ast.Name):
        return None
    if ctx.is_call_of(node, "numpy.append"):
        if len(node.args) < 2 or not is_name(parts, target.id) or mentions_name(node.args[1], target.id):
            return None
        return Grown(statement, node, target.id, None, (node.args[1],), ctx.text(node.args[1]))
    if not ctx.is_call_of(node, *TORCH_JOINS, *NUMPY_JOINS) or not isinstance(parts, (ast.List, ast.Tuple)):
        return None
    if len(parts.elts) < 2 or not (is_name(parts.elts[0], target.id) or is_name(parts.elts[-1], target.id)):
        return None
    added = tuple(part for part in parts.elts if not is_name(part, target.id))
    if len(added) != len(parts.elts) - 1 or any(mentions_name(part, target.id) for part in added):
        return None
    return Grown(statement, node, target.id, parts, added, ", ".join(ctx.text(part) for part in added))


def growing_loop(grown: Grown, ctx: FileFacts) -> ast.stmt | None:
    """The innermost loop, where it turns often, starts with the value from before, and only grows it."""
    loops = ctx.loops(grown.statement)
    if not loops or turns_few_times(loops[0], ctx):
        return None
    loop = loops[0]
    for part in walk(loop):
        if isinstance(part, ast.Name) and part.id == grown.name and not isinstance(part.ctx, ast.Load):
            if part is not grown.statement.targets[0] and not _is_first_turn(part, grown, ctx):
                return None
        if isinstance(part, ast.Nonlocal | ast.Global) and grown.name in part.names:
            return None
    return loop


def adds_the_same(grown: Grown, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether each turn adds the same name again: a rest that is filled up, for which there is `expand`."""
    return all(isinstance(part, ast.Name) and ctx.inference.flow.is_invariant(part, loop) for part in grown.added)


def is_column(part: ast.expr) -> bool:
    """One number for each row, by the sizes that are written: `done.reshape(n, 1)`, `torch.ones((n, 1))`."""
    if isinstance(part, ast.UnaryOp):
        part = part.operand
    if not isinstance(part, ast.Call) or callee_name(part) not in _SHAPED or not part.args:
        return False
    sizes = part.args[0].elts if isinstance(part.args[0], (ast.Tuple, ast.List)) else part.args
    return len(sizes) == 2 and is_constant(sizes[1], 1)


def may_be_a_number(part: ast.expr, loop: ast.stmt) -> bool:
    """Whether the loop asks if what is added has no dimension, `len(x.shape) == 0`, and gives it one: a few numbers."""
    name = ast.dump(part.func.value if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) else part)
    return any(
        isinstance(test, ast.Compare) and is_constant(test.comparators[0], 0) and _is_rank(test.left, name)
        for test in walk(loop)
    )


def _is_rank(asked: ast.expr, name: str) -> bool:
    """`len(x.shape)`, `x.dim()`, `x.ndim`"""
    if isinstance(asked, ast.Call) and callee_name(asked) == "len" and asked.args:
        asked = asked.args[0]
    if isinstance(asked, ast.Call) and callee_name(asked) == "dim":
        asked = asked.func
    return isinstance(asked, ast.Attribute) and asked.attr in _RANKS and ast.dump(asked.value) == name


def _is_first_turn(target: ast.Name, grown: Grown, ctx: FileFacts) -> bool:
    """Whether a binding is the other branch of the `if`, or of the `try`, that decides whether there is something to
    join to.
    """
    statement = ctx.tree.statement_of(target)
    around = ctx.tree.parent(grown.statement)
    if isinstance(around, ast.Try) and grown.statement in around.body:
        return any(statement in handler.body for handler in around.handlers)  # there was nothing to join to
    if not isinstance(around, ast.If) or ctx.tree.parent(statement) is not around:
        return False
    branches = (around.body, around.orelse)
    is_other = any((statement in branch) != (grown.statement in branch) for branch in branches)
    return is_other and asks_for_first(around.test)


def asks_for_first(test: ast.expr) -> bool:
    """`i == 0`, `x is None`, `first`, `len(x) == 0`, `x`."""
    for part in walk(test):
        if isinstance(part, ast.Constant) and part.value in (0, None):
            return True
        if isinstance(part, ast.Name) and "first" in part.id:
            return True
    return isinstance(test, ast.Name)


def size_reads(grown: Grown, loop: ast.stmt, ctx: FileFacts) -> list[ast.Name] | None:
    """Reads of the name in the loop that ask for its size only; None where its values are read."""
    sizes = []
    own = {id(part) for part in walk(grown.call)}
    for part in walk(loop):
        if not isinstance(part, ast.Name) or part.id != grown.name or not isinstance(part.ctx, ast.Load):
            continue
        if id(part) in own:
            continue
        if not _is_size(part, ctx):
            return None
        sizes.append(part)
    return sizes


def _is_size(name: ast.Name, ctx: FileFacts) -> bool:
    outer = ctx.tree.parent(name)
    if isinstance(outer, ast.Attribute):
        return outer.attr in _SIZES
    if isinstance(outer, ast.Call):
        return isinstance(outer.func, ast.Name) and outer.func.id == "len"
    if isinstance(outer, ast.Compare):
        return all(isinstance(item, ast.Constant) and item.value is None for item in outer.comparators)
    if isinstance(outer, ast.IfExp):
        return outer.test is name
    return isinstance(outer, (ast.Return, ast.If)) or (isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not))
