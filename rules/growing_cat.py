"""TPL309: a tensor that is joined to all that came before, on every turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Dtype,
    Finding,
    Fix,
    Heat,
    Impact,
    Nodes,
    Rule,
    Tag,
    callee_name,
    has_unpacking,
    is_constant,
    last_name,
    walk,
)
from perflint.api.aliases import is_written_in
from perflint.api.gradients import is_model_call
from perflint.api.loops import is_of_a_kind, names_in, turns_few_times
from perflint.api.names import COLLECTED, ENCODER, HANDFUL, KEY, MANY, OVER_DATA
from perflint.api.phases import generates, runs_rarely

from ._shared.grown_attributes import WRITTEN, grown_attributes
from ._shared.pieces import are_elements, are_moved_over, is_name

_TORCH = ("torch.cat", "torch.concat", "torch.concatenate", "torch.vstack", "torch.hstack")
_ON_HOST = ("numpy.append", "numpy.concatenate", "numpy.vstack", "numpy.hstack")
_JOINS = ("cat", "concat", "concatenate", "append", "vstack", "hstack")
_NUMPY = ("numpy.concatenate", "numpy.vstack", "numpy.hstack")
#: What a size can be asked with, without a look at the values.
_SIZES = frozenset("shape size dim ndim numel nelement device dtype".split())
#: Loops of so few turns are not worth a word.
_FEW = 8
#: What is given the sizes of its result, as a method or a function.
_SHAPED = frozenset("reshape view ones zeros new_ones new_zeros".split())
#: What gives all that a file or a folder holds.
_READS = frozenset("read readlines splitlines iterrows itertuples glob rglob iterdir listdir scandir".split())
_CUTS = frozenset("chunk split tensor_split unbind split_with_sizes".split())
#: How models of speech and of series say that they generate.
_GENERATES = frozenset({"inference", "synthesize"})
#: Types of tokens and of what is known of each of them.
_TOKENS = frozenset({Dtype.INT, Dtype.BOOL})
_RANKS = frozenset(("shape", "ndim", "dim"))


class GrowingCat(Rule):
    """Concatenating to a growing tensor on every iteration copies all earlier data again.

    What it does

    Reports `x = torch.cat([x, new])`, `np.append` and `np.concatenate` in loops that grow `x`.

    Why is this slow?

    Each call allocates a new tensor and copies all of `x` into it, so the bytes moved grow with the square of the
    number of iterations.

    What to do

    Append to a list and call `torch.cat` once after the loop. Preallocating and writing rows is no better for small
    rows. Keep the state of a metric as a list too, and concatenate where the result is computed.

    Fix safety

    Unsafe: the parts stay alive until they are concatenated, and shape errors or in-place writes surface only there.
    The value from before the loop stays the first part, so type and result are the same bits, also for zero
    iterations. No fix if the loop writes to a part.

    Not reported

    - Loops whose iterations read the concatenated value: key-value caches, token-by-token decoding, sliding windows.
    - Loops of few iterations, over few things (layers, devices, crops), or over things that are not known to be many.
    - Parts that are slices of one tensor.
    - Iterations that generate what they add, or run a model on one item.
    - Tests, checkpoint conversions, and cold code of files that do not use torch.

    Measured

    Rows of 64 floats, against a list that is concatenated once: 12 times as long for 100 iterations, 28 times for
    1,000, 87 times for 5,000. Writing rows into a preallocated tensor took 13 times as long as the list (CPU, torch
    2.13).

    References

    - `torch.cat`: https://docs.pytorch.org/docs/stable/generated/torch.cat.html
    """

    code, name = "TPL309", "growing-cat"
    numerics = "same bits"
    impact = Impact.HIGH
    listens = (
        Calls(*_JOINS, repeated=True),
        Nodes(ast.ClassDef, mentioning=("Metric", "EpochMetric", "add_state"), written=WRITTEN),
    )

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.ClassDef):
            yield from self._states(node, ctx)
            return
        assert isinstance(node, ast.Call)
        grown = _grown(node, ctx)
        if grown is None:
            return
        loop = _growing_loop(grown, ctx)
        if (
            loop is None
            or _goes_over_a_handful(loop)
            or is_of_a_kind(grown.statement, loop, ctx)
            or turns_few_times(loop, ctx)
        ):
            return
        if _fills_up(grown, loop, ctx) or _is_trifling(node, ctx):
            return
        if all(_is_column(part) for part in grown.added) and _runs_a_model(loop, ctx):
            return
        if _is_encoded(loop, ctx) or _is_generated(grown, loop, ctx):
            return
        if are_moved_over(grown.added, loop) or _goes_over_few(grown, loop, ctx):
            return
        if any(_may_be_a_number(part, loop) for part in grown.added):
            return
        reads = _reads(grown, loop, ctx)
        if reads is None:
            return
        yield self.finding(
            node,
            ctx,
            f"Every iteration of this loop copies all of `{grown.name}` to add `{grown.new}`.",
            advice=f"Append `{grown.new}` to a list, and concatenate the list once after the loop.",
            # Where a model runs in each turn, it takes longer than the copy for all but very many turns.
            impact=Impact.MEDIUM if _runs_a_model(loop, ctx) else None,
            confidence=Confidence.MEDIUM if reads else None,
            fix=None if reads else _collect(grown, loop, ctx),
        )

    def _states(self, node: ast.ClassDef, ctx: Context) -> Iterator[Finding]:
        """What a metric or a buffer holds, joined to all that came before on each call."""
        for grown in grown_attributes(node, ctx, (*_TORCH, *_NUMPY)):
            yield self.finding(
                grown.call,
                ctx,
                f"Every call of `{grown.method}` copies all of `self.{grown.name}` to add `{grown.new}`.",
                advice=f"Append `{grown.new}` to a list, and concatenate the list once where its values are read.",
                confidence=Confidence.MEDIUM,
            )


class _Grown(NamedTuple):
    """`name = call(...)` where `call` joins `name` and others. `parts` is the argument that holds them."""

    statement: ast.Assign
    call: ast.Call
    name: str
    parts: ast.expr | None
    added: tuple[ast.expr, ...]
    new: str


def _grown(node: ast.Call, ctx: Context) -> _Grown | None:
    statement = ctx.tree.parent(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or has_unpacking(node) or not node.args:
        return None
    target, parts = statement.targets[0], node.args[0]
    if not isinstance(target, ast.Name):
        return None
    if ctx.is_call_of(node, "numpy.append"):
        if len(node.args) < 2 or not is_name(parts, target.id) or _mentions(node.args[1], target.id):
            return None
        return _Grown(statement, node, target.id, None, (node.args[1],), ctx.text(node.args[1]))
    if not ctx.is_call_of(node, *_TORCH, *_NUMPY) or not isinstance(parts, (ast.List, ast.Tuple)):
        return None
    if len(parts.elts) < 2 or not (is_name(parts.elts[0], target.id) or is_name(parts.elts[-1], target.id)):
        return None
    added = tuple(part for part in parts.elts if not is_name(part, target.id))
    if len(added) != len(parts.elts) - 1 or any(_mentions(part, target.id) for part in added):
        return None
    return _Grown(statement, node, target.id, parts, added, ", ".join(ctx.text(part) for part in added))


def _growing_loop(grown: _Grown, ctx: Context) -> ast.stmt | None:
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


def _goes_over_a_handful(loop: ast.stmt) -> bool:
    """Whether the header of a loop names what there are few of: `range(num_layers)`, `for crop in crops`."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute) and loop.iter.func.attr == "items":
        first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
        if isinstance(first, ast.Name) and KEY.match(first.id):
            return True  # things by their kinds
    # Keywords are about how progress is shown: `trange(longest, disable=rank > 0)`.
    shown = {id(part) for item in walk(loop.iter) if isinstance(item, ast.keyword) for part in walk(item)}
    # `range(pad, length - pad)`: that of which there are few is left out at both ends.
    shown |= {
        id(part)
        for item in walk(loop.iter)
        if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Sub)
        for part in walk(item.right)
    }
    if isinstance(loop.iter, ast.Call) and callee_name(loop.iter) in ("range", "trange") and len(loop.iter.args) > 1:
        shown |= {id(part) for part in walk(loop.iter.args[0])}
    return any(
        HANDFUL.search(part.id if isinstance(part, ast.Name) else part.attr)
        for header in (loop.target, loop.iter)
        for part in walk(header)
        if isinstance(part, (ast.Name, ast.Attribute)) and id(part) not in shown
    )


