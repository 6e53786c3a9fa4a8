"""TPL603: a Python loop that goes through a tensor one index at a time."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Loops, Phase, Rule, Tag, walk
from perflint.api.loops import names_in
from perflint.api.names import OVER_FEW_PARTS
from perflint.api.waits import TurnRead, read_by_turns

from ._shared.spans import fills_spans

#: Text of an expression up to this length is shown whole.
_SHORT = 60
#: Loops of fewer turns are not worth a word.
_FEW = 10
#: Methods that give the same for one row as for all rows at once, where no axis is named.
_BY_ELEMENT = frozenset(
    "exp log sqrt abs sin cos tanh sigmoid relu square clamp pow neg add sub mul div float long half to detach "
    "clone reciprocal rsqrt softplus".split()
)
#: Functions of a row that are the same for all rows at once, with the axis counted one further. `log_softmax` and
#: `logsumexp` go row by row on purpose, where the scores of all tokens would take too much memory.
_BY_ROW = frozenset("sum mean norm softmax normalize cosine_similarity amax amin prod".split())
_FOR_ALL = _BY_ELEMENT | _BY_ROW


class PythonLoopOverTensor(Rule):
    """A Python loop computes one row of a tensor at a time where one operation computes all rows.

    What it does

    Reports loops on the hot path that read an element of a device tensor in each iteration, compute one row from the
    same row of other tensors, or fill a square mask row by row.

    Why is this slow?

    Each iteration slices the tensor, launches kernels for one row and writes the result. If it reads an element on
    the host (`x[i].item()`, `if mask[i]:`), it also synchronizes in each iteration.

    What to do

    Apply the operation to the whole tensor: `torch.arange(n)` for the index, and broadcasting for a shared operand.
    If the host must decide by each value, call `x.tolist()` once before the loop (one synchronization) and loop over
    Python numbers.

    Fix safety

    No fix: how the operands broadcast depends on their shapes.

    Not reported

    - Iterations that read what an earlier one wrote.
    - Rows of different lengths.
    - Loops of few iterations, such as over layers, heads or levels.

    Measured

    1,000 iterations of one number each took 1,500 times as long as one operation on all of them. A loop over
    `x.tolist()` is 32 times as fast as a loop over the tensor (CPU).

    References

    - Broadcasting semantics: https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    - `torch.Tensor.tolist`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.tolist.html
    """

    code, name = "TPL603", "python-loop-over-tensor"
    impact = Impact.HIGH
    listens = (Loops("range", "item", "tolist", "nonzero", "unique", "int", "float"), Calls("stack"))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Call):
            yield from self._stacked(node, ctx)
            return
        if not isinstance(node, ast.For) or ctx.body_heat(node) < Heat.STEP:
            return
        read = read_by_turns(node, ctx) if not OVER_FEW_PARTS.search(ctx.text(node.target)) else None
        if read is not None:
            yield self._reads(node, read, ctx)
            return
        if not isinstance(node.target, ast.Name):
            return
        if node.orelse or OVER_FEW_PARTS.search(ctx.text(node.target)):
            return
        name = _computed(node, node.target.id, ctx) if _is_long(node.iter, ctx) else fills_spans(node, ctx)
        if name is None:
            return
        yield self.finding(
            node,
            ctx,
            f"This loop computes `{name}` one index at a time, although its iterations are independent.",
            advice=f"Compute all of `{name}` with one operation on whole tensors.",
            confidence=Confidence.MEDIUM,
            impact=Impact.HIGH if _trains(node, ctx) else Impact.MEDIUM,
        )

    def _stacked(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`torch.stack([f(x[i]) for i in range(len(x))])`, and `torch.stack([f(row) for row in x])`."""
        rows = node.args[0] if node.args else None
        if not isinstance(rows, ast.ListComp) or len(rows.generators) != 1 or not ctx.is_call_of(node, "torch.stack"):
            return
        turns = rows.generators[0]
        if turns.ifs or not isinstance(turns.target, ast.Name) or ctx.heat(rows.elt) < Heat.STEP:
            return
        index = turns.target.id
        goes_through = _is_tensor(turns.iter, ctx) and not OVER_FEW_PARTS.search(ctx.text(turns.iter))
        if OVER_FEW_PARTS.search(index) or not (goes_through or _is_long(turns.iter, ctx)):
            return
        of_rows = (index,) if goes_through else ()
        works = any(isinstance(part, (ast.Call, ast.BinOp)) for part in walk(rows.elt))
        if not works or index not in names_in(rows.elt) or not _is_simple(rows.elt, index, set(), ctx, of_rows):
            return
        yield self.finding(
            rows,
            ctx,
            "These rows are computed one at a time and stacked, although they are independent.",
            advice="Compute all of them with one operation on the whole tensor.",
            confidence=Confidence.MEDIUM,
            impact=Impact.HIGH if _trains(node, ctx) else Impact.MEDIUM,
        )

    def _reads(self, node: ast.For, read: TurnRead, ctx: Context) -> Finding:
        text = ctx.text(read.at)
        what = f"`{text}`" if len(text) <= _SHORT else "a value of it"
        return self.finding(
            node,
            ctx,
            f"This loop reads `{read.tensor}` one element at a time: the host blocks for {what} in every iteration.",
            advice="Read all values once before the loop with `.tolist()`, or use operations on the whole tensor.",
            confidence=Confidence.MEDIUM,
            # Few kernels are queued for each read; what does not train waits for its results in any case.
            impact=Impact.HIGH if _trains(node, ctx) else Impact.LOW,
            related=(replace(ctx.hop(read.at, "read on the host in every iteration"), code=self.code),),
        )


