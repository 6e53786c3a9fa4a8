"""TPL603: a Python loop that goes through a tensor one index at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Heat, Impact, Loops, Rule, Tag, is_test

from ._loops import names_in
from ._turns import TurnRead, read_by_turns

#: Text of an expression up to this length is shown whole.
_SHORT = 60
#: Loops of fewer turns are not worth a word.
_FEW = 10
#: What there are few of.
_SMALL = re.compile(
    r"layer|head|level|scale|stage|block|channel|coord|dim|stack|codebook|quantizer|group|chunk|expert|view|order|"
    r"world|device|gpu|class|camera|axis|ndim|spatial|window|kernel",
    re.IGNORECASE,
)
#: Methods that give the same for one row as for all rows at once, where no axis is named.
_BY_ELEMENT = frozenset(
    "exp log sqrt abs sin cos tanh sigmoid relu square clamp pow neg add sub mul div float long half to detach "
    "clone reciprocal rsqrt softplus".split()
)


class PythonLoopOverTensor(Rule):
    """A Python loop computes one row of a tensor at a time, where one operation does all rows.

    Why it is slow
    Each turn slices the tensor, launches its operations for one row and writes the result back. The work of 1,000
    turns that each treat one number took 1,500 times as long as the one operation on all of them (measured on a CPU).

    A loop that reads an element on the host in each turn (`x[i].item()`, `if mask[i]:`) waits for the device as often.

    What to write instead
    The same operation on the whole tensor, with the index as `torch.arange(n)` where the loop computes with it, and
    with broadcasting where the rows share an operand. Where the host has to decide by each value: `x.tolist()` once
    before the loop, which is one wait, and a loop over Python numbers (32 times as fast as the loop over the tensor,
    on a CPU).

    When to leave it
    Where a turn reads what an earlier one wrote, where rows have lengths of their own, and in loops of a few turns,
    such as those over layers, heads or levels. perflint speaks only of loops that run on every step, and either read
    an element of a device tensor in each turn or compute one row element by element from the same row of other tensors.

    Fix safety
    There is no automatic fix: how the operands broadcast depends on their shapes.
    """

    code, name = "TPL603", "python-loop-over-tensor"
    impact = Impact.HIGH
    listens = (Loops("range", "item", "tolist", "nonzero", "unique", "int", "float"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.For) or is_test(ctx.path) or ctx.body_heat(node) < Heat.STEP:
            return
        read = read_by_turns(node, ctx) if not _SMALL.search(ctx.text(node.target)) else None
        if read is not None:
            yield self._reads(node, read, ctx)
            return
        if not isinstance(node.target, ast.Name):
            return
        if node.orelse or _SMALL.search(ctx.text(node.target)) or not _is_long(node.iter, ctx):
            return
        written = [_written(statement, node.target.id) for statement in node.body]
        tensors = {name for name in written if name}
        if not tensors or len(tensors) != len(node.body):
            return
        if not all(_is_by_element(statement, node.target.id, tensors, ctx) for statement in node.body):
            return
        name = min(tensors)
        yield self.finding(
            node,
            ctx,
            f"This loop computes `{name}` one index at a time, though no turn needs another.",
            advice=f"Compute all of `{name}` with one operation on whole tensors.",
            confidence=Confidence.MEDIUM,
        )

    def _reads(self, node: ast.For, read: TurnRead, ctx: Context) -> Finding:
        text = ctx.text(read.at)
        short = text if len(text) <= _SHORT else "a value"
        return self.finding(
            node,
            ctx,
            f"This loop goes through `{read.tensor}` one element at a time, and in each turn the host waits for "
            f"`{short}`.",
            advice="Fetch what the host has to know once before the loop, with `.tolist()`, or use operations on the "
            "whole tensor.",
            confidence=Confidence.MEDIUM,
            related=(ctx.hop(read.at, "read on the host in every turn"),),
        )


def _is_long(turns: ast.expr, ctx: Context) -> bool:
    """Whether the loop goes through a range that is a tensor's size, or a number that is not small."""
    if not isinstance(turns, ast.Call) or not isinstance(turns.func, ast.Name) or turns.func.id != "range":
        return False
    if turns.keywords or not 1 <= len(turns.args) <= 2:
        return False
    if len(turns.args) == 2 and not isinstance(turns.args[0], ast.Constant):
        return False
    stop = turns.args[-1]
    if _SMALL.search(ctx.text(stop)):
        return False
    if isinstance(stop, ast.Constant):
        return isinstance(stop.value, int) and stop.value >= _FEW
    return _is_size(stop, ctx)