def _fills_up(grown: _Grown, loop: ast.stmt, ctx: Context) -> bool:
    """Whether each turn adds the same name again: a rest that is filled up, for which there is `expand`."""
    return all(isinstance(part, ast.Name) and ctx.inference.flow.is_invariant(part, loop) for part in grown.added)


def _is_column(part: ast.expr) -> bool:
    """One number for each row, by the sizes that are written: `done.reshape(n, 1)`, `torch.ones((n, 1))`."""
    if isinstance(part, ast.UnaryOp):
        part = part.operand
    if not isinstance(part, ast.Call) or callee_name(part) not in _SHAPED or not part.args:
        return False
    sizes = part.args[0].elts if isinstance(part.args[0], (ast.Tuple, ast.List)) else part.args
    return len(sizes) == 2 and is_constant(sizes[1], 1)


def _runs_a_model(loop: ast.stmt, ctx: Context) -> bool:
    """Whether a turn runs a module, or hands one to what does: beside that a column is copied in no time."""
    return any(
        isinstance(part, ast.Call) and any(ctx.kind(item).tag is Tag.MODULE for item in (part.func, *part.args))
        for part in ctx.walk(loop)
    )


def _is_encoded(loop: ast.stmt, ctx: Context) -> bool:
    """Whether a turn encodes one item of a batch, which takes far longer than to copy the codes of the others."""
    if not isinstance(loop, ast.For) or any(OVER_DATA.search(name) for name in names_in(loop.iter)):
        return False
    is_cut = _is_cut_up(loop.iter, ctx)
    return any(
        isinstance(part, ast.Call) and (_encodes(part) or (is_cut and is_model_call(part, ctx)))
        for part in ctx.walk(loop)
    )


