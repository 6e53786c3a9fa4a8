"""TPL502: large containers of constants built again in hot code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Context, Finding, Fix, Heat, Impact, Nodes, Rule, Tier, walk
from perflint.api.aliases import is_mutated_within, stays_here

_LARGE = 20
#: A dict is never a constant of the compiled code; one that is only looked up in is a table from this size on.
_TABLE = 5


class ConstantRebuilt(Rule):
    """A container of many constants is built again each time the code runs.

    What it does

    Reports list, dict and set literals of many constants on the hot path.

    Why is this slow?

    Python builds a list, dict or set each time the expression runs. The cost is small, so the impact is low.

    What to do

    Define the container at module level and use its name.

    Fix safety

    Unsafe: all calls then share the container. Same bits as long as nothing modifies it.

    Not reported

    - Tuples, numbers, arithmetic on literals, `x in [...]` and `for x in [...]`: the compiler makes constants of
      them.
    - Containers that are modified, returned, stored or passed on.
    - Containers of computed values, and small ones.

    Measured

    0.2 us for a dict of 5 entries, 3.6 us for one of 50 (CPython 3.11).

    References

    - Python bytecode, dis: https://docs.python.org/3/library/dis.html
    """

    code, name = "TPL502", "constant-rebuilt"
    numerics = "same bits"
    tier = Tier.EXTRA
    impact = Impact.LOW
    listens = (Nodes(ast.List, ast.Dict, ast.Set),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.List, ast.Dict, ast.Set))
        size = _constants(node)
        if size < (_TABLE if isinstance(node, ast.Dict) else _LARGE) or not stays_here(node, ctx):
            return
        kind = type(node).__name__.lower()
        if is_mutated_within(node, ctx) or (size < _LARGE and _is_one_of_several(node, ctx)):
            return
        hoisted, edits = ctx.edit.hoist_to_module(ctx.tree.text(node), _constant_name(node, ctx), at=node)
        yield self.finding(
            node,
            ctx,
            f"This {kind} of {size} constants is rebuilt each time (about {_cost(size)} us); it "
            f"{ctx.heat(node).phrase}.",
            advice="Define it at module level.",
            fix=Fix(
                "Build it once at module level",
                Applicability.UNSAFE,
                (*edits, ctx.edit.replace(node, hoisted)),
                reason="all calls would share one object",
            ),
        )


def _is_one_of_several(node: ast.AST, ctx: Context) -> bool:
    """Whether one branch of several decides about it, `elif schedule == "steps":`."""
    branches = (ctx.tree.statement_of(test) for test, _ in ctx.conditions(node))
    return any(
        isinstance(branch, ast.If)
        and bool(branch.orelse)
        and any(isinstance(part, ast.Compare) for part in walk(branch.test))
        for branch in branches
    )


def _cost(size: int) -> str:
    """Measured: 0.2 us for 5 entries, 3.6 us for 50."""
    return "0.2" if size < 2 * _TABLE else f"{size * 3.6 / 50:.1f}"


def _constants(node: ast.expr | None) -> int:
    """How many entries a display has when it is made of constants only; 0 otherwise."""
    if isinstance(node, ast.Dict):
        parts = [*node.keys, *node.values]
        return len(node.keys) if all(part is not None and _is_constant(part) for part in parts) else 0
    assert isinstance(node, (ast.List, ast.Set))
    return len(node.elts) if all(_is_constant(part) for part in node.elts) else 0


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_is_constant(part) for part in node.elts)
    return isinstance(node, ast.Constant)


def _constant_name(node: ast.expr, ctx: Context) -> str:
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        return f"_{parent.targets[0].id.strip('_').upper()}"
    return "_TABLE"
