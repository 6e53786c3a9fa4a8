"""TPL202: branches that ask the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Claims,
    Confidence,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Nodes,
    Rule,
    callee_name,
    is_unreached,
    tensors,
)
from perflint.api.waits import (
    COMPREHENSIONS,
    certainty_asked,
    first_of_block,
    impact_of_decision,
    is_asked,
    is_tested,
    leaves,
    read_before,
    read_by_helper,
    tests,
    works_on_host,
)

from ._fixes.checks import assert_on_device, without_test


class TensorInCondition(Rule):
    """Branching on a device tensor synchronizes: the host blocks until the value is known.

    What it does

    Reports `if`, `while`, `assert`, `and`, `or`, `not` and conditional expressions that convert a device tensor to a
    Python bool on the hot path.

    Why is this slow?

    The conversion blocks the host until all queued GPU work has finished, once per tensor. In a forward pass this
    happens once per layer. The device is idle until the host has queued more work.

    What to do

    If the condition selects between values, compute both and write `torch.where(mask, a, b)`. An `if mask.any():`
    that guards only masked writes (`x[mask] = 0`) can go: with an empty mask they change nothing. Test shapes,
    lengths or configuration instead, which the host knows. For checks, use `torch._assert_async(condition)`, or check
    every N steps or under a debug option.

    Fix safety

    Unsafe, with the same bits where no check fails: an assertion, or an `if` that only raises with a fixed text,
    becomes `torch._assert_async`, which raises RuntimeError later and has no MPS version. A block that only writes by
    the mask that its test reduces loses the test: with an empty mask the values are computed all the same. Other
    branches have no fix: computing both sides can differ for values that are not finite.

    Not reported

    - Tests of shapes, sizes, dtypes, lengths, `is None`, Python numbers and flags.
    - Tensors on the CPU.
    - Checks under an every-N guard.
    - Values that an earlier test or read has already synchronized on.

    Known limitations

    A loop that must stop on a device value has to read it; it can read every few iterations. Under `torch.compile` an
    `assert` becomes an asynchronous check, and an `if` is a graph break.

    References

    - `torch.where`: https://docs.pytorch.org/docs/stable/generated/torch.where.html
    - Performance tuning guide, avoid unnecessary CPU-GPU synchronization:
      https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    """

    code, name = "TPL202", "tensor-in-condition"
    impact = Impact.MEDIUM
    listens = (Nodes(ast.If, ast.While, ast.Assert, ast.IfExp, ast.BoolOp, *COMPREHENSIONS),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("read")

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.BoolOp) and is_tested(node, ctx):
            return
        asked = [
            leaf
            for test in (*tests(node), *_tested_later(node, ctx))
            for leaf in leaves(test)
            if is_asked(leaf, ctx) and not _was_read(leaf, ctx) and not is_unreached(leaf, ctx)
        ]
        if not asked or works_on_host(asked[0], ctx):
            return
        yield self.finding(
            asked[0],
            ctx,
            _message(node, asked, ctx),
            advice=_advice(node, asked[0], ctx),
            fix=_fix(node, asked, ctx),
            confidence=min(self.confidence, *(certainty_asked(leaf, ctx) or Confidence.LOW for leaf in asked)),
            impact=impact_of_decision(asked[0], ctx),
            block=first_of_block(asked[0], ctx),
        )


def _tested_later(node: ast.AST, ctx: Context) -> Iterator[ast.expr]:
    """`begins = padded and mask[0].all()` and then `if not begins`: what stands last is asked there."""
    statement = ctx.tree.parent(node) if isinstance(node, ast.BoolOp) else None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(node, ast.BoolOp) or not isinstance(target, ast.Name):
        return
    last = node.values[-1]
    if not (isinstance(last, ast.Call) and isinstance(last.func, ast.Attribute) and last.func.attr in ("any", "all")):
        return
    around = ctx.tree.function_of(node) or ctx.tree.module
    if any(
        isinstance(leaf, ast.Name) and leaf.id == target.id
        for part in ctx.walk(around)
        if isinstance(part, (ast.If, ast.While, ast.Assert)) and part.lineno > node.lineno
        for leaf in leaves(part.test)
    ):
        yield last


#: Tests of a value for what is wrong with it.
_SOUNDNESS = frozenset({"isnan", "isinf", "isfinite"})


def _was_read(leaf: ast.expr, ctx: Context) -> bool:
    """`print(loss.item())` and then `if loss < 0.05`: the host has just waited for the loss."""
    sides = [leaf.left, *leaf.comparators] if isinstance(leaf, ast.Compare) else [leaf]
    values = [side for side in sides if ctx.kind(side).is_tensor]
    if isinstance(leaf, ast.Call) and callee_name(leaf) in _SOUNDNESS:
        values = leaf.args[:1] or ([leaf.func.value] if isinstance(leaf.func, ast.Attribute) else [])
    return bool(values) and all(read_before(leaf, value, ctx) for value in values)


def _message(node: ast.AST, asked: list[ast.expr], ctx: Context) -> str:
    statement = {ast.While: "loop", ast.Assert: "assert"}.get(type(node), "branch")
    text = ctx.text(asked[0])
    short = text if len(text) <= 60 else f"{text[:57]}..."
    helped = any(read_by_helper(part, ctx) is not None for part in ctx.walk(asked[0]) if isinstance(part, ast.expr))
    is_tensor = "reads" if helped else "is"
    words = f"`{short}` {is_tensor} a device tensor: this {statement} {ctx.heat(asked[0]).phrase} and synchronizes."
    if len(asked) > 1:
        words += f" {len(asked)} tensors are tested, and each synchronizes."
    return words


def _fix(node: ast.AST, asked: list[ast.expr], ctx: Context) -> Fix | None:
    if isinstance(node, ast.If) and _is_masked(node, asked[0], ctx):
        return without_test(node, ctx)
    return assert_on_device(node, ctx)


def _advice(node: ast.AST, leaf: ast.expr, ctx: Context) -> str:
    last = node.body[-1] if isinstance(node, ast.If) else None
    if isinstance(node, ast.Assert):
        return f"Check on the device: `torch._assert_async({ctx.text(leaf)})`. Or check behind a debugging switch."
    if isinstance(last, ast.Raise):
        return "Check on the device: `torch._assert_async` with what has to hold. Or check every N steps."
    if isinstance(node, ast.While) or isinstance(last, ast.Break):
        return "Test every few iterations, or bound the number of iterations by a host value."
    if isinstance(node, ast.If) and _is_masked(node, leaf, ctx):
        return "Do the masked work without the test: with an empty mask it changes nothing."
    if _chooses_values(node):
        return "Select on the device with `torch.where`, or test a host value."
    return "Decide by a host value, or test every few iterations: the branch does not select between values."


def _is_masked(node: ast.If, leaf: ast.expr, ctx: Context) -> bool:
    """Whether a block that runs where any entry of a mask is set does nothing but write to these entries."""
    if node.test is not leaf or node.orelse or not (isinstance(leaf, ast.Call) and callee_name(leaf) == "any"):
        return False
    mask = leaf.args[0] if leaf.args else leaf.func.value if isinstance(leaf.func, ast.Attribute) else None
    return mask is not None and all(_writes_masked(item, ctx.text(mask), ctx) for item in node.body)


def _writes_masked(statement: ast.stmt, mask: str, ctx: Context) -> bool:
    """`x[mask] = y`, `x = torch.where(mask, y, x)`, `x = x.masked_fill(mask, y)`"""
    value = getattr(statement, "value", None)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(target, ast.Subscript) and not (isinstance(statement, ast.Assign) and len(statement.targets) > 1):
            return ctx.text(target.slice) == mask and _is_of_entries(value, ctx)
        if not (isinstance(statement, ast.Assign) and isinstance(target, (ast.Name, ast.Attribute))):
            return False
        if not isinstance(value, ast.Call) or not value.args or ctx.text(value.args[0]) != mask:
            return False
        kept = (
            value.args[2]
            if callee_name(value) == "where" and len(value.args) == 3
            else getattr(value.func, "value", None)
        )
        return (
            callee_name(value) in ("where", "masked_fill") and kept is not None and ctx.text(kept) == ctx.text(target)
        )
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call) and value.args:
        return callee_name(value) in ("masked_fill_", "masked_scatter_") and ctx.text(value.args[0]) == mask
    return False


#: What fails for an empty tensor, or is read by the host.
_SUMMARIZES = frozenset("max min amax amin argmax argmin median item tolist".split())


def _is_of_entries(value: ast.expr | None, ctx: Context) -> bool:
    """Whether a value can be computed of no entries at all: by operators and functions of torch, by no module."""
    calls = [part for part in ast.walk(value) if isinstance(part, ast.Call)] if value is not None else []
    return value is not None and all(callee_name(call) not in _SUMMARIZES and _is_of_torch(call, ctx) for call in calls)


def _is_of_torch(call: ast.Call, ctx: Context) -> bool:
    target = ctx.target(call.func) or ""
    if isinstance(call.func, ast.Attribute) and ctx.kind(call.func.value).is_tensor:
        return True
    return (
        target.startswith("torch.") and not target.startswith("torch.nn.") and target not in tensors.RANDOM_CONSTRUCTORS
    )


def _chooses_values(node: ast.AST) -> bool:
    """Whether all that a test decides is which value a name gets, or is returned."""
    if isinstance(node, (ast.IfExp, ast.BoolOp)):
        return True
    if not isinstance(node, ast.If):
        return False
    chosen = (ast.Assign, ast.AugAssign, ast.AnnAssign)
    if all(isinstance(item, chosen) for item in (*node.body, *node.orelse)):
        return True
    return all(
        isinstance(item, chosen) or (isinstance(item, ast.Return) and item.value is not None)
        for item in (*node.body, *node.orelse)
    )