def _is_cut_up(items: ast.expr, ctx: Context) -> bool:
    """Whether a loop goes over what one tensor was cut into: `torch.chunk(images, len(images))`."""
    return any(isinstance(item, ast.Call) and callee_name(item) in _CUTS for item in ctx.inference.origins(items))


def _goes_over_few(grown: _Grown, loop: ast.stmt, ctx: Context) -> bool:
    """Whether code that runs once, or joins arrays on the host, goes over something of which there need not be many,
    as far as names say: the boxes of a picture. For tensors the loops around it count, where the joined value outlives
    their turns.
    """
    node = grown.call
    on_host = ctx.is_call_of(node, *_ON_HOST)
    if ctx.heat(node) >= Heat.EPOCH and not on_host and not are_elements(grown.added, loop):
        return False
    outer = [] if on_host else ctx.loops(loop)
    around = [item for item in outer if isinstance(item, ast.For) and not _begins_in(item, grown.name)]
    return all(_need_not_be_many(node, item, ctx) for item in (loop, *around))


def _begins_in(loop: ast.stmt, name: str) -> bool:
    return any(
        isinstance(part, ast.Assign)
        and any(is_name(target, name) for target in part.targets)
        and not _mentions(part.value, name)
        for part in walk(loop)
    )


def _need_not_be_many(node: ast.AST, loop: ast.stmt, ctx: Context) -> bool:
    if not isinstance(loop, ast.For):
        return False
    if any(isinstance(part, ast.Call) and callee_name(part) in _READS for part in walk(loop.iter)):
        return False
    if ctx.heat(loop) < Heat.STEP <= ctx.body_heat(loop):
        return False  # each turn is a step
    header = list(names_in(loop.iter))
    if any(isinstance(part, ast.Call) and callee_name(part).endswith("range") for part in walk(loop.iter)):
        # What is gone over by its index, if anything is.
        indexed = [
            name
            for part in walk(loop)
            if isinstance(part, ast.Subscript) and _mentions(part.slice, last_name(loop.target))
            for name in names_in(part.value)
        ]
        if not indexed:
            return False
        header += indexed
    collected = ctx.heat(node) < Heat.STEP and any(COLLECTED.search(name) for name in (*header, *names_in(loop.target)))
    return not collected and not any(MANY.search(name) for name in header)


def _is_generated(grown: _Grown, loop: ast.stmt, ctx: Context) -> bool:
    """Whether each turn generates what is added: `codes = model.inference(text)` takes seconds, and tokens, which are
    whole numbers, take a forward pass, beside which those before them are copied in no time.
    """
    if ctx.role(grown.statement) == "decode" and all(ctx.kind(part).dtype in _TOKENS for part in grown.added):
        return True
    names = {name for part in grown.added for name in names_in(part)}
    return any(
        isinstance(part, ast.Assign)
        and isinstance(part.value, ast.Call)
        and (generates(part.value, ctx) or callee_name(part.value) in _GENERATES)
        and not names.isdisjoint(name for target in part.targets for name in names_in(target))
        for part in walk(loop)
    )


def _encodes(call: ast.Call) -> bool:
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or not callee_name(call).startswith("encode"):
        return False
    models = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return any(ENCODER.search(last_name(item)) for item in models)


def _may_be_a_number(part: ast.expr, loop: ast.stmt) -> bool:
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


def _is_trifling(node: ast.AST, ctx: Context) -> bool:
    """Whether nobody waits for the copies: in tests, where a model is converted, and in scripts without torch."""
    if runs_rarely(node, ctx) or _is_now_and_then(node, ctx):
        return True
    return ctx.heat(node) < Heat.STEP and not ctx.mentions("torch")