def _is_size(stop: ast.expr, ctx: Context) -> bool:
    """`x.shape[0]`, `x.size(0)`, `len(x)`, or a name that was set to one of these or taken from `x.shape`."""
    if isinstance(stop, ast.Subscript):
        return (
            isinstance(stop.value, ast.Attribute) and stop.value.attr == "shape" and _is_tensor(stop.value.value, ctx)
        )
    if isinstance(stop, ast.Call):
        if isinstance(stop.func, ast.Name):
            return stop.func.id == "len" and len(stop.args) == 1 and _is_tensor(stop.args[0], ctx)
        return isinstance(stop.func, ast.Attribute) and stop.func.attr == "size" and _is_tensor(stop.func.value, ctx)
    if not isinstance(stop, ast.Name):
        return False
    found = ctx.inference.flow.definitions(stop)
    if len(found) != 1 or found[0].value is None or isinstance(found[0].value, ast.Name):
        return False
    value = found[0].value
    if found[0].path:
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            return _is_tensor(value.value, ctx)
        return isinstance(value, ast.Call) and not value.args and _is_size(value, ctx)
    return _is_size(value, ctx)


def _is_tensor(node: ast.expr, ctx: Context) -> bool:
    return ctx.kind(node).tag is Tag.TENSOR


def _written(statement: ast.stmt, index: str) -> str:
    """The tensor that a statement writes one row of: `x[i] = …`, `x[:, i] += …`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    else:
        return ""
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and _is_row(target, index):
        return target.value.id
    return ""


def _is_row(node: ast.Subscript, index: str) -> bool:
    """Whether a subscript is exactly one index of the loop, with whole slices beside it."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    own = [part for part in parts if isinstance(part, ast.Name) and part.id == index]
    rest = [part for part in parts if part not in own]
    return len(own) == 1 and all(
        isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None for part in rest
    )


def _is_by_element(statement: ast.stmt, index: str, written: set[str], ctx: Context) -> bool:
    """Whether a statement computes its row element by element, from the same row of other tensors."""
    if isinstance(statement, ast.Assign):
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AugAssign):
        target, value = statement.target, statement.value
    else:
        return False
    if not isinstance(target, ast.Subscript) or not _is_tensor(target.value, ctx):
        return False
    reads_row = isinstance(statement, ast.AugAssign) or index in names_in(value)
    return reads_row and _is_simple(value, index, written, ctx)


def _is_simple(node: ast.expr, index: str, written: set[str], ctx: Context) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.Name):
        return node.id not in written
    if isinstance(node, ast.Attribute):
        return not written & set(names_in(node)) and index not in names_in(node)
    if isinstance(node, ast.UnaryOp):
        return _is_simple(node.operand, index, written, ctx)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            return False
        return _is_simple(node.left, index, written, ctx) and _is_simple(node.right, index, written, ctx)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and _is_row(node, index) and _is_tensor(node.value, ctx)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _BY_ELEMENT:
        given = [*node.args, *(item.value for item in node.keywords)]
        whole = (ctx.target(node.func) or "").startswith("torch.")
        values = (
            given
            if whole and isinstance(node.func.value, ast.Name) and not _is_tensor(node.func.value, ctx)
            else [node.func.value, *given]
        )
        return all(_is_simple(item, index, written, ctx) for item in values)
    return False
