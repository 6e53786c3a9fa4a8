"""The impact of TPL309: the rank of what is joined, the work of an iteration, and how often the loop itself runs."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.many_turns import has_many_turns
from perflint.analysis.gradients.model_calls import is_loss_function
from perflint.analysis.phases.turn_work import runs_a_model
from perflint.analysis.values.growing import Grown, is_column
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.ranks import SCALAR
from perflint.analysis.waits.host_work import in_forward
from perflint.finding import Confidence, Heat, Impact
from perflint.ir.calls import callee_name, is_constant, keyword
from perflint.ir.summary import MODULE
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect

#: What goes over all of what it is given, or counts it.
_OF_WHOLE = frozenset({"len", "enumerate"})
#: So many numbers are a short row.
_SHORT = 16
#: What leaves the features of a sample as many as they are.
_MOVES = frozenset("to cpu cuda detach clone contiguous float half double data".split())
_WORK = (Effect.FORWARD, Effect.BACKWARD, Effect.STEPS)


def impact_of_growth(grown: Grown, loop: ast.stmt, ctx: FileFacts) -> Impact | None:
    """None where it is negligible: a number for each item is copied in no time beside a forward, and of the levels of a
    pyramid there are a few.
    """
    if _joins_levels(grown, loop, ctx):
        return None
    works = _works(loop, ctx)
    rank = _rank_of_parts(grown, ctx)
    is_narrow = rank in (SCALAR, 1) or all(is_column(part) for part in grown.added)
    if _is_on_host(grown, ctx) and all(map(_is_short, grown.added)):
        return None
    if _goes_over_batch(loop, ctx):
        return None if rank == SCALAR else Impact.LOW
    if (works and is_narrow) or (rank in (SCALAR, 1) and _is_on_host(grown, ctx) and ctx.heat(loop) < Heat.STEP):
        return None  # thousands of numbers are copied in microseconds
    if works and rank is None and _runs_seldom(loop, ctx):
        # Where nothing tells: a few iterations' results, or one number for each item. What a network itself gives has
        # features; a method of it may give anything, such as how likely an item is.
        return Impact.LOW if all(_is_given_by_network(part, ctx) for part in grown.added) else None
    return Impact.MEDIUM if works or is_narrow else Impact.HIGH


def _is_on_host(grown: Grown, ctx: FileFacts) -> bool:
    return (ctx.target(grown.call.func) or "").startswith("numpy.")


def _is_short(part: ast.expr) -> bool:
    """`box.reshape(1, 7)`: so few numbers that to copy hundreds of such rows takes as long as the call itself."""
    sizes = part.args if isinstance(part, ast.Call) and callee_name(part) == "reshape" else []
    numbers = [item.value for item in sizes if isinstance(item, ast.Constant) and type(item.value) is int]
    return len(numbers) == len(sizes) > 0 and all(number > 0 for number in numbers) and math.prod(numbers) <= _SHORT


def _joins_levels(grown: Grown, loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a forward joins the tensors of a list that it is given along another dimension than that of the samples:
    the layers or levels of a network, whose features are put side by side.
    """
    function = ctx.tree.function_of(loop)
    if not isinstance(loop, ast.For) or function is None or function.name != "forward" or not in_forward(loop, ctx):
        return False
    along = grown.call.args[1] if len(grown.call.args) > 1 else keyword(grown.call, "dim")
    if not isinstance(along, (ast.Constant, ast.UnaryOp)) or is_constant(along, 0):
        return False
    given = {item.arg for item in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    whole = [call.args[0] for call in walk(loop.iter) if isinstance(call, ast.Call) and callee_name(call) in _OF_WHOLE]
    lists = [part for part in (*whole, loop.iter) if isinstance(part, ast.Name) and part.id in given]
    return bool(lists) and not any(_is_surely_tensor(part, ctx) for part in lists)


def _is_surely_tensor(value: ast.expr, ctx: FileFacts) -> bool:
    """What a forward is given is taken for a tensor where nothing tells."""
    kind = ctx.kind(value)
    return kind.is_tensor and kind.certainty is Confidence.HIGH


def _goes_over_batch(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a step goes through what it is given one by one: the pictures or the texts of a batch, of which there are
    dozens, while a data set grows for as long as it has samples. Rows of a tensor may be many, and nobody knows how
    long a `range` or a `while` goes on.
    """
    if not isinstance(loop, ast.For) or ctx.heat(loop) < Heat.STEP or has_many_turns(loop, ctx):
        return False
    return not any(isinstance(part, ast.Call) and callee_name(part) == "range" for part in walk(loop.iter))


def _works(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether an iteration runs a model, whatever calls it."""
    if runs_a_model(loop, ctx):
        return True
    return any(isinstance(part, ast.Call) and ctx.effects(part).does(*_WORK) for part in ctx.walk(loop))


def _runs_seldom(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a loop is known to run once, or once in many steps; what nothing calls is not."""
    heat = ctx.heat(loop)
    scope = ctx.scope(loop)
    return heat is Heat.PERIODIC or (
        heat is Heat.ONCE and (scope.function == MODULE or bool(ctx.program.callers(scope)))
    )


def _is_given_by_network(part: ast.expr, ctx: FileFacts) -> bool:
    """Whether a part is what a call of a module gives, or the first of several things that it gives."""
    if isinstance(part, ast.Name):
        made = [definition.value for definition in ctx.inference.flow.definitions(part)]
    else:
        made = [part]
    return bool(made) and all(
        isinstance(value, ast.Call)
        and isinstance(value.func, (ast.Name, ast.Attribute))
        and ctx.kind(value.func).tag is Tag.MODULE
        and not is_loss_function(value.func, ctx)
        for value in map(_unmoved, made)
    )


def _unmoved(value: ast.expr | None) -> ast.expr | None:
    """`net(x)` of `net(x).cpu()`, `net(x).detach().to(device)`"""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        value = value.func.value
    return value


def _rank_of_parts(grown: Grown, ctx: FileFacts) -> int | None:
    """The number of dimensions of what is added, by itself or by what it is joined to: NumPy joins only equal ranks."""
    kinds = [ctx.kind(part) for part in grown.added]
    if all(kind.tag is Tag.NUMBER for kind in kinds):
        return SCALAR
    known = [kind.rank for kind in kinds if kind.rank is not None and kind.rank >= SCALAR]
    if len(known) == len(kinds):
        return max(known)
    # `np.append` flattens what it is given, and `torch.cat` takes an empty vector beside whatever comes.
    is_strict = ctx.is_call_of(grown.call, "numpy.concatenate", "numpy.hstack")
    ranks = {rank for rank in _ranks_before(grown, ctx) if rank != 1 or is_strict}
    return ranks.pop() if len(ranks) == 1 else None


def _ranks_before(grown: Grown, ctx: FileFacts) -> Iterator[int | None]:
    """The ranks of what the loop begins with: `[]`, `np.empty(0)`, `torch.empty(0, 10)`."""
    joined = grown.parts.elts if isinstance(grown.parts, (ast.List, ast.Tuple)) else grown.call.args[:1]
    for name in joined:
        if not isinstance(name, ast.Name) or name.id != grown.name:
            continue
        for origin in ctx.inference.origins(name):
            if origin is grown.call or origin is name:
                continue
            given = origin.args[0] if isinstance(origin, ast.Call) and ctx.is_call_of(origin, "numpy.array") else origin
            yield 1 if isinstance(given, ast.List) and not given.elts else ctx.kind(origin).rank