def _trains(node: ast.AST, ctx: Context) -> bool:
    return ctx.phase(node).phase is Phase.TRAIN


def _is_long(turns: ast.expr, ctx: Context) -> bool:
    """Whether the loop goes through a range that is a tensor's size, or a number that is not small."""
    if not isinstance(turns, ast.Call) or not isinstance(turns.func, ast.Name) or turns.func.id != "range":
        return False
    if turns.keywords or not 1 <= len(turns.args) <= 2:
        return False
    if len(turns.args) == 2 and not isinstance(turns.args[0], ast.Constant):
        return False
    stop = turns.args[-1]
    if OVER_FEW_PARTS.search(ctx.text(stop)):
        return False
    if isinstance(stop, ast.Constant):
        return isinstance(stop.value, int) and stop.value >= _FEW
    return _is_size(stop, ctx)


def _is_size(stop: ast.expr, ctx: Context) -> bool:
    """`x.shape[0]`, `x.size(0)`, `len(x)`, or a name that was set to one of these or taken from `x.shape`."""
    if isinstance(stop, ast.Subscript):
        if isinstance(stop.value, ast.Call) and not stop.value.args:
            return _is_size(stop.value, ctx)
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
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            value = value.value  # `n, m = x.shape[:2]`
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            return _is_tensor(value.value, ctx)
        return isinstance(value, ast.Call) and not value.args and _is_size(value, ctx)
    return _is_size(value, ctx)


def _is_tensor(node: ast.expr, ctx: Context) -> bool:
    return ctx.kind(node).tag is Tag.TENSOR


def _computed(node: ast.For, index: str, ctx: Context) -> str | None:
    """The tensor that a loop computes one index at a time, each from the same index of other tensors."""
    own: set[str] = set()
    written: set[str] = set()
    for statement in node.body:
        if (name := _local(statement)) is not None and name not in own:
            own.add(name)
        elif name := _written(statement, index):
            if name in written:
                return None
            written.add(name)
        else:
            return None
    if not written or own & written:
        return None
    known: set[str] = set()
    for statement in node.body:
        name = _local(statement)
        unread = written | (own - known)  # what is not bound yet is of the turn before
        if name is None:
            if not _is_by_element(statement, index, unread, ctx, known):
                return None
        else:
            assert isinstance(statement, ast.Assign)
            values = [statement.value]
            if isinstance(statement.value, ast.IfExp):
                if not _compares_turns(statement.value.test, ctx):
                    return None
                values = [statement.value.body, statement.value.orelse]
            if not all(_is_simple(value, index, unread, ctx, known) for value in values):
                return None
            known.add(name)
    return min(written)


def _local(statement: ast.stmt) -> str | None:
    """The name that a statement binds: `row = x[i] * 2`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _compares_turns(test: ast.expr, ctx: Context) -> bool:
    """`j == k`: numbers that the loops count."""
    return isinstance(test, ast.Compare) and all(
        isinstance(side, (ast.Name, ast.Constant)) and ctx.kind(side).tag is Tag.NUMBER
        for side in (test.left, *test.comparators)
    )


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
    """Whether a subscript is exactly one index of the loop, with whole slices and indices of loops around beside it."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    own = [part for part in parts if isinstance(part, ast.Name) and part.id == index]
    rest = [part for part in parts if part not in own]
    return len(own) == 1 and all(_is_whole(part) or isinstance(part, ast.Name) for part in rest)


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None


def _is_by_element(
    statement: ast.stmt, index: str, written: set[str], ctx: Context, of_rows: Collection[str] = ()
) -> bool:
    """Whether a statement computes its row element by element, from the same row of other tensors."""
    if isinstance(statement, ast.Assign):
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AugAssign):
        target, value = statement.target, statement.value
    else:
        return False
    if not isinstance(target, ast.Subscript) or not _is_tensor(target.value, ctx):
        return False
    reads_row = isinstance(statement, ast.AugAssign) or not {index, *of_rows}.isdisjoint(names_in(value))
    return reads_row and _is_simple(value, index, written, ctx, of_rows)


def _is_simple(node: ast.expr, index: str, written: set[str], ctx: Context, of_rows: Collection[str] = ()) -> bool:
    """Whether a value is computed from one index of tensors as it would be from all of them. `of_rows` are names that
    hold such values.
    """
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.Name):
        return node.id not in written
    if isinstance(node, ast.Attribute):
        return not written & set(names_in(node)) and index not in names_in(node)
    if isinstance(node, ast.UnaryOp):
        return _is_simple(node.operand, index, written, ctx, of_rows)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            return False
        return all(_is_simple(side, index, written, ctx, of_rows) for side in (node.left, node.right))
    if isinstance(node, ast.Subscript):
        if not isinstance(node.value, ast.Name) or node.value.id in written or not _is_tensor(node.value, ctx):
            return False
        return _is_row(node, index) or (isinstance(node.slice, ast.Name) and node.slice.id not in {index, *of_rows})
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FOR_ALL:
        given = [*node.args, *(item.value for item in node.keywords)]
        whole = (ctx.target(node.func) or "").startswith("torch.")
        values = (
            given
            if whole and isinstance(node.func.value, ast.Name) and not _is_tensor(node.func.value, ctx)
            else [node.func.value, *given]
        )
        return all(_is_simple(item, index, written, ctx, of_rows) for item in values)
    return False