def _is_now_and_then(node: ast.AST, ctx: Context) -> bool:
    """Whether a guard lets few turns of the loop by: `if step % 100 == 0`."""
    contexts, index = ctx.facts(node).contexts, ctx.context(node)
    while index >= 0 and contexts[index].kind != "loop":
        if contexts[index].kind == "guard" and contexts[index].detail in ("periodic", "first", "rare"):
            return True
        index = contexts[index].parent
    return False


def _is_first_turn(target: ast.Name, grown: _Grown, ctx: Context) -> bool:
    """Whether a binding is the other branch of the `if` that decides whether there is something to join to."""
    statement = ctx.tree.statement_of(target)
    around = ctx.tree.parent(grown.statement)
    if not isinstance(around, ast.If) or ctx.tree.parent(statement) is not around:
        return False
    branches = (around.body, around.orelse)
    return any((statement in branch) != (grown.statement in branch) for branch in branches) and _asks_for_first(around)


def _asks_for_first(test: ast.If) -> bool:
    """`i == 0`, `x is None`, `first`, `len(x) == 0`, `x`."""
    for part in walk(test.test):
        if isinstance(part, ast.Constant) and part.value in (0, None):
            return True
        if isinstance(part, ast.Name) and "first" in part.id:
            return True
    return isinstance(test.test, ast.Name)


def _reads(grown: _Grown, loop: ast.stmt, ctx: Context) -> list[ast.Name] | None:
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


def _is_size(name: ast.Name, ctx: Context) -> bool:
    outer = ctx.tree.parent(name)
    if isinstance(outer, ast.Attribute):
        return outer.attr in _SIZES
    if isinstance(outer, ast.Call):
        return isinstance(outer.func, ast.Name) and outer.func.id == "len"
    if isinstance(outer, ast.Compare):
        return all(isinstance(item, ast.Constant) and item.value is None for item in outer.comparators)
    return isinstance(outer, (ast.Return, ast.If)) or (isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not))


def _collect(grown: _Grown, loop: ast.stmt, ctx: Context) -> Fix | None:
    """A list before the loop, an append in it and one join behind it."""
    if not isinstance(grown.parts, (ast.List, ast.Tuple)) or not is_name(grown.parts.elts[0], grown.name):
        return None
    if ctx.is_call_of(grown.call, *_NUMPY) or getattr(loop, "orelse", None):
        return None
    others = [*grown.call.args[1:], *(item.value for item in grown.call.keywords)]
    if not all(_is_literal(item) for item in others) or not _is_bound_before(grown, loop, ctx):
        return None
    if _is_bound_elsewhere(grown, loop):
        return None  # `joined = batch` on the first turn: the join would know nothing of it
    if any(isinstance(part, (ast.Try, ast.Yield, ast.YieldFrom, ast.Return)) for part in walk(loop)):
        return None
    if any(is_written_in(part, loop, ctx) for part in grown.added):
        return None  # a buffer that is filled anew on each turn: the list would hold it many times
    name = ctx.edit.free_name(f"{grown.name}_parts")
    new = ", ".join(ctx.tree.text(part) for part in grown.added)
    added = f"{name}.append({new})" if len(grown.added) == 1 else f"{name}.extend([{new}])"
    rest = [ctx.tree.text(item) for item in grown.call.args[1:]]
    rest += [f"{item.arg}={ctx.tree.text(item.value)}" for item in grown.call.keywords]
    joined = f"{grown.name} = {ctx.tree.text(grown.call.func)}({', '.join([name, *rest])})"
    return Fix(
        "Collect the parts and concatenate them once",
        Applicability.UNSAFE,
        (
            ctx.edit.insert_before(loop, f"{name} = [{grown.name}]"),
            ctx.edit.replace(grown.statement, added),
            ctx.edit.insert_after(loop, joined),
        ),
        reason=("all parts stay alive until they are concatenated; shape errors and in-place writes surface only then"),
    )


def _is_bound_elsewhere(grown: _Grown, loop: ast.stmt) -> bool:
    return any(
        isinstance(part, ast.Name)
        and part.id == grown.name
        and not isinstance(part.ctx, ast.Load)
        and part is not grown.statement.targets[0]
        for part in walk(loop)
    )


def _is_bound_before(grown: _Grown, loop: ast.stmt, ctx: Context) -> bool:
    """Whether the name holds a tensor when the loop begins: bound in the loop's own block, to no `None`."""
    block = getattr(ctx.tree.parent(loop), "body", [])
    if loop not in block:
        return False
    for statement in reversed(block[: block.index(loop)]):
        if isinstance(statement, ast.Assign) and any(is_name(target, grown.name) for target in statement.targets):
            return isinstance(statement.value, ast.Call)
    return False


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in walk(node))
